// Tells ECN-capable senders that a queue is long: the switch's own, or the one their link would have.
//
// A queue that stands outside the switch (tc behind BMv2, a slower link further on) shows no depth here. So the
// switch also keeps a phantom queue for every port and class (Alizadeh et al., "Less is more", NSDI 2012): a number
// that grows with every capable packet and drains at the link's rate. It is kept as the time at which a link with
// this one class on it would have sent everything.

control Mark(inout headers_t hdr, in metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<64>>(PORTS * CLASSES) sent_at;   // port * 8 + class; microseconds << 16

    bit<19> threshold;
    bit<32> byte_time;                            // microseconds << 16; 0 where no rate is known

    action set_ecn_threshold(bit<19> packets) { threshold = packets; }

    table ecn_threshold {
        actions = { set_ecn_threshold; }
        default_action = set_ecn_threshold(16);
    }

    action drain(bit<32> time_a_byte) { byte_time = time_a_byte; }

    table phantom_queue {
        key = { standard_metadata.egress_port: exact @name("port"); }
        actions = { drain; @defaultonly NoAction; }
        size = PORTS;
        const default_action = NoAction();
    }

    apply {
        bool capable = (hdr.ipv4.isValid() && hdr.ipv4.ecn != ECN_NOT_CAPABLE)
                       || (hdr.ipv6.isValid() && hdr.ipv6.ecn != ECN_NOT_CAPABLE);
        if (capable) {
            byte_time = 0;
            ecn_threshold.apply();
            phantom_queue.apply();
            bool is_long = standard_metadata.enq_qdepth >= threshold;

            if (byte_time != 0) {
                bit<32> queue = (bit<32>)(standard_metadata.egress_port ++ meta.traffic_class);
                bit<64> now = standard_metadata.egress_global_timestamp ++ (bit<16>)0;
                bit<64> full = (bit<64>)threshold * (bit<64>)FULL_FRAME * (bit<64>)byte_time;
                bit<64> sent;
                sent_at.read(sent, queue);
                if (sent < now) {
                    sent = now;
                }
                is_long = is_long || sent - now >= full;
                sent = sent + (bit<64>)standard_metadata.packet_length * (bit<64>)byte_time;
                sent_at.write(queue, sent);
            }

            if (is_long && hdr.ipv4.isValid()) {
                hdr.ipv4.ecn = ECN_CONGESTED;
            } else if (is_long) {
                hdr.ipv6.ecn = ECN_CONGESTED;
            }
        }
    }
}
