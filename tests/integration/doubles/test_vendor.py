"""The vendor on loopback: its replies fit, its faults come as scripted, its book holds what it billed."""

import http.client
import json
import math
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from pipelines.settings import ROOT
from schemas.labels import EMOTIONS
from schemas.reasoning import Cer, Ecot
from schemas.taxonomy import TAXONOMY
from tests.doubles.vendor import Vendor
from tests.doubles.vendor.replies import reply

SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["a", "b"]},
        "n": {"type": "integer", "minimum": 1},
        "share": {"type": "number"},
        "yes": {"type": "boolean"},
        "texts": {"type": "array", "items": {"$ref": "#/$defs/Text"}, "minItems": 2},
        "none": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        "fixed": {"const": 7},
    },
    "$defs": {"Text": {"type": "string"}},
}


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


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("said", ["我最近压力很大，睡不着。", "I can not sleep, and I worry a lot.", "<answer>", ""])
def test_replies_of_our_grammars_can_be_read(lang, said):
    cer = Cer.parse(reply(asked({"lang": lang, "history": [{"role": "seeker", "text": said}]})))
    assert cer.lang == lang
    assert Ecot.parse(reply(asked({"question": said}))).answer
    chain = reply(asked({"question": said, "answer": "一段回答"}))
    assert chain.startswith("<empathy_think><L1>")
    assert chain.endswith("</L4></empathy_think>")


def test_replies_in_json_hold_what_was_asked_for():
    assert json.loads(reply(asked({"lang": "zh", "turns": []})))["verdict"] == "keep"
    assert json.loads(reply(asked({"unit": "post", "text": "难过"})))["emotion"] in EMOTIONS.zh
    topic = json.loads(reply(asked({"title": "失恋", "description": "走不出来"})))
    assert topic["subtopic"] in TAXONOMY[topic["topic"]]


def test_a_json_schema_gets_a_value_of_it():
    form = {"type": "json_schema", "json_schema": {"name": "X", "schema": SCHEMA}}
    found = json.loads(reply(asked({"anything": 1}, response_format=form)))
    assert found.keys() == SCHEMA["properties"].keys()
    assert found["kind"] in ("a", "b")
    assert (found["n"], found["none"], found["fixed"], len(found["texts"])) == (1, None, 7, 2)


def test_a_reply_follows_from_the_request_alone():
    one, other = asked({"question": "我睡不着，很累"}), asked({"question": "我和朋友吵架了"})
    assert reply(one) == reply(one) != reply(other)


def test_answers_of_others_go_before_its_own():
    assert reply(asked({"question": "x"}), {"ecot": lambda inputs: inputs["question"] * 2}) == "xx"
    assert reply(asked("no JSON at all")).startswith("（编造的回复）")


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


def test_a_reply_ends_where_its_room_does(vendor):
    (choice,) = post(vendor, asked({"question": "我睡不着"}, max_tokens=10))["choices"]
    assert choice["finish_reason"] == "length"
    assert len(choice["message"]["content"]) == 10


def test_a_model_that_reasons_gives_its_chain_apart(vendor):
    answer = post(vendor, asked({"question": "我睡不着"}) | {"model": "deepseek-r1"})
    message = answer["choices"][0]["message"]
    assert message["reasoning_content"].startswith("（编造的思路）")
    assert answer["usage"]["completion_tokens"] == len(message["content"] + message["reasoning_content"])


def test_greedy_bills_a_token_a_byte_and_all_the_room():
    payload = asked({"question": "我睡不着"})
    with Vendor(greedy=True, price_input=3, price_output=5) as vendor:
        usage = post(vendor, payload)["usage"]
        texts = [one["content"] for one in payload["messages"]]
        assert usage["prompt_tokens"] == sum(len(text.encode()) + 16 for text in texts)
        assert usage["completion_tokens"] == 500
        assert vendor.stats()["nano"] == usage["prompt_tokens"] * 3 + 500 * 5


def test_who_has_not_the_key_and_who_wants_another_model_is_refused():
    with Vendor(key="right", models=("m1",)) as vendor:
        for key, model, status in (("wrong", "m1", 401), ("right", "m2", 404)):
            with pytest.raises(urllib.error.HTTPError) as caught:
                post(vendor, asked({"question": "x"}) | {"model": model}, key)
            caught.value.close()
            assert caught.value.code == status
        assert post(vendor, asked({"question": "x"}), "right")
        assert vendor.stats()["requests"] == 1


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


def test_numbers_may_be_none(vendor):
    form = {"type": "json_schema", "json_schema": {"name": "X", "schema": SCHEMA}}
    vendor.change(faults={"nan": 1.0})
    try:
        told = [post(vendor, asked({"n": 1}, response_format=form)), post(vendor, asked("第3个"))]
    finally:
        vendor.change(faults={})
    numbers, words = (one["choices"][0]["message"]["content"] for one in told)
    found = json.loads(numbers)
    assert math.isnan(found["n"])
    assert math.isnan(found["share"])
    assert found["kind"] in ("a", "b")
    assert words.startswith("（编造的回复）")


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


def test_an_unknown_fault_is_refused():
    with pytest.raises(RuntimeError, match="no fault 418"):
        Vendor(faults={"418": 1.0}).start()


def test_it_counts_what_is_in_flight():
    with Vendor(latency=0.3) as vendor:
        host, port = vendor.url.removeprefix("http://").split(":")
        connections = [http.client.HTTPConnection(host, int(port), timeout=10) for _ in range(7)]
        for i, connection in enumerate(connections):
            connection.request("POST", "/v1/chat/completions", json.dumps(asked({"question": f"第{i}个"})))
        for connection in connections:
            assert connection.getresponse().status == 200
            connection.close()
        assert vendor.stats()["most_in_flight"] == vendor.stats()["connections"] == 7


def test_it_ends_with_whoever_started_it():
    code = (
        "import os, sys, time; from tests.doubles.vendor import Vendor; vendor = Vendor().start();"
        "print(vendor.url, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    url = parent.stdout.readline().strip()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    port = int(url.rsplit(":", 1)[1])
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return
        time.sleep(0.1)
    pytest.fail(f"the vendor outlived process {os.getpid()}'s child")
