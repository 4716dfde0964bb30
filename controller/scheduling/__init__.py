"""One policy a file: state of the fabric in, ranks and rates out. Pure functions."""
