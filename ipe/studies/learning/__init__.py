"""What the studies of deep learning have in common: sweeps that are run, read back, judged and reported."""
