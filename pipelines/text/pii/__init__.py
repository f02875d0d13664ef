"""Personal data: detected, replaced by typed placeholders, counted."""

from pipelines.text.pii.redaction import Redacted as Redacted
from pipelines.text.pii.redaction import redact as redact
