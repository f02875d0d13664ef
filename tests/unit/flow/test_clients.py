"""Who answers: what was said, then the settings, then what a table stands by, then nobody."""

from contextlib import contextmanager
from decimal import Decimal

import pytest

from pipelines.errors import LedgerError, UnknownName
from pipelines.flow.clients import ClientPool
from pipelines.settings import Llm


@pytest.mark.parametrize(
    ("said", "settings", "standing", "answers"),
    [
        (None, None, None, None),
        (None, None, "rules", None),
        (None, None, "structural", None),
        (None, None, "openai", "openai"),
        (None, "replay", "openai", "replay"),
        ("written", "replay", "openai", "written"),
    ],
)
def test_who_answers(said, settings, standing, answers):
    assert ClientPool(None, Llm(provider=settings), provider=said).provider(standing) == answers


def test_the_presence_of_a_key_selects_nothing(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-something")
    assert ClientPool(None, Llm()).provider(None) is None


def test_money_needs_a_budget_and_nothing_else_does(tmp_path):
    without, with_one = ClientPool(tmp_path, Llm()), ClientPool(tmp_path, Llm(), budget=Decimal(1))
    assert [without.costs(name) for name in ("written", "replay", "openai")] == [False, False, True]
    assert not with_one.costs("openai")


def test_an_asker_is_opened_when_it_is_needed_and_once(tmp_path):
    with ClientPool(tmp_path, Llm()) as clients:
        assert list(tmp_path.iterdir()) == []
        assert clients.of("written") is clients.of("written")
        assert list(tmp_path.iterdir()) == []
        client = clients.of("openai")
        assert client is clients.of("openai")
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


def test_a_provider_that_there_is_not(tmp_path):
    with pytest.raises(UnknownName, match="did you mean 'openai'"):
        ClientPool(tmp_path, Llm(), provider="openia")


def test_several_may_be_told_how_far_a_stage_is():
    """The terminal for as long as a refresh lasts, Dagster's log for as long as its asset does."""
    heard: list[tuple[str, int]] = []

    class Ear:
        def __init__(self, name: str) -> None:
            self.name = name

        def update(self, stage, total, done, cached, failed, spent) -> None:
            heard.append((self.name, done))

    clients = ClientPool(None, Llm(), progress=Ear("terminal"))
    clients.update("topics", 3, 1, 0, 0, Decimal(0))
    with clients.telling(Ear("dagster")):
        clients.update("topics", 3, 2, 0, 0, Decimal(0))
    clients.update("topics", 3, 3, 0, 0, Decimal(0))
    assert heard == [("terminal", 1), ("terminal", 2), ("dagster", 2), ("terminal", 3)]
