"""Reading the body of a chat completion, as all vendors of this kind write it, and of an error that is an answer."""

import json
import re
from dataclasses import dataclass
from typing import Any

from pipelines.llm.money import Usage

# Vendors say in a 400 that a filter took offence at the text, or that it is too long, each in their own words. Both
# are verdicts on this one text, which would be the same tomorrow, and no fault of the run.
_FILTERED = re.compile(
    r"content_?filter|content_policy|data_?inspection|content exists risk|inappropriate content", re.I
)
_TOO_LONG = re.compile(r"context_length|maximum context|too[_ ]large|too[_ ]long|range of input length", re.I)
_THOUGHT = re.compile(r"\s*<think>(.*?)(?:</think>|\Z)", re.S)
_END_OF_THOUGHT = "</think>"


class UnreadableBody(ValueError):
    """Raised by `completion` for bytes that are no chat completion."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What matters of a body. `verdict` is set where the vendor gave one instead of a reply: `refused` or `too_long`.

    `usage` is None where the vendor tells none.
    """

    content: str = ""
    reasoning: str | None = None
    finish_reason: str | None = None
    served: str | None = None
    usage: Usage | None = None
    verdict: str | None = None
    detail: str | None = None


def completion(body: bytes, *, thinks: bool = False) -> Completion:
    """The completion in a body. Of a model that `thinks`, what stands before ``</think>`` is its chain, opened or not.

    Raises UnreadableBody.
    """
    try:
        answer = json.loads(body)
        if "choices" not in answer and "error" in answer:
            return _verdict(answer["error"])
        choice = answer["choices"][0]
        message = choice["message"]
        content, reasoning = _apart(_text(message.get("content")), thinks)
        beside = _text(message.get("reasoning_content") or message.get("reasoning"))
        finish = choice.get("finish_reason")
        refused = finish == "content_filter" or bool(message.get("refusal"))
        return Completion(
            content=content,
            reasoning="\n".join(part for part in (beside, reasoning) if part) or None,
            finish_reason=finish,
            served=answer.get("model"),
            usage=_usage(answer.get("usage")),
            verdict="refused" if refused else None,
            detail=None if not refused else "content_filter" if finish == "content_filter" else "refusal",
        )
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableBody(f"not a chat completion: {type(error).__name__}, {len(body)} bytes") from None


def verdict_of(body: bytes, *, lengthened: bool) -> bytes | None:
    """The body of a 400 or 413 as it is kept where it is a verdict on this one text, or None: the request is at fault.

    What a vendor says to a reply `lengthened` beyond what it can give is one as well.
    """
    try:
        error = json.loads(body)["error"]
        told = json.dumps(error)
    except (ValueError, KeyError, TypeError, RecursionError):
        error, told = {}, ""
    if _FILTERED.search(told) or _TOO_LONG.search(told):
        return body
    return b'{"error":{"code":"too_long"}}' if lengthened else None


def _verdict(error: Any) -> Completion:
    told = json.dumps(error)
    refused = _FILTERED.search(told) is not None
    if not refused and not _TOO_LONG.search(told):
        raise ValueError("an error that says nothing of the text")
    return Completion(
        finish_reason="content_filter" if refused else "length",
        usage=Usage(0, 0, 0),
        verdict="refused" if refused else "too_long",
        detail="content_filter" if refused else "too_long_for_the_model",
    )


def _apart(content: str, thinks: bool) -> tuple[str, str | None]:
    """The content without the chain at its head, and the chain."""
    if found := _THOUGHT.match(content):
        return content[found.end() :].strip(), found[1].strip()
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


_HALF = re.compile("[\ud800-\udfff]")


def _usage(told: Any) -> Usage | None:
    if not told:
        return None
    details = told.get("prompt_tokens_details") or {}
    cached = told.get("prompt_cache_hit_tokens") or details.get("cached_tokens") or 0
    return Usage(int(told["prompt_tokens"]), int(cached), int(told["completion_tokens"]))
