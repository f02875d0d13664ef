"""The filter after rewriting on every dialogue of SMILE and CPsyCounD, as the pipeline cleans them."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from fake_model import ANSWERS
from real_sets import REAL_SETS
from scripted import Scripted

from pipelines.flow.runner import Runner
from pipelines.flow.stages import STAGES
from pipelines.ingest.import_file import import_file
from pipelines.llm.questions import Question
from pipelines.rewrite import rewriting
from pipelines.rewrite.checks import first_fault
from pipelines.rewrite.scripts import Script, of_dialogue
from pipelines.settings import Settings
from pipelines.store import Store
from schemas.personas import Personas

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("real-rewrites")]

SETS = ("smile", "cpsycoun")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> list[Script]:
    """Every dialogue of the two sets that is left after cleaning and the search for near-duplicates."""
    home = tmp_path_factory.mktemp("real-rewrites")
    store = Store(home / "data")
    for reader in SETS:
        import_file(store, home, reader, shared / REAL_SETS[reader])
    for stage in STAGES:
        Runner(store, Settings()).run(stage)
        if "unique_dialogues" in stage.tables:
            break
    return [of_dialogue(row) for row in store.read("unique_dialogues").collect().iter_rows(named=True)]


def drafts(scripts: list[Script], answer: Callable[[Question[Any]], str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What is kept and dropped of rewrites in other words (R) that a function writes."""
    plan = rewriting.plan(scripts, [], Personas.create_empty(), ("R",), ("a",), seed=1)
    return plan.finish(Scripted(answer).ask(plan.questions))


def test_a_line_with_a_word_more_at_both_ends_passes_the_filter_for_every_dialogue(scripts):
    """The fake model changes no fact and writes no artefact, whatever it is given."""
    assert len(scripts) > 580, "all dialogues of the two sets are there"
    kept, dropped = drafts(scripts, lambda question: ANSWERS["rewrite"](question.inputs))
    assert dropped.to_dicts() == []
    assert kept.height == len(scripts)


def test_each_dialogue_is_caught_as_a_copy_of_itself(scripts):
    faults = {first_fault(script, [f"{text}！" for text in script.texts], "")[0] for script in scripts}
    assert faults == {"unchanged"}


def test_a_dialogue_that_was_put_in_the_place_of_another_is_not_clean(scripts):
    """Facts, or a meaning that shares no words. Those of one group begin alike and may tell of the same."""
    pairs = {one.row_id: (one, other) for one, other in pairwise(scripts) if one.group_id != other.group_id}
    assert len(pairs) > 500

    def another(question: Question[Any]) -> str:
        one, other = pairs[question.row_id.partition("~")[0]]
        said = [other.lines[n % len(other.lines)].text for n in range(len(one.lines))]
        lines = [{"n": n, "who": line.who, "text": said[n - 1]} for n, line in enumerate(one.lines, 1)]
        return json.dumps({"lines": lines}, ensure_ascii=False)

    kept, _ = drafts([one for one, _ in pairs.values()], another)
    assert kept.height <= 0.01 * len(pairs)
