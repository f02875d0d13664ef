"""Duplicates: detected and merged; nothing that they hold is lost."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.dedup.duplicates import find_duplicates as find_duplicates
    from pipelines.dedup.duplicates import find_duplicates_in as find_duplicates_in
    from pipelines.dedup.minhash import signatures as signatures


def __getattr__(name: str) -> Any:
    """The calls, imported when first asked for: importing this package imports neither polars nor numba."""
    if name in {"find_duplicates", "find_duplicates_in"}:
        from pipelines.dedup import duplicates

        return getattr(duplicates, name)
    if name == "signatures":
        from pipelines.dedup.minhash import signatures

        return signatures
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
