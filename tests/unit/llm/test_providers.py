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
from pipelines.llm.providers.endpoint import MOST_IN_A_ROW, Endpoint
from pipelines.llm.providers.retry import RequestFailed, retry_after, should_retry
from pipelines.settings import Llm


def body(content="好", *, finish="stop", usage=(9, 4), **message):
    told = {"prompt_tokens": usage[0], "completion_tokens": usage[1]} if usage else None
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    return json.dumps({"model": "served-1", "choices": [choice], "usage": told}).encode()


# Bodies


def test_a_completion_and_the_chain_in_it_or_beside_it():
    assert read_completion(body()) == Completion("好", None, "stop", "served-1", usage=ReportedUsage(9, 0, 4))
    assert read_completion(body("好\ud83d")).content == "好\ufffd"
    for name in ("reasoning_content", "reasoning"):
        assert read_completion(body(**{name: "先想一想"})).reasoning == "先想一想"
    for content, thinks, apart in (
        ("<think>想</think>\n\n好", False, ("好", "想")),
        ("想</think>好", True, ("好", "想")),  # the template has written the opening tag
        ("想</think>好", False, ("想</think>好", None)),
        ("<think>想到一半", True, ("", "想到一半")),
        ("好<think>想</think>", False, ("好<think>想</think>", None)),
        ("<think></think>好", False, ("好", None)),
    ):
        found = read_completion(body(content), thinks=thinks)
        assert (found.content, found.reasoning) == apart, content


def test_tokens_that_were_cached_stand_in_two_places_and_what_is_no_count_is_not_told():
    counts = {"prompt_tokens": 9, "completion_tokens": 4}
    for usage, found in (
        (counts | {"prompt_tokens_details": {"cached_tokens": 5}}, ReportedUsage(9, 5, 4)),
        (counts | {"prompt_cache_hit_tokens": 6}, ReportedUsage(9, 6, 4)),
        (counts | {"prompt_tokens_details": None}, ReportedUsage(9, 0, 4)),
        (counts | {"completion_tokens": 10**30}, ReportedUsage(9, 0, None)),
        ({"prompt_tokens": 5.7, "completion_tokens": True}, ReportedUsage()),
        ({"completion_tokens": 4}, ReportedUsage(None, 0, 4)),
        (["odd"], ReportedUsage()),
        (None, ReportedUsage()),
    ):
        answer = json.loads(body()) | {"usage": usage}
        assert read_completion(json.dumps(answer).encode()).usage == found


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


def test_bytes_that_are_no_completion_are_said_to_be_none():
    overloaded = b'{"error": {"code": "overloaded"}}'
    for noise in (b"", b"\xff\xfe", b"<html>", b'{"choices":' + b"[" * 100_000, overloaded):
        assert read_completion(noise) == Completion(readable=False)


def test_a_400_about_the_text_is_a_verdict_that_can_be_read_again_and_so_is_a_refusal():
    for error, verdict, detail in (
        ({"code": "content_filter", "message": "x"}, "refused", "content_filter"),
        ({"code": "invalid_request_error", "message": "Content Exists Risk"}, "refused", "content_filter"),
        ({"code": "context_length_exceeded"}, "too_long", "too_long_for_the_model"),
        ({"message": "This model's maximum context length is 8192 tokens."}, "too_long", "too_long_for_the_model"),
    ):
        kept = verdict_of(json.dumps({"error": error}).encode(), lengthened=False)
        found = read_completion(kept)
        assert (found.verdict, found.detail, found.usage) == (verdict, detail, ReportedUsage(0, 0, 0, free=True))
    billed = {"error": {"code": "content_filter"}, "usage": {"prompt_tokens": 5000, "completion_tokens": 0}}
    assert read_completion(json.dumps(billed).encode()).usage == ReportedUsage(5000, 0, 0)
    refusals = [read_completion(body("", finish="content_filter")), read_completion(body(refusal="I"))]
    assert [(one.verdict, one.detail) for one in refusals] == [("refused", "content_filter"), ("refused", "refusal")]


LONG_REPLY = "max_tokens is too large: 32768. This model supports 16384."


def test_another_400_is_the_requests_fault_unless_it_was_lengthened():
    for told in (json.dumps({"error": {"code": "invalid_value", "message": LONG_REPLY}}).encode(), b"<html>", b""):
        assert verdict_of(told, lengthened=False) is None
        assert read_completion(verdict_of(told, lengthened=True)).verdict == "too_long"


# What a host means


@pytest.fixture
def line(tmp_path, monkeypatch):
    for name in ("API_KEY", "ORG_ID", "PROJECT_ID"):  # as for OpenAI's own host
        monkeypatch.setenv(f"OPENAI_{name}", "of-another")
    llm = llm_for(tmp_path, "http://127.0.0.1:9/v1")
    made = Endpoint(profiles(llm.profiles)["stub"], llm)
    yield made
    asyncio.run(made.close())


def answered(line, status, error=None, headers=None, *, lengthened=False):
    response = httpx2.Response(status, headers=headers or {}, content=json.dumps({"error": error or {}}).encode())
    return line.read_status(response, Request.of(payload(question(1), line.profile), lengthened=lengthened))


def failed(line, *args, **more):
    with pytest.raises(RequestFailed) as caught:
        answered(line, *args, **more)
    return caught.value


def test_what_may_help_is_tried_again_and_owes_nothing(line):
    for status in (408, 409, 425, 429, 500, 503, 529):
        failure = failed(line, status)
        assert (failure.status, failure.billed, failure.refusal) == (f"http_{status}", False, None)
        assert should_retry(failure) is True
    assert should_retry(failed(line, 429, headers={"retry-after": "2.5"})) == 2.5


def test_what_would_fail_again_ends_the_run(line):
    for status, error, said in (
        (401, {"code": "no_such_thing", "message": WORDS}, "401 (no_such_thing)"),
        (418, {"code": WORDS}, "418"),  # a code that is no word is not repeated
        (418, {"code": "x" * 61}, "418"),
        (400, {"code": "billing_hard_limit_reached"}, "top up"),  # whatever the status
    ):
        refusal = failed(line, status, error).refusal
        assert isinstance(refusal, HostRefused)
        assert said in str(refusal)
        assert "127.0.0.1:9" in str(refusal)
        assert not any(word in str(refusal) for word in (WORDS, "x" * 61))
    assert "asks to wait 86400 s" in str(failed(line, 429, headers={"retry-after": "86400"}).refusal)


def test_what_may_be_about_one_question_is_about_all_when_many_are_in_a_row(line):
    told = [failed(line, 422, {"code": "no_such_thing", "message": WORDS}) for _ in range(MOST_IN_A_ROW)]
    assert {(one.status, one.billed, should_retry(one)) for one in told} == {("http_422", False, False)}
    assert [one.refusal for one in told[:-1]] == [None] * (MOST_IN_A_ROW - 1)
    refusal = str(told[-1].refusal)
    assert f"422 (no_such_thing) to {MOST_IN_A_ROW} questions in a row" in refusal
    assert WORDS not in refusal


def test_a_verdict_on_the_text_is_an_answer(line):
    for status in (400, 413, 422):
        assert read_completion(answered(line, status, {"code": "content_filter"})).verdict == "refused"
        assert read_completion(answered(line, status, lengthened=True)).verdict == "too_long"


def test_retry_after_in_seconds_or_as_a_date():
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60))
    never = "Mon, 01 Jan 99999999999 00:00:00 GMT"
    found = {told: retry_after({"retry-after": told}) for told in ("2.5", "0", "soon", "-3", never, in_a_minute)}
    assert 50 <= found.pop(in_a_minute) <= 60
    assert found == {"2.5": 2.5, "0": 0, "soon": 0, "-3": 0, never: 0}
    assert retry_after({}) == 0


def test_the_key_of_another_host_is_never_sent(line):
    assert "of-another" not in str(line.client.default_headers | line.client.auth_headers)


def test_a_provider_says_what_it_needs():
    for provider, lacks in (("openai", "home"), ("replay", r"llm\.recordings")):
        with pytest.raises((ValueError, RequestError), match=lacks):
            open_client(None, Llm(), provider).__enter__()
