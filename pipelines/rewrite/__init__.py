"""Rewriting by personality (C): DISC profiles, personas by k-means, drafts, and a second look at each."""
