"""Tags and paces the packets of one host; replays its share of a job."""
