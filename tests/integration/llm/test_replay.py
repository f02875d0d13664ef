"""Recordings: written from the ledger, answered from without a network, and never guessed."""

import json
import stat

import pytest
from asking_tools import asking, ledger_of, llm_for, question, questions, vendor_as

from pipelines.errors import RequestError, UnreadableFile
from pipelines.llm.factory import open_client
from pipelines.llm.providers.replay import _response, record


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A home in which twelve questions were asked, some of them repaired, and the file that was recorded from it."""
    home = tmp_path_factory.mktemp("recorded")
    with vendor_as(faults={"malformed": 0.4}, seed=3) as vendor:
        llm = llm_for(home, vendor.base_url)
        with asking(home, llm) as ask:
            replies = ask.ask("emotions", questions(12))
            ask.ask("topics", [question(99, text="另一个任务")])
        assert vendor.stats()["requests"] > 13
    path = home / "recordings" / "demo.jsonl"
    with ledger_of(home) as ledger:
        n = record(ledger, path, ["emotions"], extra=llm.profiles)
    return llm.model_copy(update={"recordings": path}), replies, n


def replayed(llm, asked, stage="emotions"):
    with open_client(None, llm, "replay") as ask:
        return ask.ask(stage, asked)


def test_what_was_recorded_is_answered_the_same_without_anybody(recorded):
    llm, replies, _ = recorded
    again = replayed(llm, questions(12))
    assert [(one.value, one.reason) for one in again] == [(one.value, one.reason) for one in replies]
    assert {one.reason for one in again} == {None, "invalid_reply"}  # with its repairs
    for one, other in zip(again, replies, strict=True):
        assert one.provenance.columns() == other.provenance.columns() | {"provider": "replay"}


def test_recordings_are_of_the_stages_that_were_named_say_where_they_are_from_and_are_for_their_owner_alone(recorded):
    llm, replies, n = recorded
    first, *others = map(json.loads, llm.recordings.read_text(encoding="utf-8").splitlines())
    assert 1 + len(others) == n >= len(replies)
    assert {one["stage"] for one in (first, *others)} == {"emotions"}
    assert stat.S_IMODE(llm.recordings.stat().st_mode) == 0o600
    assert [one.name for one in llm.recordings.parent.iterdir()] == [llm.recordings.name]
    assert first["provenance"].pop("recorded_at").endswith("+00:00")
    assert first["provenance"].items() >= {"host": "127.0.0.1", "served": "invented/stub"}.items()
    assert (first["request"]["model"], len(first["response"]["choices"])) == ("stub", 1)


def test_a_miss_is_an_error_that_says_what_and_how_to_record(recorded):
    llm, _, _ = recorded
    with pytest.raises(RequestError, match=r"1 of 3 questions of emotions .*[0-9a-f]{64}, asked of stub") as caught:
        replayed(llm, [question(0), question(500), question(1)])
    assert "gongqing ledger record FILE" in str(caught.value)


def test_a_recording_that_was_touched_is_named_by_its_line(recorded, tmp_path):
    llm, _, _ = recorded
    first, line, *others = llm.recordings.read_text(encoding="utf-8").splitlines()
    path = tmp_path / "touched.jsonl"
    another = line.replace("压力", "动力", 1)  # the request is another
    odd = line.replace('"prompt_tokens": ', '"prompt_tokens": NaN, "tokens": ')
    for touched in (another, odd, '{"key": "x"}', "[" * 100_000):
        path.write_text("\n".join([first, touched, *others]) + "\n", encoding="utf-8")
        with pytest.raises(UnreadableFile, match=r"touched\.jsonl, line 2"):
            replayed(llm.model_copy(update={"recordings": path}), questions(12))


def test_a_text_with_line_breaks_of_unicode_is_one_line(tmp_path):
    asked = question(1, text="一行\u2028又一行\u0085再一行")
    with vendor_as() as vendor:
        llm = llm_for(tmp_path, vendor.base_url)
        with asking(tmp_path, llm) as ask:
            (reply,) = ask.ask("emotions", [asked])
    path = tmp_path / "r.jsonl"
    with ledger_of(tmp_path) as ledger:
        assert record(ledger, path) == 1
    assert json.loads(path.read_text(encoding="utf-8"))["provenance"]["host"] == "unknown"  # nobody named the profile
    assert replayed(llm.model_copy(update={"recordings": path}), [asked])[0].value == reply.value


def test_a_ledger_without_answers_is_no_file_of_recordings(tmp_path):
    path = tmp_path / "r.jsonl"
    with ledger_of(tmp_path) as ledger, pytest.raises(RequestError, match="the ledger has no answers") as caught:
        record(ledger, path, ["topics"])
    assert "gongqing refresh --provider openai" in caught.value.hint
    assert not path.exists()


@pytest.mark.parametrize(
    "body", [b'{"cost": NaN}', b'{"cost": 1e999}', b'{"said": "\\ud800"}', b"[" * 9999, b'{"half', b"3"]
)
def test_a_body_that_no_json_can_hold_is_recorded_as_unreadable(body):
    assert _response(body) == {"unreadable": body.decode()}
