"""Rules held against posts that people labelled (docs/calibrating.md)."""
