"""The command line `gongqing`. It parses, calls, prints; heavy imports stand in the commands that need them."""

# Each registers its commands, and `gongqing --help` lists them in this order.
# isort: off
from pipelines.cli import pipeline, tables, review, releases, training, evaluate, home, ledger  # noqa: F401

# isort: on
from pipelines.cli.app import app, main

__all__ = ["app", "main"]
