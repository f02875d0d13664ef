"""The vendor on loopback: its replies fit, its faults come as scripted, its book holds what it billed."""

import http.client
import json
import urllib.error
import urllib.request

import pytest

from schemas.reasoning import Ecot
from tests.doubles.vendor import Vendor


def post(vendor, question):
    messages = [{"role": "user", "content": json.dumps({"question": question})}]
    body = json.dumps({"model": "m1", "messages": messages, "max_tokens": 500}).encode()
    with urllib.request.urlopen(f"{vendor.base_url}/chat/completions", body, timeout=10) as answer:
        return json.load(answer)


@pytest.fixture
def vendor():
    with Vendor() as running:
        yield running


def test_it_answers_as_a_vendor_of_that_kind_and_writes_its_book(vendor):
    answer, _ = (post(vendor, "我睡不着") for _ in range(2))
    (choice,), usage = answer["choices"], answer["usage"]
    assert (answer["model"], choice["finish_reason"]) == ("invented/m1", "stop")
    assert usage["completion_tokens"] == len(choice["message"]["content"])
    owed = 2 * (usage["prompt_tokens"] * 2_500 + usage["completion_tokens"] * 10_000)
    assert vendor.stats()["nano"] == owed
    assert [*vendor.book().values()] == [[2, 2, owed]]


def test_what_brings_no_answer_is_not_billed(vendor):
    for fault, status in (("429", 429), ("500", 500), ("refused", 400), ("timeout", None), ("cut", None)):
        before = vendor.stats()["nano"]
        vendor.change(faults={fault: 1.0}, hang=0.1, retry_after=1.5)
        with pytest.raises((urllib.error.HTTPError, http.client.HTTPException, OSError)) as caught:
            post(vendor, f"{fault} 会怎样")
        assert (vendor.stats()["nano"], vendor.stats()["faults"][fault]) == (before, 1)
        if status is not None:
            with caught.value as error:
                assert (error.code, error.headers.get("Retry-After")) == (status, "1.5" if fault == "429" else None)


def test_what_brings_a_bad_answer_is_billed(vendor):
    for fault, reason in (("length", "length"), ("malformed", "stop"), ("filter", "content_filter")):
        before = vendor.stats()["nano"]
        vendor.change(faults={fault: 1.0})
        (choice,) = post(vendor, f"{fault} 会怎样")["choices"]
        assert choice["finish_reason"] == reason
        assert vendor.stats()["nano"] > before
        with pytest.raises(ValueError, match=r"missing|never closed"):
            Ecot.parse(choice["message"]["content"])
