"""The vendor on loopback: its replies fit, its faults come as scripted, its book holds what it billed."""

import http.client
import json
import urllib.error
import urllib.request

import pytest

from schemas.reasoning import Ecot
from tests.doubles.vendor import Vendor


def asked(inputs, **more):
    said = inputs if isinstance(inputs, str) else json.dumps(inputs, ensure_ascii=False)
    messages = [{"role": "system", "content": "说 JSON"}, {"role": "user", "content": said}]
    return {"model": "m1", "messages": messages, "max_tokens": 500, **more}


def post(vendor, payload, key=None, timeout=10):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(f"{vendor.base_url}/chat/completions", json.dumps(payload).encode(), headers)
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def vendor():
    with Vendor() as running:
        yield running


def test_it_answers_as_a_vendor_of_that_kind_and_writes_its_book(vendor):
    payload = asked({"question": "我睡不着"})
    before = vendor.stats()
    answers = [post(vendor, payload) for _ in range(2)]
    (choice,) = answers[0]["choices"]
    usage = answers[0]["usage"]
    assert answers[0]["model"] == "invented/m1"
    assert choice["finish_reason"] == "stop"
    assert usage["completion_tokens"] == len(choice["message"]["content"])
    after = vendor.stats()
    owed = usage["prompt_tokens"] * 2_500 + usage["completion_tokens"] * 10_000
    assert after["nano"] - before["nano"] == 2 * owed
    assert [2, 2, 2 * owed] in vendor.book().values()


@pytest.mark.parametrize(
    ("fault", "status"), [("429", 429), ("500", 500), ("refused", 400), ("timeout", None), ("cut", None)]
)
def test_what_brings_no_answer_is_not_billed(vendor, fault, status):
    before = vendor.stats()
    vendor.change(faults={fault: 1.0}, hang=0.1, retry_after=1.5)
    try:
        with pytest.raises((urllib.error.HTTPError, http.client.HTTPException, OSError)) as caught:
            post(vendor, asked({"question": f"{fault} 会怎样"}))
    finally:
        vendor.change(faults={})
    after = vendor.stats()
    assert after["nano"] == before["nano"]
    assert after["faults"][fault] == before["faults"].get(fault, 0) + 1
    if status is not None:
        assert caught.value.code == status
        assert caught.value.headers.get("Retry-After") == ("1.5" if fault == "429" else None)
        caught.value.close()


@pytest.mark.parametrize(
    ("fault", "reason"), [("length", "length"), ("malformed", "stop"), ("filter", "content_filter")]
)
def test_what_brings_a_bad_answer_is_billed(vendor, fault, reason):
    before = vendor.stats()["nano"]
    vendor.change(faults={fault: 1.0})
    try:
        (choice,) = post(vendor, asked({"question": f"{fault} 会怎样"}))["choices"]
    finally:
        vendor.change(faults={})
    assert choice["finish_reason"] == reason
    assert vendor.stats()["nano"] > before
    with pytest.raises(ValueError, match=r"missing|never closed"):
        Ecot.parse(choice["message"]["content"])


def test_faults_follow_from_the_seed():
    def statuses(seed):
        with Vendor(faults={"500": 0.5}, seed=seed) as vendor:
            found = []
            for i in range(40):
                try:
                    post(vendor, asked({"question": f"第{i}个"}))
                    found.append(200)
                except urllib.error.HTTPError as error:
                    error.close()
                    found.append(error.code)
            return found

    one = statuses(1)
    assert one == statuses(1) != statuses(2)
    assert 8 <= one.count(500) <= 32
