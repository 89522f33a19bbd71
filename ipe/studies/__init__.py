"""Studies: the paper's experiments, declared as data: settings, parts (figures), and claims."""
