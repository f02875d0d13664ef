"""Reading the body of a chat completion, as all vendors of this kind write it, and of an error that is an answer."""

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pipelines.llm.money import MOST_TOKENS, ReportedUsage
from pipelines.llm.questions import TOO_LONG

# HTTP statuses that may be about one request alone: its text, its length, its form.
ABOUT_ONE = frozenset({400, 413, 422})

# Vendors say in a 400 that a filter took offence at the text, or that it is too long, each in their own words. Both
# are verdicts on this one text, which would be the same tomorrow, and no fault of the run.
_FILTERED = re.compile(
    r"content_?filter|content_policy|data_?inspection|content exists risk|inappropriate content", re.I
)
# Not that the longest reply which a profile allows is too large: that is so of every text.
_TOO_LONG = re.compile(
    r"context_length|maximum context|(?<!tokens is )(?<!tokens['`] is )too[_ ]large|too[_ ]long|range of input length",
    re.I,
)
_THOUGHT = re.compile(r"\s*<think>(.*?)(?:</think>|\Z)", re.S)
_END_OF_THOUGHT = "</think>"
_CODE = re.compile(r"[\w.-]{1,60}", re.ASCII)
_HALF = re.compile("[\ud800-\udfff]")
_MOST_NAME = 200
_UNREADABLE = (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Completion:
    """What matters of a body."""

    content: str = ""
    reasoning: str | None = None
    finish_reason: str | None = None
    served: str | None = None
    verdict: str | None = None  # in the place of a reply: `refused` or `too_long`
    detail: str | None = None
    usage: ReportedUsage = field(default_factory=ReportedUsage)
    readable: bool = True  # False: no completion, and paid for all the same

    @property
    def written(self) -> str | None:
        """All that the model wrote; None where nobody can read it."""
        return self.content + (self.reasoning or "") if self.readable else None


def read_completion(body: bytes, *, thinks: bool = False) -> Completion:
    """The completion in a body. Of a model that `thinks`, what is before ``</think>`` is its chain, opened or not."""
    usage = ReportedUsage()
    try:
        answer = json.loads(body)
        usage = _usage(answer.get("usage"))
        if not answer.get("choices") and "error" in answer:
            return _verdict(answer["error"], usage)
        choice = answer["choices"][0]
        message = choice["message"]
        content, reasoning = _split_thought(_text(message.get("content")), thinks)
        beside = _text(message.get("reasoning_content") or message.get("reasoning"))
        finish = _name(choice.get("finish_reason"))
        filtered = finish == "content_filter"
        return Completion(
            content=content,
            reasoning="\n".join(part for part in (beside, reasoning) if part) or None,
            finish_reason=finish,
            served=_name(answer.get("model")),
            verdict="refused" if filtered or message.get("refusal") else None,
            detail="content_filter" if filtered else "refusal" if message.get("refusal") else None,
            usage=usage,
        )
    except _UNREADABLE:
        return Completion(usage=usage, readable=False)


def verdict_of(body: bytes, *, lengthened: bool) -> bytes | None:
    """The body of a status in ABOUT_ONE as it is kept where it is a verdict on this one text, None where it is not; so
    is what a vendor says to a reply `lengthened` beyond what it can give.
    """
    try:
        words = json.dumps(json.loads(body)["error"])
    except _UNREADABLE:
        words = ""
    if _FILTERED.search(words) or _TOO_LONG.search(words):
        return body
    return b'{"error":{"code":"too_long"}}' if lengthened else None


def code_of(error: Any) -> str | None:
    """The code of an error, or of the error in a body, where it is a word. What else a host says may quote the text."""
    if isinstance(error, bytes):
        with suppress(*_UNREADABLE):
            error = json.loads(error)["error"]
    if not isinstance(error, dict):
        return None
    code = _CODE.fullmatch(str(error.get("code") or error.get("type") or ""))
    return code and code[0]


def _verdict(error: Any, usage: ReportedUsage) -> Completion:
    """What a vendor says of a text in the place of a reply. It is free, unless a usage is reported with it."""
    words = json.dumps(error)
    refused = _FILTERED.search(words) is not None
    if not refused and not _TOO_LONG.search(words):
        raise ValueError("an error that says nothing of the text")
    return Completion(
        finish_reason="content_filter" if refused else "length",
        verdict="refused" if refused else "too_long",
        detail="content_filter" if refused else TOO_LONG,
        usage=ReportedUsage(0, 0, 0, free=True) if usage == ReportedUsage() else usage,
    )


def _split_thought(content: str, thinks: bool) -> tuple[str, str | None]:
    """The content without the chain at its head, and the chain."""
    if thought := _THOUGHT.match(content):
        return content[thought.end() :].strip(), thought[1].strip()
    if thinks and _END_OF_THOUGHT in content:
        reasoning, _, rest = content.partition(_END_OF_THOUGHT)
        return rest.strip(), reasoning.strip()
    return content, None


def _text(value: Any) -> str:
    """A message's text: a string, parts of one, or nothing. Half a surrogate pair, which no table holds, becomes �."""
    if isinstance(value, list):
        value = "".join(_text(part.get("text")) for part in value)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _HALF.search(value) else value


def _name(value: Any) -> str | None:
    """A word of the host's as the ledger can hold it; None for what is no text."""
    return _text(value).replace("\0", "")[:_MOST_NAME] if isinstance(value, str) else None


def _usage(usage: Any) -> ReportedUsage:
    if not isinstance(usage, dict):
        return ReportedUsage()
    details = usage.get("prompt_tokens_details")
    cached = _count(usage.get("prompt_cache_hit_tokens"))
    if not cached and isinstance(details, dict):
        cached = _count(details.get("cached_tokens"))
    return ReportedUsage(_count(usage.get("prompt_tokens")), cached or 0, _count(usage.get("completion_tokens")))


def _count(value: Any) -> int | None:
    """A number of tokens; None for what is none: negative, no number, or more than any call has."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None
