// Tells the controller, by digest, of flows it has not met and of paths that died.

control Report(in metadata_t meta, in standard_metadata_t standard_metadata) {
    register<bit<48>>(DIGEST_BUCKETS) last_digest;
    meter(PORTS, MeterType.packets)   digest_meter;

    apply {
        // A busy flow must not use up the meter: first one digest a second for each flow.
        bit<32> bucket;
        bit<48> last;
        bit<48> now = standard_metadata.ingress_global_timestamp;
        hash(bucket, HashAlgorithm.crc32, 32w0,
             { meta.flow.src, meta.flow.dst, meta.flow.protocol, meta.flow.sport, meta.flow.dport,
               meta.report_reason },
             DIGEST_BUCKETS);
        last_digest.read(last, bucket);

        if (last == 0 || now - last >= DIGEST_INTERVAL) {
            color_t color;
            digest_meter.execute_meter((bit<32>)standard_metadata.ingress_port, color);
            if (color != RED) {
                last_digest.write(bucket, now);
                digest<flow_digest_t>(1, { meta.flow.src, meta.flow.dst, meta.flow.protocol,
                                           meta.flow.sport, meta.flow.dport,
                                           standard_metadata.ingress_port, meta.report_reason });
            }
        }
    }
}
