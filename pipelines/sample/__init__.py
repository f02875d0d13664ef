"""Which rows train on what: groups, splits, sampled rounds."""
