// Parser, checksums, deparser.

parser EchelonParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default:  parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: parse_ipv4;
            TYPE_IPV6: parse_ipv6;
            default:   accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        meta.dscp          = hdr.ipv4.dscp;
        meta.flow.src      = 80w0 ++ 16w0xffff ++ hdr.ipv4.src;
        meta.flow.dst      = 80w0 ++ 16w0xffff ++ hdr.ipv4.dst;
        meta.flow.protocol = hdr.ipv4.protocol;
        meta.fragment      = hdr.ipv4.fragment_offset != 0;
        // Options would stand between here and the ports; such packets are dropped.
        transition select(hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, PROTO_TCP): parse_ports;
            (5, 0, PROTO_UDP): parse_ports;
            default:           accept;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        meta.dscp          = hdr.ipv6.dscp;
        meta.flow.src      = hdr.ipv6.src;
        meta.flow.dst      = hdr.ipv6.dst;
        meta.flow.protocol = hdr.ipv6.next_header;
        // Extension headers are not followed: such packets have no ports and travel in class 0.
        transition select(hdr.ipv6.next_header) {
            PROTO_TCP:    parse_ports;
            PROTO_UDP:    parse_ports;
            PROTO_ICMPV6: parse_icmpv6;
            default:      accept;
        }
    }

    state parse_ports {
        packet.extract(hdr.ports);
        meta.flow.sport = hdr.ports.src;
        meta.flow.dport = hdr.ports.dst;
        transition accept;
    }

    state parse_icmpv6 {
        packet.extract(hdr.icmpv6);
        transition accept;
    }
}

control EchelonVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control EchelonComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control EchelonDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}
