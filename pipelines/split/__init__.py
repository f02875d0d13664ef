"""Which rows train on what: splits, sampled rounds, which answers may be learnt from."""
