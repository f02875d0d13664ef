"""Personal data: detected, replaced by typed placeholders, counted."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.text.pii.redaction import Redacted as Redacted
    from pipelines.text.pii.redaction import redact as redact


def __getattr__(name: str) -> Any:
    """`redact` and `Redacted`, imported when first asked for: importing this package does not import polars."""
    if name in ("redact", "Redacted"):
        from pipelines.text.pii import redaction

        return getattr(redaction, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
