"""One file a format: what people have -> job profiles, workloads, fabrics."""
