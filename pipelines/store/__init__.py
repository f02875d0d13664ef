"""Versioned Parquet tables: write, read, list, diff, promote (DESIGN §2.3)."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.store.store import Store as Store
    from pipelines.store.store import Version as Version


def __getattr__(name: str) -> Any:
    """`Store` and `Version`, imported when first used: importing this package does not import polars."""
    if name in {"Store", "Version"}:
        from pipelines.store import store

        return getattr(store, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
