// Headers on the wire, and what the pipeline knows about a packet.

@controller_header("packet_in")
header packet_in_h {
    port_t        ingress_port;
    punt_reason_t reason;
}

@controller_header("packet_out")
header packet_out_h {
    port_t egress_port;
    bit<7> pad;
}

header ethernet_h {
    mac_t   dst;
    mac_t   src;
    bit<16> type;
}

header ipv4_h {
    bit<4>  version;
    bit<4>  ihl;
    dscp_t  dscp;
    bit<2>  ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    ipv4_t  src;
    ipv4_t  dst;
}

header ipv6_h {
    bit<4>  version;
    dscp_t  dscp;
    bit<2>  ecn;
    bit<20> flow_label;
    bit<16> payload_length;
    bit<8>  next_header;
    bit<8>  hop_limit;
    ipv6_t  src;
    ipv6_t  dst;
}

// TCP and UDP both begin with their ports; the rest of them does not concern us.
header ports_h {
    bit<16> src;
    bit<16> dst;
}

header icmpv6_h {
    bit<8>  type;
    bit<8>  code;
    bit<16> checksum;
}

struct headers_t {
    packet_in_h  packet_in;
    packet_out_h packet_out;
    ethernet_h   ethernet;
    ipv4_h       ipv4;
    ipv6_h       ipv6;
    ports_h      ports;
    icmpv6_h     icmpv6;
}

// The 5-tuple of either IP version; IPv4 addresses are written ::ffff:a.b.c.d.
struct flow_t {
    ipv6_t  src;
    ipv6_t  dst;
    bit<8>  protocol;
    bit<16> sport;
    bit<16> dport;
}

struct metadata_t {
    flow_t          flow;
    bool            fragment;       // an IPv4 fragment after the first: it has no ports
    bool            from_host;
    dscp_t          dscp;
    class_t         traffic_class;
    port_t          path;           // the egress port to use instead of the ECMP group's choice
    group_t         group;
    color_t         color;
    punt_reason_t   punt_reason;
    report_reason_t report_reason;
}

struct flow_digest_t {
    ipv6_t          src;
    ipv6_t          dst;
    bit<8>          protocol;
    bit<16>         sport;
    bit<16>         dport;
    port_t          port;
    report_reason_t reason;
}
