"""Asking models: what is asked, whom, at what price, and the ledger that has all of it."""
