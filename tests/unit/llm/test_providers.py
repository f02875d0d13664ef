"""Reading what vendors send, whatever they send."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import pytest
from asking_tools import WORDS, llm_for, question
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import HostRefused, RequestError
from pipelines.llm.completions import Completion, read_completion, verdict_of
from pipelines.llm.factory import open_client
from pipelines.llm.money import ReportedUsage
from pipelines.llm.payload import Request, payload
from pipelines.llm.profiles import profiles
from pipelines.llm.providers.endpoint import MOST_IN_A_ROW, Endpoint, RequestFailed
from pipelines.settings import Llm


def body(content="好", *, finish="stop", usage=(9, 4), **message):
    told = {"prompt_tokens": usage[0], "completion_tokens": usage[1]} if usage else None
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    return json.dumps({"model": "served-1", "choices": [choice], "usage": told}).encode()


# Bodies


def test_a_plain_completion():
    assert read_completion(body()) == Completion("好", None, "stop", "served-1", usage=ReportedUsage(9, 0, 4))


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_the_chain_beside_the_content_is_kept_apart(name):
    found = read_completion(body(**{name: "先想一想"}))
    assert (found.content, found.reasoning) == ("好", "先想一想")


@pytest.mark.parametrize(
    ("content", "thinks", "apart"),
    [
        ("<think>想</think>\n\n好", False, ("好", "想")),
        ("  <think>\n想\n</think>好", True, ("好", "想")),
        ("想</think>好", True, ("好", "想")),  # the template has written the opening tag
        ("想</think>好", False, ("想</think>好", None)),
        ("<think>想到一半", True, ("", "想到一半")),
        ("好<think>想</think>", False, ("好<think>想</think>", None)),
        ("<think></think>好", False, ("好", None)),
    ],
)
def test_the_chain_at_the_head_of_the_content_is_split_off(content, thinks, apart):
    found = read_completion(body(content), thinks=thinks)
    assert (found.content, found.reasoning) == apart


def test_half_a_character_is_replaced():
    assert read_completion(body("好\ud83d")).content == "好\ufffd"
    assert read_completion(body("好\ud83d\ude00")).content == "好😀"


@pytest.mark.parametrize(
    ("usage", "found"),
    [
        (
            {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}},
            ReportedUsage(9, 5, 4),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 4, "prompt_cache_hit_tokens": 6}, ReportedUsage(9, 6, 4)),
        ({"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": None}, ReportedUsage(9, 0, 4)),
        (None, ReportedUsage()),
    ],
)
def test_tokens_that_were_cached_stand_in_two_places(usage, found):
    answer = json.loads(body())
    assert read_completion(json.dumps(answer | {"usage": usage}).encode()).usage == found


@pytest.mark.parametrize(
    ("more", "detail"),
    [({"finish": "content_filter", "content": ""}, "content_filter"), ({"refusal": "I cannot"}, "refusal")],
)
def test_a_refusal_is_a_verdict(more, detail):
    found = read_completion(body(**more))
    assert (found.verdict, found.detail) == ("refused", detail)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["choices", "message", "content", "usage", "error", "model", "code"]), inner)
    ),
)


@given(JSON)
def test_json_of_any_form_is_a_completion_or_said_to_be_none(noise):
    found = read_completion(json.dumps(noise).encode())
    assert isinstance(found.content, str)
    assert not found.readable or noise["choices"][0]["message"] is not None


@pytest.mark.parametrize("noise", [b"", b"\xff\xfe", b"<html>", b"[" * 100_000, b'{"choices":' + b"[" * 100_000])
def test_bytes_that_are_no_completion_are_said_to_be_none(noise):
    assert read_completion(noise) == Completion(readable=False)


@pytest.mark.parametrize(
    ("error", "verdict", "detail"),
    [
        ({"code": "content_filter", "message": "x"}, "refused", "content_filter"),
        ({"code": "data_inspection_failed"}, "refused", "content_filter"),
        ({"code": "invalid_request_error", "message": "Content Exists Risk"}, "refused", "content_filter"),
        ({"code": "context_length_exceeded"}, "too_long", "too_long_for_the_model"),
        ({"message": "This model's maximum context length is 8192 tokens."}, "too_long", "too_long_for_the_model"),
    ],
)
def test_a_400_about_the_text_is_a_verdict_that_can_be_read_again(error, verdict, detail):
    kept = verdict_of(json.dumps({"error": error}).encode(), lengthened=False)
    found = read_completion(kept)
    assert (found.verdict, found.detail, found.usage) == (verdict, detail, ReportedUsage(0, 0, 0, free=True))


LONG_REPLY = "max_tokens is too large: 32768. This model supports 16384."


def test_a_verdict_that_is_billed_says_its_usage():
    usage = {"prompt_tokens": 5000, "completion_tokens": 0}
    answer = read_completion(json.dumps({"error": {"code": "content_filter"}, "usage": usage}).encode())
    assert (answer.verdict, answer.usage) == ("refused", ReportedUsage(5000, 0, 0))


@pytest.mark.parametrize(
    "told", [json.dumps({"error": {"code": "invalid_value", "message": LONG_REPLY}}).encode(), b"<html>", b"[]", b""]
)
def test_another_400_is_the_requests_fault_unless_it_was_lengthened(told):
    assert verdict_of(told, lengthened=False) is None
    assert read_completion(verdict_of(told, lengthened=True)).verdict == "too_long"


def test_an_error_with_status_200_is_no_answer():
    assert not read_completion(b'{"error": {"code": "overloaded"}}').readable


# What a host means


@pytest.fixture
def line(tmp_path):
    llm = llm_for(tmp_path, "http://127.0.0.1:9/v1")
    made = Endpoint(profiles(llm.profiles)["stub"], llm)
    yield made
    asyncio.run(made.close())


def answered(line, status, error=None, headers=None, *, lengthened=False):
    asked = payload(question(1), line.profile)
    content = json.dumps({"error": error or {}}).encode()
    response = httpx2.Response(status, headers=headers or {}, content=content)
    return line.read_status(response, Request.of(asked, lengthened=lengthened))


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_help_is_tried_again_and_owes_nothing(line, status):
    with pytest.raises(RequestFailed) as caught:
        answered(line, status)
    assert (caught.value.status, caught.value.billed, caught.value.refusal) == (f"http_{status}", False, None)


@pytest.mark.parametrize("status", [401, 402, 403, 404, 405, 418])
def test_what_would_fail_again_ends_the_run(line, status):
    with pytest.raises(RequestFailed) as caught:
        answered(line, status, {"code": "no_such_thing", "message": WORDS})
    refusal = caught.value.refusal
    assert isinstance(refusal, HostRefused)
    assert f"{status} (no_such_thing)" in str(refusal)
    assert "127.0.0.1:9" in str(refusal)
    assert WORDS not in str(refusal)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_may_be_about_one_question_is_about_all_when_many_are_in_a_row(line, status):
    told = []
    for _ in range(MOST_IN_A_ROW):
        with pytest.raises(RequestFailed) as caught:
            answered(line, status, {"code": "no_such_thing", "message": WORDS})
        told.append(caught.value)
    assert {(one.status, one.billed, one.again) for one in told} == {(f"http_{status}", False, False)}
    assert [one.refusal for one in told[:-1]] == [None] * (MOST_IN_A_ROW - 1)
    refusal = str(told[-1].refusal)
    assert f"{status} (no_such_thing) to {MOST_IN_A_ROW} questions in a row" in refusal
    assert WORDS not in refusal


def test_an_account_without_credit_ends_the_run_although_it_says_400(line):
    with pytest.raises(RequestFailed) as caught:
        answered(line, 400, {"code": "billing_hard_limit_reached"})
    assert "top up" in str(caught.value.refusal)


@pytest.mark.parametrize("said", [WORDS, WORDS.split("，")[0], "x" * 61])
def test_a_code_that_is_no_word_is_not_repeated(line, said):
    with pytest.raises(RequestFailed) as caught:
        answered(line, 418, {"code": said})
    assert said not in str(caught.value.refusal)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_verdict_on_the_text_is_an_answer(line, status):
    assert read_completion(answered(line, status, {"code": "content_filter"})).verdict == "refused"
    assert read_completion(answered(line, status, lengthened=True)).verdict == "too_long"


NEVER = "Mon, 01 Jan 99999999999 00:00:00 GMT"


def in_a_minute():
    return format_datetime(datetime.now(UTC) + timedelta(seconds=60))


@pytest.mark.parametrize(
    ("told", "low", "high"),
    [("2.5", 2.5, 2.5), ("0", 0, 0), (None, 0, 0), ("soon", 0, 0), ("-3", 0, 0), (in_a_minute, 50, 60), (NEVER, 0, 0)],
)
def test_retry_after_in_seconds_or_as_a_date(line, told, low, high):
    told = told() if callable(told) else told
    with pytest.raises(RequestFailed) as caught:
        answered(line, 429, headers={"retry-after": told} if told else {})
    assert low <= caught.value.after <= high


def test_a_host_that_asks_to_come_back_tomorrow_ends_the_run(line):
    with pytest.raises(RequestFailed) as caught:
        answered(line, 429, headers={"retry-after": "86400"})
    assert "asks to wait 86400 s" in str(caught.value.refusal)


def test_the_key_of_another_host_is_never_sent(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-another")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-another")
    llm = llm_for(tmp_path, "http://127.0.0.1:9/v1")
    line = Endpoint(profiles(llm.profiles)["stub"], llm)
    sent = line.client.default_headers | line.client.auth_headers
    asyncio.run(line.close())
    assert "of-another" not in str(sent)


@pytest.mark.parametrize(("provider", "lacks"), [("openai", "home"), ("replay", r"llm\.recordings")])
def test_a_provider_says_what_it_needs(provider, lacks):
    with pytest.raises((ValueError, RequestError), match=lacks), open_client(None, Llm(), provider):
        pass
