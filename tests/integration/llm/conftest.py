"""What the tests of asking share."""

from functools import partial

import pytest

from pipelines.llm.providers import ask, batch


@pytest.fixture
def short_waits(monkeypatch):
    """Who is told to come back later does so at once."""
    monkeypatch.setattr(ask, "RetryPolicy", partial(ask.RetryPolicy, first=0.01, longest=0.05, jitter=0.01))
    monkeypatch.setattr(batch, "Patience", partial(batch.Patience, first=0.02, longest=0.1, again=0.02))
