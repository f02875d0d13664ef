"""The ledger: every request that left, what came back, what it cost."""
