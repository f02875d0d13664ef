"""The rules on every dialogue of SMILE and CPsyCounD, as the pipeline cleans them (needs ../shared/data)."""

import json
import random
from itertools import pairwise
from pathlib import Path

import pytest
from real_sets import REAL_SETS

from pipelines import rewrite
from pipelines.flow.runner import run_stage
from pipelines.flow.stages import STAGES
from pipelines.ingest.import_file import import_file
from pipelines.llm.label_sets import prompt
from pipelines.rewrite import judging, rewriting
from pipelines.rewrite.checks import spoiled
from pipelines.rewrite.copies import key
from pipelines.rewrite.rules.answers import ANSWERS
from pipelines.rewrite.scripts import Script, of_dialogue
from pipelines.settings import Settings
from pipelines.store import Store
from schemas.labels import TRAITS

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
        run_stage(stage, store, Settings())
        if "unique_dialogues" in stage.tables:
            break
    return [of_dialogue(row) for row in store.read("unique_dialogues").collect().iter_rows(named=True)]


def persona(*about: str) -> dict[str, float]:
    """Scores that hang on the dialogue, as those of a persona drawn for it would."""
    drawn = random.Random("\n".join(about))
    return {trait: round(drawn.uniform(0.1, 0.9), 2) for trait in TRAITS}


def asked(script: Script, *about: str) -> dict[str, object]:
    lines = [
        {"n": n, "who": line.who, "text": line.text, "strategies": list(line.strategies)}
        for n, line in enumerate(script.lines, 1)
    ]
    personas = {role: persona(script.row_id, role, *about) for role in ("seeker", "supporter")}
    return {"lang": script.lang, "lines": lines} | ({"personas": personas} if about else {})


@pytest.fixture(scope="module")
def rewrites(scripts: list[Script]) -> dict[str, list[list[str]]]:
    """By variant: R, and P with two personas drawn apart."""
    return {
        variant: [
            [line.text for line in rewriting.parse(ANSWERS["rewrite"](asked(script, *about)), script).lines]
            for script in scripts
        ]
        for variant, about in (("R", ()), ("P", ("one",)), ("another P", ("other",)))
    }


def test_all_dialogues_of_the_two_sets_are_there(scripts):
    assert len(scripts) > 580


@pytest.mark.parametrize("variant", ["R", "P", "another P"])
def test_what_the_rules_write_passes_the_filter_for_every_dialogue(scripts, rewrites, variant):
    told = {
        lang: prompt(f"rewrite{'' if variant == 'R' else '_persona'}.{lang}", rewrite.__file__).text
        for lang in ("zh", "en")
    }
    faults = {
        script.row_id: fault
        for script, written in zip(scripts, rewrites[variant], strict=True)
        if (fault := spoiled(script, written, told[script.lang]))
    }
    assert faults == {}


@pytest.mark.parametrize("variant", ["R", "P"])
def test_nearly_every_line_is_put_in_other_words(scripts, rewrites, variant):
    pairs = [
        (key(line.text), key(text))
        for script, written in zip(scripts, rewrites[variant], strict=True)
        for line, text in zip(script.lines, written, strict=True)
    ]
    long = [before != after for before, after in pairs if len(before) >= 8]
    assert sum(long) / len(long) >= 0.95


def test_another_persona_gives_another_text(rewrites):
    differ = [one != other for one, other in zip(rewrites["P"], rewrites["another P"], strict=True)]
    assert sum(differ) / len(differ) >= 0.9
    from_plain = [one != other for one, other in zip(rewrites["P"], rewrites["R"], strict=True)]
    assert sum(from_plain) / len(from_plain) >= 0.9


def test_the_rules_judge_their_own_rewrites_to_be_the_same(scripts, rewrites):
    assert scripts
    for script, written in zip(scripts, rewrites["P"], strict=True):
        lines = [
            {"n": n, "who": line.who, "before": line.text, "after": text, "strategies": list(line.strategies)}
            for n, (line, text) in enumerate(zip(script.lines, written, strict=True), 1)
        ]
        judged = judging.parse(ANSWERS["rewrite_judge"]({"lang": script.lang, "lines": lines}), script)
        assert (judged.same_meaning, judged.strategies_lost) == (True, []), script.row_id


def test_each_dialogue_is_caught_as_a_copy_of_itself(scripts):
    assert scripts
    for script in scripts:
        assert spoiled(script, [f"{line.text}！" for line in script.lines], "")[0] == "unchanged"


def test_a_dialogue_that_was_put_in_the_place_of_another_is_not_clean(scripts):
    """Facts, or a meaning that shares no words. Those of one group begin alike and may tell of the same."""
    passed = []
    pairs = [(one, other) for one, other in pairwise(scripts) if one.group_id != other.group_id]
    for one, other in pairs:
        written = [other.lines[n % len(other.lines)].text for n in range(len(one.lines))]
        lines = [
            {"n": n, "who": line.who, "before": line.text, "after": text, "strategies": []}
            for n, (line, text) in enumerate(zip(one.lines, written, strict=True), 1)
        ]
        judged = json.loads(ANSWERS["rewrite_judge"]({"lang": one.lang, "lines": lines}))
        passed.append(spoiled(one, written, "") is None and judged["same_meaning"])
    assert sum(passed) <= 0.01 * len(pairs)
