"""Samples that we wrote ourselves, and the replica of the sites that the demo and the tests crawl."""
