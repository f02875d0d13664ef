"""Closed label sets: found by any of their names, never ambiguous, and wide enough for the sources."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import labels
from schemas.labels import SENTIMENTS, STAGES, STRATEGIES, Label, LabelSet

ALL_LABELS = st.sampled_from([(among, label) for among in (STAGES, SENTIMENTS, STRATEGIES) for label in among.labels])


def test_there_are_cs_eight_strategies_each_with_a_clause_on_what_it_is_and_cs_names_are_among_theirs():
    assert (len(STAGES.labels), len(STRATEGIES.labels)) == (3, 8)
    for among in (STAGES, STRATEGIES):
        means = [(label.means_en, label.means_zh) for label in among.labels]
        assert len({one for pair in means for one in pair if one}) == 2 * len(means)
        assert not [one for pair in means for one in pair if set(one) & set("()（）;；.。")], "a clause in parentheses"
    for name, wanted in (("progressive questioning", "Question"), ("emotional mapping", "Reflection of feelings")):
        label = STRATEGIES.find(name)
        assert label is not None
        assert label.en == wanted


def test_self_disclosure_is_of_the_moment_and_asks_for_no_past():
    """A model has none, and the prompts forbid making one up."""
    label = STRATEGIES.find("Self-disclosure")
    assert label is not None
    assert "no past made up" in label.means_en
    assert "不编造经历" in label.means_zh


@given(ALL_LABELS, st.data())
def test_a_label_is_found_by_every_name_whatever_the_case_and_the_white_space(
    one: tuple[LabelSet, Label], data: st.DataObject
):
    among, label = one
    name = data.draw(st.sampled_from([label.en, label.zh, *label.aliases]))
    gap = data.draw(st.sampled_from([" ", "  ", "\t", "_", "-", "\u3000"]))
    written = data.draw(st.sampled_from([str.upper, str.lower, str.title]))(name).replace(" ", gap)
    assert among.find(f" {written}\n") is label


@given(st.text(max_size=20))
def test_a_name_outside_the_set_is_no_label(name: str):
    plain = " ".join(name.replace("_", " ").replace("-", " ").split()).casefold()
    names = [each for label in STRATEGIES.labels for each in (label.en, label.zh, *label.aliases)]
    assert (STRATEGIES.find(name) is None) == (plain not in {each.replace("-", " ").casefold() for each in names})


def test_a_name_that_stands_for_two_labels_is_refused():
    for second in (Label("question", "问"), Label("Query", "问", ("asking_things",))):
        with pytest.raises(ValueError, match="stands for two labels"):
            LabelSet(Label("Question", "提问", ("Asking things",)), second)


def test_every_spelling_of_failed_esconv_resolves(shared: Path):
    dialogues = json.loads((shared / "en_strategy" / "FailedESConv.json").read_text(encoding="utf-8"))
    written = Counter(turn["annotation"].get("strategy") for one in dialogues for turn in one["dialog"])
    del written[None]
    resolved: Counter[str] = Counter()
    for name, count in written.items():
        label = STRATEGIES.find(name)
        assert label is not None, name
        resolved[label.en] += count
    assert set(resolved) == set(STRATEGIES.en)
    assert resolved["Question"] == written["Questions"] + written["Question"]


@given(st.lists(st.sampled_from([*STRATEGIES.en, "Interpretation", "hello"])))
def test_no_strategy_vanishes(names: list[str]):
    known, unknown = labels.normalise_strategies(names)
    assert set(known) | set(unknown) == set(names)
    assert len(known) + len(unknown) == len(set(names))
    told = labels.normalise_strategies(["建议", "Interpretation", "询问", "Suggestions", "Interpretation"])
    assert told == (["Providing Suggestions", "Question"], ["Interpretation"]), "in order"
