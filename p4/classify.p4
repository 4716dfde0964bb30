// Whose packet is it? The edge decides the class; the fabric behind it believes the edge.

control Classify(inout headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) flow_counter;
    direct_meter<color_t>(MeterType.bytes)        flow_meter;

    counter(PORTS, CounterType.packets_and_bytes) class_mismatches;
    counter(PORTS, CounterType.packets_and_bytes) unknown_flows;
    counter(PORTS, CounterType.packets_and_bytes) fragments;

    action set_policy(class_t traffic_class, port_t path) {
        flow_counter.count();
        flow_meter.read(meta.color);
        meta.traffic_class = traffic_class;
        meta.path = path;
    }

    table flow_policy {
        key = {
            meta.flow.src:      exact @name("src");
            meta.flow.dst:      exact @name("dst");
            meta.flow.protocol: exact @name("protocol");
            meta.flow.sport:    exact @name("sport");
            meta.flow.dport:    exact @name("dport");
        }
        actions  = { set_policy; NoAction; }
        size     = FLOW_POLICY_SIZE;
        counters = flow_counter;
        meters   = flow_meter;
        const default_action = NoAction();
    }

    apply {
        bit<32> port = (bit<32>)standard_metadata.ingress_port;
        bool known = false;

        if (meta.fragment) {
            fragments.count(port);
        } else {
            known = flow_policy.apply().hit;
        }

        if (meta.from_host) {
            // Whatever tag the host wrote, the tag that leaves is the policy's.
            dscp_t dscp = meta.traffic_class ++ 3w0;
            if (meta.dscp != dscp) {
                class_mismatches.count(port);
                meta.dscp = dscp;
            }
            if (!known && hdr.ports.isValid()) {
                unknown_flows.count(port);
                meta.report_reason = REPORT_UNKNOWN_FLOW;
            }
        } else {
            meta.traffic_class = meta.dscp[5:3];
        }

        if (hdr.ipv4.isValid()) {
            hdr.ipv4.dscp = meta.dscp;
        } else {
            hdr.ipv6.dscp = meta.dscp;
        }
    }
}
