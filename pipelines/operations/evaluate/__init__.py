"""Evaluations: of models, of judges, of data; and their report."""
