"""Verbatim messages and pictures: asked once, kept by hash, replayed without the picture."""

from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest
from asking_tools import IN_BATCHES, asking, ledger_of, llm_for, question
from fake_model import FakeClient
from hostile_host import GOOD, HostileHost

from pipelines.errors import UnknownPrice
from pipelines.llm.factory import open_client
from pipelines.llm.images import Image
from pipelines.llm.providers.replay import record
from pipelines.llm.providers.written import key_of
from pipelines.llm.questions import Message

PIXELS = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
ENCODED = b64encode(PIXELS)


@pytest.fixture
def asked(tmp_path: Path):
    path = tmp_path / "face.png"
    path.write_bytes(PIXELS)
    said = (Message("system", "你在听一个人说话。"), Message("user", ["看这张照片", Image.of(path)]))
    return replace(question(1), messages=said)


def test_a_picture_is_sent_kept_by_its_hash_and_replayed_when_it_is_gone(tmp_path: Path, asked):
    with HostileHost(GOOD) as host:
        llm = llm_for(tmp_path, host.base_url, profile="image_tokens = 1500")
        with asking(tmp_path, llm) as ask:
            assert ask.estimate("emotions", [asked]).tokens_in > 1500
            [reply] = ask.ask("emotions", [asked])
            [again] = ask.ask("emotions", [asked])
        assert host.requests == 1
        assert ENCODED in host.received
    assert reply.value.emotion == "焦虑"
    assert again.provenance == reply.provenance
    asked.images[0].path.unlink()
    recordings = tmp_path / "recordings.jsonl"
    with ledger_of(tmp_path) as ledger:
        [exchange] = ledger.exchanges()
        assert record(ledger, recordings, extra=llm.profiles) == 1
    for kept in (exchange.payload, recordings.read_bytes()):
        assert asked.images[0].sha256.encode() in kept
        assert ENCODED not in kept
    with open_client(None, llm.model_copy(update={"recordings": recordings}), "replay") as ask:
        [replayed] = ask.ask("emotions", [asked])
    assert replayed.value == reply.value


def test_a_reply_is_repaired_with_the_picture_in_sight(tmp_path: Path, asked):
    with HostileHost("不是 JSON") as host:
        llm = llm_for(tmp_path, host.base_url, profile="image_tokens = 1500", failures=1.0)
        with asking(tmp_path, llm) as ask:
            [reply] = ask.ask("emotions", [asked])
        assert reply.reason == "invalid_reply"
        assert host.received.count(ENCODED) == host.requests == 2


def test_where_nobody_says_what_a_picture_takes_nothing_is_sent(tmp_path: Path, asked):
    with HostileHost(GOOD) as host:
        llm = llm_for(tmp_path, host.base_url)
        with asking(tmp_path, llm) as ask, pytest.raises(UnknownPrice, match="image_url") as caught:
            ask.ask("emotions", [asked])
        assert "image_tokens" in caught.value.hint
        assert host.requests == 0


def test_a_picture_that_is_gone_costs_nothing_and_leaves_the_others_their_answers(tmp_path: Path, asked):
    asked.images[0].path.unlink()
    with HostileHost(GOOD) as host:
        llm = llm_for(tmp_path, host.base_url, profile="image_tokens = 1500")
        with asking(tmp_path, llm) as ask:
            gone, there = ask.ask("emotions", [asked, question(2)])
        assert host.requests == 1
    assert (gone.reason, gone.detail) == ("no_answer", "picture_unreadable, tries: 1")
    assert there.value is not None
    with ledger_of(tmp_path) as ledger:
        assert ledger.open_attempts() == []
        assert ledger.taken("refresh") == sum(one.cost for one in ledger.spend()), "nothing is held for it"


def test_a_question_with_a_picture_goes_in_no_batch(tmp_path: Path, asked):
    """A batch is made of what the ledger holds."""
    with HostileHost(GOOD) as host:
        llm = llm_for(tmp_path, host.base_url, profile="image_tokens = 1500", price=IN_BATCHES)
        with asking(tmp_path, llm, batch=True) as ask:
            [reply] = ask.ask("emotions", [asked])
        assert reply.value is not None
        assert ENCODED in host.received
        assert b"/batches" not in host.received


def test_what_is_written_and_the_fake_model_know_a_question_by_its_messages(tmp_path: Path, asked):
    plain, other = replace(asked, messages=()), replace(asked, messages=asked.messages[1:])
    assert len({key_of(one) for one in (asked, plain, other)}) == 3
    assert key_of(plain) == key_of(question(1)), "what was written before is found"
    replies = FakeClient().ask("emotions", [asked, plain, other, asked])
    keys = [one.provenance.request_key for one in replies]
    assert keys[0] == keys[3]
    assert len(set(keys)) == 3
    assert all(one.value for one in replies)
