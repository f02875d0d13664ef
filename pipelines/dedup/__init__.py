"""Duplicates: found, merged, and never lost."""
