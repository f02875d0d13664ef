"""Rewards: what an output of a policy is worth. Light: verl's workers import it, without Dagster and without polars."""
