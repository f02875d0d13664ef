"""From the writer through both looks to the table: what the filter cannot see, a judge that reads takes out.

The writer is the fake model with one line of some dialogues spoiled; the judge is invented too: it reads who denies
that they want, can or know something, and whether a question is still asked.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from fake_model import ANSWERS
from rewrite_rows import Scripted

from pipelines.llm.questions import Question
from pipelines.rewrite import judging, rewriting
from pipelines.rewrite.rewritten import rewritten_dialogues
from pipelines.rewrite.scripts import scripts
from pipelines.store import Store
from schemas.annotations import CerLabels

_WILLS = re.compile("我(?=想|会|能|愿意|觉得|喜欢|知道)")
_WILLS_NOT = re.compile("我不(想|会|能|愿意|觉得|喜欢|知道)")
Line = dict[str, Any]


@pytest.fixture(scope="module")
def tables(sample_home) -> dict[str, pl.DataFrame]:
    store = Store(sample_home / "data")
    names = ("coherent_dialogues", "splits", "sampled_turns", "cer_candidates", "personas", "disc_profiles")
    return {name: store.read(name).collect() for name in names}


def contrary(line: Line) -> str | None:
    """The line denied: 我想 becomes 我不想, where the line does not say so anyhow."""
    denied = _WILLS.sub("我不", line["text"], count=1)
    new = set(_WILLS_NOT.findall(denied)) > set(_WILLS_NOT.findall(line["text"]))
    return denied if new and line["who"] == "seeker" else None


def stated(line: Line) -> str | None:
    """A question that is asked no more."""
    if "Question" in line["strategies"] and "？" in line["text"]:
        return re.sub("[吗呢呀]?？", "。", line["text"])
    return None


def writer(spoil: Callable[[Line], str | None], spoiled: set[str]) -> Callable[[Question[Any]], str]:
    """The fake model, of whose reply to every second question one line is spoiled, where it can be."""

    def write(question: Question[Any]) -> str:
        written = json.loads(ANSWERS["rewrite"](question.inputs))
        labels = [line["strategies"] for line in question.inputs["lines"]]
        for line, strategies in zip(written["lines"], labels, strict=True):
            other = spoil(line | {"strategies": strategies})
            if other is not None and other != line["text"]:
                line["text"] = other
                spoiled.add(question.row_id.partition("~")[0])
                break
        return json.dumps(written, ensure_ascii=False)

    return write


def reads(question: Question[Any]) -> str:
    lines = question.inputs["lines"]
    denied = [set(_WILLS_NOT.findall(line["after"])) - set(_WILLS_NOT.findall(line["before"])) for line in lines]
    lost = [
        line["n"]
        for line in lines
        if "Question" in line["strategies"] and "？" in line["before"] and "？" not in line["after"]
    ]
    same = not any(denied)
    why = "意思" if question.inputs["lang"] == "zh" else "who denies what"
    return json.dumps({"same_meaning": same, "strategies_lost": lost, "why": why}, ensure_ascii=False)


def through(
    tables: dict[str, pl.DataFrame], write: Callable[[Question[Any]], str]
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Drafts, rewritten dialogues and what was dropped of them."""
    names = ("coherent_dialogues", "splits", "sampled_turns", "cer_candidates")
    sources, lost = scripts(*(tables[name] for name in names), CerLabels.create_empty())
    profiled = rewriting.with_scores(tables["personas"], tables["disc_profiles"])
    writing = rewriting.plan(list(sources.values()), lost, profiled, ("P",), ("a",), seed=1)
    drafts, _ = writing.finish(Scripted(write).ask(writing.questions))
    looking = judging.plan(drafts, sources, ("b",))
    judgements, _ = looking.finish(Scripted(reads).ask(looking.questions))
    kept, dropped = rewritten_dialogues(drafts, judgements, tables["coherent_dialogues"], sources)
    return drafts, kept, dropped


@pytest.mark.parametrize(("spoil", "reason"), [(contrary, "judged_different"), (stated, "strategies_lost")])
def test_another_meaning_with_the_same_facts_is_taken_out_by_the_second_look(tables, spoil, reason):
    spoiled: set[str] = set()
    drafts, kept, dropped = through(tables, writer(spoil, spoiled))
    passed = spoiled & set(drafts["row_id"])
    assert len(passed) >= 3  # of these the filter sees nothing
    assert set(dropped.filter(reason=reason)["row_id"]) >= passed
    assert passed.isdisjoint(kept["source_dialogue_id"])


def test_what_was_not_spoiled_passes_both(tables):
    drafts, kept, dropped = through(tables, writer(lambda _: None, set()))
    assert kept.height + dropped.height == drafts.height
    assert kept.height >= 0.8 * drafts.height
