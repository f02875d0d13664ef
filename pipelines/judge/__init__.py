"""Judges of M's and C's rewards, as a service that training asks: any model of `pipelines.llm`."""
