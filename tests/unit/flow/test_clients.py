"""Who answers: the argument, then the settings, then what a table stands by, then nobody."""

from contextlib import contextmanager
from decimal import Decimal
from unittest.mock import Mock

import pytest

from pipelines.errors import LedgerError, UnknownName
from pipelines.flow.clients import ClientPool
from pipelines.settings import Llm


def test_the_argument_the_settings_and_the_table_say_who_answers_and_a_key_does_not(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-something")
    for argument, settings, before, answers in [
        (None, None, None, None),
        (None, None, "rules", None),
        (None, None, "structural", None),
        (None, None, "openai", "openai"),
        (None, "replay", "openai", "replay"),
        ("written", "replay", "openai", "written"),
    ]:
        assert ClientPool(None, Llm(provider=settings), provider=argument).provider(before) == answers
    with pytest.raises(UnknownName, match="did you mean 'openai'"):
        ClientPool(None, Llm(), provider="openia")


def test_money_needs_a_budget_and_nothing_else_does(tmp_path):
    without, with_one = ClientPool(tmp_path, Llm()), ClientPool(tmp_path, Llm(), budget=Decimal(1))
    assert [without.costs(name) for name in ("written", "replay", "openai")] == [False, False, True]
    assert not with_one.costs("openai")


def test_a_client_is_opened_once_and_without_a_call_leaves_no_file(tmp_path):
    with ClientPool(tmp_path, Llm()) as clients:
        assert clients.of("openai") is clients.of("openai")
    assert list(tmp_path.iterdir()) == []


def test_what_was_opened_is_closed_where_the_ledger_cannot_be(tmp_path, monkeypatch):
    closed = []

    @contextmanager
    def opened(home, llm, provider, *_, **__):
        if provider == "openai":
            raise LedgerError("the ledger is damaged", where=home, hint="restore it")
        try:
            yield provider
        finally:
            closed.append(provider)

    monkeypatch.setattr("pipelines.flow.clients.open_client", opened)
    (tmp_path / "ledger.sqlite").touch()
    with pytest.raises(LedgerError, match="damaged"), ClientPool(tmp_path, Llm(), budget=Decimal(1)) as clients:
        clients.of("written")
    assert closed == ["written"]


def test_several_may_be_told_how_far_a_stage_is():
    """The terminal for as long as a refresh lasts, Dagster's log for as long as its asset does."""
    terminal, dagster = Mock(), Mock()
    clients = ClientPool(None, Llm(), progress=terminal)
    clients.update("topics", 3, 1, 0, 0, Decimal(0))
    with clients.telling(dagster):
        clients.update("topics", 3, 2, 0, 0, Decimal(0))
    clients.update("topics", 3, 3, 0, 0, Decimal(0))
    heard = [[call.args[2] for call in one.update.call_args_list] for one in (terminal, dagster)]
    assert heard == [[1, 2, 3], [2]]
