"""Drives a switch from a test: the same commands and frames for the embedded switch and for BMv2."""
