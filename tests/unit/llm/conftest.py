"""What the rooms of asking share."""

from llm_fixtures import _stub_ends, short_waits

__all__ = ["_stub_ends", "short_waits"]
