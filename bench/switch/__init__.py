"""`python -m bench.switch`: the embedded switch beside a bare packet-socket forwarder and BMv2."""
