// Echelon: a routed fabric whose edge decides the class of every packet. See README.md.

#include <core.p4>
#include <v1model.p4>

#include "defines.p4"
#include "headers.p4"
#include "parser.p4"
#include "classify.p4"
#include "forward.p4"
#include "report.p4"
#include "mark.p4"

control EchelonIngress(inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    Classify() classify;
    Forward()  forward;
    Report()   report;

    meter(PORTS, MeterType.packets)               punt_meter;
    counter(PORTS, CounterType.packets_and_bytes) punts_limited;
    counter(PORTS, CounterType.packets_and_bytes) bad_packets;
    counter(PORTS, CounterType.packets_and_bytes) ttl_expired;
    counter(PORTS, CounterType.packets_and_bytes) policed;

    bit<32> port = (bit<32>)standard_metadata.ingress_port;

    action face_host()   { meta.from_host = true; }
    action face_switch() { meta.from_host = false; }

    table port_role {
        key = { standard_metadata.ingress_port: exact @name("port"); }
        actions = { face_host; face_switch; }
        size = PORTS;
        // A port that nobody described is not believed.
        const default_action = face_host();
    }

    // To the controller, which answers with a packet-out.
    action punt(punt_reason_t reason) {
        meta.punt_reason = reason;
        meta.traffic_class = CONTROL_CLASS;
        standard_metadata.egress_spec = CPU_PORT;
    }

    apply {
        bool is_ip = hdr.ipv4.isValid() || hdr.ipv6.isValid();
        bool bad_ipv4 = hdr.ipv4.isValid() && (hdr.ipv4.version != 4 || hdr.ipv4.ihl != 5);
        bool bad_ipv6 = hdr.ipv6.isValid() && hdr.ipv6.version != 6;
        bool is_arp = hdr.ethernet.type == TYPE_ARP;
        // Hosts believe only solicitations that were never routed (hop limit 255), so punt them all.
        bool is_solicitation = hdr.icmpv6.isValid()
                               && hdr.icmpv6.type == ICMPV6_NEIGHBOR_SOLICITATION;
        bit<8> ttl = hdr.ipv4.isValid() ? hdr.ipv4.ttl : hdr.ipv6.hop_limit;

        port_role.apply();

        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            meta.traffic_class = CONTROL_CLASS;
            hdr.packet_out.setInvalid();
        } else if (standard_metadata.parser_error != error.NoError
                   || standard_metadata.checksum_error == 1 || bad_ipv4 || bad_ipv6) {
            bad_packets.count(port);
            mark_to_drop(standard_metadata);
        } else if (meta.from_host && (is_arp || is_solicitation)) {
            punt_meter.execute_meter(port, meta.color);
            if (meta.color == RED) {
                punts_limited.count(port);
                mark_to_drop(standard_metadata);
            } else {
                punt(is_arp ? PUNT_ARP : PUNT_NEIGHBOR_SOLICITATION);
            }
        } else if (!is_ip) {
            bad_packets.count(port);
            mark_to_drop(standard_metadata);
        } else if (ttl <= 1) {
            ttl_expired.count(port);
            mark_to_drop(standard_metadata);
        } else {
            classify.apply(hdr, meta, standard_metadata);
            if (meta.color == RED) {
                policed.count(port);
                mark_to_drop(standard_metadata);
            } else {
                forward.apply(hdr, meta, standard_metadata);
            }
            if (meta.report_reason != REPORT_NOTHING) {
                report.apply(meta, standard_metadata);
            }
        }

        // The class is the queue.
        standard_metadata.priority = meta.traffic_class;
    }
}

control EchelonEgress(inout headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    counter(PORTS * CLASSES, CounterType.packets_and_bytes) class_counter;

    Mark() mark;

    apply {
        mark.apply(hdr, meta, standard_metadata);

        // port * 8 + class
        class_counter.count((bit<32>)(standard_metadata.egress_port ++ meta.traffic_class));

        if (standard_metadata.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            hdr.packet_in.reason = meta.punt_reason;
        }
    }
}

V1Switch(EchelonParser(), EchelonVerifyChecksum(), EchelonIngress(), EchelonEgress(),
         EchelonComputeChecksum(), EchelonDeparser()) main;
