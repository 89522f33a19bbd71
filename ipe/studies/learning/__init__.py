"""The common parts of the studies of deep learning: sweeps are run, read back, judged and reported."""
