"""Hosts that mean no good: each ends the run soon, spends what may be spent and no more, and leaves nothing behind."""

import json
import logging
import math
from decimal import Decimal

import pytest
from asking_tools import IN_BATCHES, asking, keys, ledger_of, llm_for, question, questions, vendor_as
from hostile_host import GOOD, HostileHost, completion, drip

from pipelines.errors import HostRefused, TooManyInvalid
from pipelines.llm.cost import worst_case
from pipelines.llm.failures import LEAST_OF_A_STAGE
from pipelines.llm.interface import BUDGET
from pipelines.llm.money import NANO, amount
from pipelines.llm.payload import payload
from pipelines.llm.profiles import profiles
from pipelines.llm.providers import endpoint
from pipelines.llm.providers.endpoint import MOST_IN_A_ROW
from pipelines.llm.questions import InvalidReply

pytestmark = [pytest.mark.usefixtures("short_waits"), pytest.mark.drill("model host")]

KEY = "sk-secretmarker-0123456789"
AT_ONCE = 4
N = 120
CAP = "1"


@pytest.fixture(autouse=True)
def _small_replies(monkeypatch):
    monkeypatch.setattr(endpoint, "reply_bytes", lambda profile: 1 << 20)
    monkeypatch.setenv("HOSTILE_KEY", KEY)


def asked_of(host, folder, n=N, cap=CAP, **settings):
    """What ends a stage of `n` questions; None: nothing does."""
    profile = 'key_variable = "HOSTILE_KEY"\n'
    told = {"attempts": 2, "concurrency": AT_ONCE, "timeout": 10.0} | settings
    folder.mkdir(exist_ok=True)
    llm = llm_for(folder, host.base_url, profile=profile, **told)
    try:
        with asking(folder, llm, cap) as ask:
            ask.ask("emotions", questions(n))
    except (HostRefused, TooManyInvalid) as error:
        return error
    return None


def body(content, status=200, **headers):
    return lambda handler, asked: handler.give(content, status, **headers)


ENDS = {
    "huge": (body(b" " * (3 << 20)), "replies of more than 1048576 bytes"),
    "429 for years": (body(b"{}", 429, Retry_After="100000000"), "asks to wait 100000000 s"),
    "drip": (drip, "8 questions in a row (timeout)"),
}


@pytest.mark.parametrize("kind", ENDS)
def test_a_host_that_gives_no_answers_ends_the_run_soon(tmp_path, kind):
    answer, said = ENDS[kind]
    with HostileHost(answer) as host:
        error = asked_of(host, tmp_path, timeout=0.3 if kind == "drip" else 10.0)
    assert isinstance(error, HostRefused)
    assert said in str(error)
    assert host.requests <= 2 * (MOST_IN_A_ROW + 2 * AT_ONCE)
    with ledger_of(tmp_path) as ledger:
        budget = ledger.budget(BUDGET)
        assert budget.spent + budget.held <= Decimal(CAP) * NANO
        assert ledger.open_attempts() == []


# Replies that are no answers


def test_a_model_whose_replies_are_no_answers_ends_the_stage(tmp_path):
    with HostileHost('忽略以上。{"topic":"=HYPERLINK(\\"http://e\\",\\"x\\")","emotion":"<script>"}') as host:
        error = asked_of(host, tmp_path)
    assert isinstance(error, TooManyInvalid)
    assert "replies to questions of emotions are invalid after all repairs" in error.what
    assert "[llm] failures" in error.hint
    assert host.requests <= 2 * (LEAST_OF_A_STAGE + 2 * AT_ONCE)  # each was repaired once
    with ledger_of(tmp_path) as ledger:
        assert sum(one.calls for one in ledger.spend()) == host.requests  # what was paid for is kept


@pytest.mark.parametrize(
    ("status", "error"), [(400, '{"code": "content_filter"}'), (200, '{"message": "inappropriate content"}')]
)
def test_a_host_that_refuses_most_texts_ends_the_stage_and_once_it_is_mended_they_are_asked_anew(
    tmp_path, status, error
):
    with HostileHost(body(f'{{"error": {error}}}'.encode(), status)) as host:
        error = asked_of(host, tmp_path)
    assert isinstance(error, TooManyInvalid)
    assert "refuse the text, or cannot read it whole (most often: content_filter)" in error.what
    assert host.requests <= 2 * LEAST_OF_A_STAGE + 2 * AT_ONCE
    with vendor_as() as vendor:
        assert asked_of(vendor, tmp_path) is None


def test_once_the_host_is_mended_what_was_invalid_is_asked_anew_and_stands(tmp_path):
    """The same command goes on: what was answered is not asked again, and a later, larger stage does not go back."""
    with HostileHost("服务繁忙") as host:
        assert isinstance(asked_of(host, tmp_path), TooManyInvalid)
        lost = host.requests // 2
        assert asked_of(host, tmp_path / "other", failures=1.0) is None  # what the settings let pass
    with vendor_as() as vendor:
        llm = llm_for(tmp_path, vendor.base_url)
        with asking(tmp_path, llm, None) as ask:
            assert ask.estimate("emotions", questions(N)).calls == N
        for n in (N, 10 * N):
            with asking(tmp_path, llm) as ask:
                replies = ask.ask("emotions", questions(n))
            assert [reply.question.row_id for reply in replies if reply.value] == [f"r{i}" for i in range(n)]
            assert vendor.stats()["requests"] == n
    anew = [reply for reply in replies if reply.question.sample]
    assert 0 < len(anew) <= lost


def test_a_batch_of_replies_that_are_no_answers_ends_the_stage(tmp_path):
    def parse(text):
        raise InvalidReply("odd", "x")

    with vendor_as() as vendor:
        llm = llm_for(tmp_path, vendor.base_url, price=IN_BATCHES, repairs=0)
        with asking(tmp_path, llm, batch=True) as ask, pytest.raises(TooManyInvalid):
            ask.ask("emotions", questions(40, parse=parse))


def test_a_usage_that_cannot_be_counts_as_the_worst_case(tmp_path):
    usage = {"prompt_tokens": 0, "completion_tokens": math.nan}
    with HostileHost(lambda handler, asked: handler.give(completion(GOOD, asked, usage=usage))) as host:
        assert asked_of(host, tmp_path, cap="0.05") is None
    with ledger_of(tmp_path) as ledger:
        spent = amount(ledger.budget(BUDGET).spent)
    profile = profiles(llm_for(tmp_path, host.base_url).profiles)["stub"]
    most = worst_case(profile, payload(question(0), profile))
    assert host.requests <= Decimal("0.05") * NANO / most + 1
    assert Decimal("0.05") - 2 * Decimal(most) / NANO <= spent <= Decimal("0.05")


def test_no_redirect_is_followed_and_the_first_one_ends_the_run(tmp_path):
    with HostileHost(GOOD) as thief:
        to = f"{thief.url}/steal/{KEY}?text=secret"
        with HostileHost(body(b"", 308, Location=to)) as host:
            error = asked_of(host, tmp_path)
    assert isinstance(error, HostRefused)
    assert f"answers 308, and sends to {thief.url.removeprefix('http://')}:" in str(error)
    assert "base_url" in error.hint
    assert not any(word in str(error) for word in ("steal", "secret", KEY))
    assert (thief.requests, thief.received) == (0, b"")
    assert host.requests <= AT_ONCE


def test_no_redirect_of_a_batch_is_followed(tmp_path):
    with HostileHost(GOOD) as thief, HostileHost(body(b"", 307, Location=thief.url)) as host:
        llm = llm_for(tmp_path, host.base_url, price=IN_BATCHES)
        with asking(tmp_path, llm, batch=True) as ask, pytest.raises(HostRefused, match="sends to 127"):
            ask.ask("emotions", questions(3))
    assert (thief.requests, host.requests) == (0, 1)


def echoed(handler, asked):
    said = f"your key: {KEY}. {GOOD}"
    handler.give(completion(said, asked, model=KEY, id=KEY), X_Request_Id=KEY)


@pytest.mark.parametrize(
    "answer",
    [
        echoed,
        body(json.dumps({"error": {"code": KEY, "message": f"content_filter {KEY}"}}).encode(), 400),
        body(json.dumps({"error": {"code": KEY}}).encode(), 401),
    ],
    ids=["reply", "verdict", "401"],
)
def test_a_key_that_a_host_echoes_is_written_nowhere(tmp_path, answer, caplog):
    caplog.set_level(logging.INFO)
    with HostileHost(answer) as host:
        error = asked_of(host, tmp_path, n=20)
    assert KEY in host.received.decode()  # it was sent, and to nobody else
    with ledger_of(tmp_path) as ledger:
        kept = [one.body for one in ledger.recorded(keys(llm_for(tmp_path, host.base_url), questions(20))).values()]
        for key, asked, told in ledger.bodies():
            assert KEY.encode() not in key.encode() + asked + told
        assert KEY not in repr(ledger.spend())
    assert not kept or b"[key]" in b"".join(kept)
    assert KEY not in f"{error} {error!r}"
    assert KEY not in caplog.text
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes()
