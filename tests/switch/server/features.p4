// One of everything that P4Runtime can reach, for the end-to-end tests of the switch's server. Compile with
//   p4c-bm2-ss --std p4-16 --p4runtime-files compiled/features.p4info.txt -o compiled/features.json features.p4
#include <core.p4>
#include <v1model.p4>

@controller_header("packet_in")
header packet_in_t {
    bit<9> port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> port;
    bit<7> pad;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header tag_t {
    bit<8>  kind;
    bit<8>  key;
    bit<16> value;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
    tag_t        tag;
}

struct learn_t {
    bit<9>  port;
    bit<48> src;
}

struct metadata_t {
    @field_list(1)
    bit<8> reason;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(4) tagged;

    state start {
        transition select(standard.ingress_port) {
            510: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x9000: parse_tag;
            tagged: parse_tag;
            default: accept;
        }
    }
    state parse_tag {
        packet.extract(hdr.tag);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control Match(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) switched;
    direct_meter<bit<2>>(MeterType.bytes) limit;
    counter(16, CounterType.packets_and_bytes) by_kind;
    meter(4, MeterType.packets) by_key;
    register<bit<16>>(16) last;
    action_selector(HashAlgorithm.crc16, 64, 16) choices;
    action_profile(16) shared;
    bit<2> color;

    action forward(bit<9> port) { standard.egress_spec = port; limit.read(color); }
    action to(bit<9> port) { standard.egress_spec = port; }
    action drop() { mark_to_drop(standard); }
    action punt(bit<7> reason) {
        standard.egress_spec = 510;
        hdr.packet_in.setValid();
        hdr.packet_in.port = standard.ingress_port;
        hdr.packet_in.reason = reason;
    }
    action flood(bit<16> group) { standard.mcast_grp = group; }
    action mirror(bit<32> session, bit<9> port) {
        clone_preserving_field_list(CloneType.I2E, session, 1);
        standard.egress_spec = port;
    }

    // by destination; counts, polices and ages
    table switching {
        key = { hdr.ethernet.dst: exact @name("dst"); }
        actions = { forward; drop; NoAction; }
        default_action = NoAction();
        size = 4096;
        counters = switched;
        meters = limit;
        support_timeout = true;
    }

    // what a tag asks for: every other kind of match
    table tags {
        key = {
            hdr.tag.kind: ternary @name("kind");
            hdr.tag.value: range @name("value");
            hdr.tag.key: optional @name("key");
            hdr.ethernet.src: exact @name("src");
        }
        actions = { to; punt; flood; mirror; drop; NoAction; }
        size = 64;
    }

    table routes {
        key = { hdr.tag.value: lpm @name("value"); }
        actions = { to; drop; NoAction; }
        size = 64;
    }

    table balanced {
        key = { hdr.tag.kind: exact @name("kind"); hdr.tag.value: selector; }
        actions = { to; NoAction; }
        implementation = choices;
        size = 16;
    }

    table indirect {
        key = { hdr.tag.kind: exact @name("kind"); }
        actions = { to; drop; NoAction; }
        implementation = shared;
        size = 16;
    }

    table fixed {
        key = { hdr.ethernet.type: exact @name("type"); }
        actions = { drop; NoAction; }
        const entries = {
            0x88cc: drop();
            0x8809: drop();
        }
        const default_action = NoAction();
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard.egress_spec = hdr.packet_out.port;
            hdr.packet_out.setInvalid();
            return;
        }
        mark_to_drop(standard);
        color = 0;
        switching.apply();
        if (color == 2) { drop(); }
        if (hdr.tag.isValid()) {
            by_kind.count((bit<32>) (hdr.tag.kind & 15));
            last.write((bit<32>) (hdr.tag.kind & 15), hdr.tag.value);
            routes.apply();
            balanced.apply();
            indirect.apply();
            tags.apply();
            if (hdr.tag.kind == 0xd1) {
                digest<learn_t>(1, { standard.ingress_port, hdr.ethernet.src });
            }
            if (hdr.tag.kind == 0xee) {
                by_key.execute_meter((bit<32>) (hdr.tag.key & 3), color);
                if (color == 2) { drop(); }
            }
        }
        fixed.apply();
    }
}

control Mark(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        // what replication did, visible to the receiver
        if (standard.egress_rid != 0 && hdr.tag.isValid()) {
            hdr.tag.value = standard.egress_rid;
        }
        if (standard.instance_type == 1 && standard.egress_port == 510) {
            hdr.packet_in.setValid();
            hdr.packet_in.port = standard.ingress_port;
            hdr.packet_in.reason = 99;
        }
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.packet_out);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tag);
    }
}

V1Switch(P(), Verify(), Match(), Mark(), Compute(), Deparse()) main;
