"""Releases: what is in one, what it is checked for, how it is written."""
