"""What the rooms of asking share. Pytest puts this folder on the path: the folders below use its calls and workers."""

from functools import partial

import pytest
from asking_tools import STUB

from pipelines.llm.providers import ask, batch


@pytest.fixture(scope="session", autouse=True)
def _stub_ends():
    yield
    STUB.stop()


@pytest.fixture
def short_waits(monkeypatch):
    """Who is told to come back later does so at once."""
    monkeypatch.setattr(ask, "RetryPolicy", partial(ask.RetryPolicy, first=0.01, longest=0.05, jitter=0.01))
    monkeypatch.setattr(batch, "Patience", partial(batch.Patience, first=0.02, longest=0.1, again=0.02))
