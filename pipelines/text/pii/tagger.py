"""A model for token classification beside the rules, read from a folder (`[cleaning] ner`).

The law that joins them: a span is replaced where the rules find it or the model is sure of it (a mean probability of
0.9 over its tokens). Neither takes back what the other found, but for persons whom everybody knows. Of places that a
model names, those below a city are replaced. docs/personal-data.md names published models that fit.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipelines.errors import RequestError
from pipelines.text.pii.persons import candidate, is_public
from pipelines.text.pii.spans import SPANS

SURE = 0.9
_OVERLAP = 32  # tokens that two windows of a long text share
_WINDOWS = 16  # read at once: a long text has hundreds
# What models call the entities that we know, in lower case; what they call a country or a city is not asked.
_KINDS = {
    "name": ("per", "person", "name", "nr", "people"),
    "employer": ("org", "organization", "organisation", "company", "government", "nt", "school", "hospital"),
    "address": ("loc", "location", "address", "ns", "scene", "fac"),
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}
_SCHOOL, _HOSPITAL = (
    re.compile("(?:大学|学院|学校|中学|小学|幼儿园|[一二三四五六七八九十附]中)$"),
    re.compile("(?:医院|诊所|[一二三]院)$"),
)
_BELOW_A_CITY = re.compile("(?:[县区镇乡村路街巷弄]|街道|大道|胡同|小区|花园|公寓|社区|[0-9号栋室楼])$")


class _Entity(NamedTuple):
    start: int  # characters
    end: int
    kind: str
    probability: float


def tagged(texts: pl.Series, folder: Path) -> pl.DataFrame:
    """Spans of what the model in `folder` is sure of in folded `texts`.

    Raises RequestError where torch or transformers is not installed, or the folder holds no such model.
    """
    found = [
        (row, len(text[: one.start].encode()), len(text[: one.end].encode()), kind, text[one.start : one.end].lower())
        for row, text in enumerate(texts)
        for one in _entities(text, *_loaded(folder))
        if one.probability >= SURE and (kind := _kind(text, one))
    ]
    return pl.DataFrame(found, schema=SPANS, orient="row")


def _kind(text: str, one: _Entity) -> str | None:
    span = text[one.start : one.end]
    if one.kind == "name":
        return None if len(span) < 2 or is_public(candidate(text, one.start, one.end)) else "name"
    if one.kind == "address":
        return "address" if _BELOW_A_CITY.search(span) else None
    return "school" if _SCHOOL.search(span) else "hospital" if _HOSPITAL.search(span) else "employer"


def _entities(text: str, tokenizer: Any, model: Any) -> Iterator[_Entity]:
    """The entities of a text, window by window; what two windows share may come twice."""
    import torch

    if not text:
        return
    read = tokenizer(
        text, truncation=True, max_length=min(tokenizer.model_max_length, 512), stride=_OVERLAP, padding=True,
        return_overflowing_tokens=True, return_offsets_mapping=True, return_tensors="pt",
    )  # fmt: skip
    places = read.pop("offset_mapping").tolist()
    read.pop("overflow_to_sample_mapping", None)
    best, labels = [], []
    for first in range(0, len(places), _WINDOWS):
        some = {name: values[first : first + _WINDOWS] for name, values in read.items()}
        with torch.inference_mode():
            chances, chosen = model(**some).logits.softmax(-1).max(-1)
        best += chances.tolist()
        labels += chosen.tolist()
    for of_window, chances, chosen in zip(places, best, labels, strict=True):
        names = [model.config.id2label[label] for label in chosen]
        yield from _joined(zip(of_window, chances, names, strict=True))


def _joined(tokens: Iterator[tuple[tuple[int, int], float, str]]) -> Iterator[_Entity]:
    """Tokens of one entity, in the notations BIO, BIOES and BMES or without any, as one."""
    start = end = 0
    kind, chances = "", list[float]()
    for (first, last), chance, label in tokens:
        if first == last:  # a mark of the tokenizer's
            continue
        place, _, name = label.rpartition("-")
        of = _KIND_OF.get(name.lower(), "")
        if of and of == kind and place not in ("B", "S") and first - end <= 1:
            end = last
            chances.append(chance)
            continue
        if kind:
            yield _Entity(start, end, kind, sum(chances) / len(chances))
        start, end, kind, chances = first, last, of, [chance]
    if kind:
        yield _Entity(start, end, kind, sum(chances) / len(chances))


@cache
def _loaded(folder: Path) -> tuple[Any, Any]:
    where = f"{folder} (setting cleaning.ner)"
    try:
        import torch  # noqa: F401 - transformers alone reads tokenizers, and no model
        from transformers import AutoModelForTokenClassification, AutoTokenizer
    except ModuleNotFoundError as error:
        raise RequestError(
            "a model is set, but torch and transformers are not installed",
            where=where,
            hint="pip install -r requirements/encoder.txt -c requirements/base.txt, or leave the setting out",
        ) from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, use_fast=True)
        model = AutoModelForTokenClassification.from_pretrained(str(folder), local_files_only=True).eval()
    except Exception as error:  # of a damaged folder it raises what its parsers happen to
        raise RequestError(
            "the folder holds no model for token classification that transformers can read",
            where=where,
            hint="load it with transformers by hand to see why, or download it again",
        ) from error
    known = {label.rpartition("-")[2].lower() for label in model.config.id2label.values()} & _KIND_OF.keys()
    if not known:
        raise RequestError(
            f"the model marks none of what is looked for: {', '.join(map(str, model.config.id2label.values()))}",
            where=where,
            hint=f"its labels should end with one of {', '.join(_KIND_OF)}",
        )
    return tokenizer, model
