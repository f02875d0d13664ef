"""Somebody is told: what there is to tell of a home, and messages to those who asked for them."""
