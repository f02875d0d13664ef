"""What a call costs, and what it may cost at most, in nano-units (`pipelines.llm.money`).

What a call may cost at most is known before it is sent: no tokenizer makes more tokens of a text than it has bytes,
once it has been normalised as some tokenizers do.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pipelines.errors import UnknownPrice
from pipelines.llm.money import ReportedUsage, Usage
from pipelines.llm.payload import texts_of
from pipelines.llm.profiles import NANO_A_TOKEN, Profile, price

# At most, in the mean over a whole text: tokenizers of our day make a token of 1.5 to 2 characters of Chinese and of 4
# to 5 of English. A host that counts fewer tokens does not count.
CHARACTERS_A_TOKEN = 8
_RUN = re.compile(r"(.)\1+", re.S)
_HAN_RUN = re.compile("[\u4e00-\u9fff]+")  # these no normal form changes, reorders, or joins with what is beside them

# What a chat template puts around a message and before the answer, and what a host writes around a schema, at most:
# ours, several times what templates take.
AROUND_A_MESSAGE = 16
AROUND_A_REQUEST = 64
_PLAIN = {"role", "content"}  # the keys of a message of text
_OF_PLAIN = sum(map(len, _PLAIN))
# Made once: with other options than its own `json.dumps` makes one for every call.
_READ = json.JSONEncoder(ensure_ascii=False)


def cost(profile: Profile, usage: Usage, *, batch: bool = False) -> int:
    """What a call cost, in nano-units. In a batch cached tokens cost as much as others. Raises UnknownPrice."""
    known = price(profile)
    cached_price = known.input if batch or known.cached_input is None else known.cached_input
    cached = min(usage.cached, usage.prompt)
    per_million = (usage.prompt - cached) * known.input + cached * cached_price + usage.completion * known.output
    share = (known.batch if batch else None) or 1
    return int(per_million * NANO_A_TOKEN * share)


def worst_case(profile: Profile, payload: Mapping[str, Any], *, batch: bool = False) -> int:
    """The most that a call may cost, in nano-units. Raises UnknownPrice, as `bound` does."""
    return cost(
        profile, bound(payload, profile.image_tokens), batch=batch
    )  # no cached token costs more than another (`Price`)


def fewest(text: str) -> int:
    """Fewer tokens than this no tokenizer makes of a text: one for CHARACTERS_A_TOKEN characters, a run of the same one
    counting once (a token may be a whole line of blanks), and at least one for any text.
    """
    return max(len(_RUN.sub(r"\1", text)) // CHARACTERS_A_TOKEN, bool(text))


def owed(
    profile: Profile,
    reported: ReportedUsage,
    payload: Mapping[str, Any] | None,
    reserve: int,
    *,
    reply: str | None = None,
    batch: bool = False,
) -> tuple[Usage, int]:
    """The usage of a call that was billed, and what it cost, in nano-units.

    A count that is missing, or impossible (fewer tokens than such a text has), is taken at its worst case; where both
    are, or the `payload` is not known any more (None), the call costs its whole `reserve`. A usage that is `free` is
    believed. `reply` is all that the model wrote, its chain as well; None where nobody can read it.
    """
    least_prompt = max(1, sum(map(fewest, texts_of(payload or {}))))
    least = (least_prompt, 1 if reply is None else fewest(reply))
    prompt, completion = (
        count if count is not None and (reported.free or count >= fewest_tokens) else None
        for count, fewest_tokens in zip((reported.prompt, reported.completion), least, strict=True)
    )
    most = Usage(0, 0, 0) if payload is None else bound(payload, profile.image_tokens)
    counted = Usage(
        most.prompt if prompt is None else prompt,
        0 if prompt is None else reported.cached,
        most.completion if completion is None else completion,
    )
    missing = (prompt is None) + (completion is None)
    if missing == 2 or (missing and payload is None):
        return counted, reserve
    return counted, cost(profile, counted, batch=batch)


def bound(payload: Mapping[str, Any], image_tokens: int | None = None) -> Usage:
    """The most tokens that a payload may take: as many as its texts have bytes in UTF-8, and what a template adds, and
    as many out as it allows; and `image_tokens` for each picture.

    Raises UnknownPrice for a payload that does not say how long its reply may be, or holds more than text, or a picture
    where no limit of one is known.
    """
    messages = payload.get("messages", ())
    prompt = AROUND_A_REQUEST + sum(AROUND_A_MESSAGE + _text_bytes(message, image_tokens) for message in messages)
    for name, value in payload.items():
        if name != "messages" and isinstance(value, dict | list):  # a schema, tools: they are read as well
            prompt += _bytes(_READ.encode(value))
    limits = [payload[name] for name in ("max_tokens", "max_completion_tokens") if payload.get(name) is not None]
    if not limits:
        raise UnknownPrice(
            "a request that does not say how long its reply may be may cost anything",
            hint="give the model profile a max_tokens",
        )
    return Usage(prompt=prompt, cached=0, completion=max(limits) * (payload.get("n") or 1))


def _text_bytes(node: Any, image_tokens: int | None) -> int:
    """Bytes of all strings of a message, names of keys included, and what its pictures take."""
    if isinstance(node, str):
        return _bytes(node)
    if isinstance(node, dict):
        if node.keys() == _PLAIN and isinstance(node["content"], str):  # nearly all: looked at once
            return _OF_PLAIN + _bytes(node["role"]) + _bytes(node["content"])
        kind = node.get("type", "text")
        if kind == "image_url" and image_tokens is not None:
            return AROUND_A_MESSAGE + image_tokens
        if "content" not in node and "role" not in node and kind not in ("text", "function"):
            raise UnknownPrice(
                f"what a part of kind {kind!r} costs is not known before it is sent",
                hint="send text alone, or say in the profile how many image_tokens a picture takes at most",
            )
        return sum(len(name) + _text_bytes(value, image_tokens) for name, value in node.items())
    if isinstance(node, list):
        return sum(_text_bytes(one, image_tokens) for one in node)
    return len(str(node))


@lru_cache(maxsize=64)  # a stage sends the same prompt and schema with every question
def _bytes(text: str) -> int:
    """In UTF-8, as it is or normalised (Qwen's tokenizer does NFC, SentencePiece NFKC): what is longest."""
    as_it_is = len(text.encode())
    if text.isascii():
        return as_it_is
    rest = _HAN_RUN.sub("一", text)
    normalised = max(len(unicodedata.normalize(form, rest).encode()) for form in ("NFC", "NFKC"))
    return as_it_is + max(0, normalised - len(rest.encode()))
