"""Judges of M's and C's rewards, as a service that training asks: by any model of `pipelines.llm`, or by rules."""
