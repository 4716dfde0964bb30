// Where does the packet go? A route names a port or a group of equal uplinks.

control Forward(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    counter(PORTS, CounterType.packets_and_bytes) no_routes;
    counter(PORTS, CounterType.packets_and_bytes) dead_paths;

    action_selector(HashAlgorithm.crc32, ECMP_MEMBERS, 32) ecmp_selector;

    // MAC addresses stay as they are: hosts address each other's, see README.md.
    action to_port(port_t port) {
        standard_metadata.egress_spec = port;
    }

    action to_group(group_t group) {
        meta.group = group;
    }

    action no_route() {
        no_routes.count((bit<32>)standard_metadata.ingress_port);
        mark_to_drop(standard_metadata);
    }

    table ipv4_forward {
        key = { hdr.ipv4.dst: lpm @name("dst"); }
        actions = { to_port; to_group; no_route; }
        size = ROUTES;
        default_action = no_route();
    }

    table ipv6_forward {
        key = { hdr.ipv6.dst: lpm @name("dst"); }
        actions = { to_port; to_group; no_route; }
        size = ROUTES;
        default_action = no_route();
    }

    table ecmp_group {
        key = {
            meta.group:         exact @name("group");
            meta.flow.src:      selector;
            meta.flow.dst:      selector;
            meta.flow.protocol: selector;
            meta.flow.sport:    selector;
            meta.flow.dport:    selector;
        }
        actions = { to_port; }
        size = ECMP_GROUPS;
        implementation = ecmp_selector;
    }

    action port_is_live() { }

    table live_port {
        key = { meta.path: exact @name("port"); }
        actions = { port_is_live; NoAction; }
        size = PORTS;
        const default_action = NoAction();
    }

    action count_dead_path() {
        dead_paths.count((bit<32>)standard_metadata.ingress_port);
        meta.report_reason = REPORT_DEAD_PATH;
    }

    // The scheduler needs to know a flow's path, so it pins it. Hashing is for flows that
    // nobody scheduled, and for those whose path has died.
    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            ipv4_forward.apply();
        } else {
            hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
            ipv6_forward.apply();
        }

        if (meta.group != NO_GROUP) {
            bool pinned = false;
            if (meta.path != NO_PATH) {
                pinned = live_port.apply().hit;
                if (!pinned) {
                    count_dead_path();
                }
            }
            if (pinned) {
                to_port(meta.path);
            } else if (!ecmp_group.apply().hit) {
                // BMv2 has no default action for a table with a selector.
                no_route();
            }
        }
    }
}
