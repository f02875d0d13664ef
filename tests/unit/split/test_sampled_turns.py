"""The rounds that are drawn from a dialogue, each with its history and the reply that really followed."""

from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from accounted import accounted
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_rows import dialogue, turn, unique_dialogues
from table_rows import frame, row_of

from pipelines.settings import Sampling
from pipelines.split.gaussian import round_probabilities, sample_rounds
from pipelines.split.turns import answered_rounds, sample_rewrites, sample_turns
from schemas.personas import RewrittenDialogues

CLIP = {"uri": "a.mp4", "kind": "video", "available": False, "needed": True}


def long(n_rounds: int) -> list[str]:
    return [f"{role}: {role}{number}" for number in range(1, n_rounds + 1) for role in ("seeker", "supporter")]


def sampled(*rows: dict[str, Any], **sampling: Any) -> list[dict[str, Any]]:
    return sample_turns(unique_dialogues(*rows), Sampling(**sampling))[0].to_dicts()


def test_a_round_is_a_seeker_turn_that_a_supporter_turn_answers():
    cases = {
        "kpk": [0],  # the last word of the seeker is not answered
        "pkp": [1],  # what a supporter says first opens no round
        "kpkp": [0, 2],
        "kkp": [1],  # should a source not have joined its turns
        "kpp": [0],
        "pk": [],
        "": [],
    }
    turns = {said: [turn("seeker: a" if who == "k" else "supporter: b") for who in said] for said in cases}
    assert {said: answered_rounds(of) for said, of in turns.items()} == cases


def test_labels_are_those_of_the_turns_they_belong_to():
    said = [
        turn("seeker: 一", emotion="sad"),
        turn("supporter: 甲", strategies=["Question"], origin="model"),
        turn("seeker: 二", emotion="calm"),
        turn("supporter: 乙", strategies=["Information", "Others"]),
    ]
    signs = [{"kind": "abuse", "rule": "violence"}]
    first, second = sampled(dialogue(1, *said, topic="家庭", situation="吵架", risk=signs, group_id="g7"))
    assert (first["emotion"], first["strategies"], first["reference_origin"]) == ("sad", ["Question"], "model")
    assert (second["emotion"], second["strategies"]) == ("calm", ["Information", "Others"])
    assert second["reference_origin"] == "human"
    for row in (first, second):
        copied = [row[name] for name in ("source", "lang", "topic", "situation", "risk", "group_id")]
        assert copied == ["s", "zh", "家庭", "吵架", signs, "g7"]


def test_media_are_needed_from_the_turn_that_has_them_on():
    """Where the source says that text does not do; that there are some is noted in any case."""
    for needed in (True, False, None):
        clip = CLIP | {"needed": needed}
        first = ["seeker: 一", turn("supporter: 甲", media=[clip])]  # not needed to write that reply
        turns = [*first, turn("seeker: 二", media=[clip]), "supporter: 乙", "seeker: 三", "supporter: 丙"]
        rows = sampled(dialogue(1, *turns))
        assert [row["has_media"] for row in rows] == [False, True, True]
        assert [row["needs_media"] for row in rows] == [False, bool(needed), bool(needed)]


def test_the_rounds_are_those_that_the_law_draws_by_the_settings_and_the_seed_and_the_others_say_so():
    for n_samples, centred, seed in ((3, False, 0), (1, False, 1), (12, False, 0), (20, True, 0), (3, True, 2)):
        frame, law = unique_dialogues(dialogue(1, *long(12))), round_probabilities(12, centred=centred)
        kept, dropped = sample_turns(frame, Sampling(n_samples=n_samples, centred=centred), seed)
        drawn = sample_rounds(12, n_samples, "s:1", seed, centred=centred)
        assert kept["round"].to_list() == drawn
        assert kept["probability"].to_list() == pytest.approx([law[number - 1] for number in drawn])
        assert kept["reference"].to_list() == [f"supporter{number}" for number in drawn]
        assert dropped.rows() == [
            ("sampled_turns", "round", f"s:1#{number}", "not_sampled", f"{len(drawn)} of 12 rounds were drawn")
            for number in range(1, 13)
            if number not in drawn
        ]


def test_another_dialogue_moves_no_draw():
    alone = sampled(dialogue(1, *long(9)))
    among = sampled(*(dialogue(n, *long(n + 8)) for n in range(5, 0, -1)))
    assert [row for row in among if row["dialogue_id"] == "s:1"] == [row | {"group_id": "g4"} for row in alone]


SPEAKERS = st.lists(st.sampled_from(["seeker", "supporter"]), min_size=2, max_size=16).filter(
    lambda said: ("seeker", "supporter") in pairwise(said)
)


@settings(deadline=None, max_examples=25)
@given(st.lists(SPEAKERS, max_size=4), st.integers(1, 4), st.integers(0, 3))
def test_whatever_was_said_every_round_is_drawn_or_accounted_for(drawn: list[list[str]], wanted: int, seed: int):
    rows = [dialogue(n, *(f"{who}: {place}" for place, who in enumerate(said))) for n, said in enumerate(drawn)]
    frame = unique_dialogues(*rows)
    before = frame.clone()
    kept, _ = accounted("sampled_turns", ("round",), [frame], sample_turns(frame, Sampling(n_samples=wanted), seed))
    assert frame.equals(before)
    turns = {row["dialogue_id"]: row["turns"] for row in rows}
    for row in kept.iter_rows(named=True):
        said, length = turns[row["dialogue_id"]], len(row["history"])
        assert [one["text"] for one in row["history"]] == [one["text"] for one in said[:length]]
        assert row["history"][-1]["role"] == "seeker"
        assert (said[length]["role"], said[length]["text"]) == ("supporter", row["reference"])
    per_dialogue = dict(kept.group_by("dialogue_id").len().iter_rows())
    assert per_dialogue == {row["dialogue_id"]: min(wanted, row["n_rounds"]) for row in rows}
    assert sample_turns(frame, Sampling(n_samples=wanted), seed)[0].equals(kept)


# --- rewritten dialogues


def rewriting(source: dict[str, Any], variant: str, **more: Any) -> dict[str, Any]:
    """A source, rewritten: a copy (D), or every turn in other words, without clips."""
    turns = source["turns"]
    if variant != "D":
        turns = [one | {"text": one["text"] + variant, "origin": "model", "media": []} for one in turns]
    ids = {"dialogue_id": f"{source['dialogue_id']}~{variant}", "source_dialogue_id": source["dialogue_id"]}
    return row_of(RewrittenDialogues, **ids, variant=variant, turns=turns, **more)


def rewritten(
    *rows: dict[str, Any], sources: list[dict[str, Any]], **sampling: Any
) -> tuple[pl.DataFrame, pl.DataFrame]:
    frames = frame(RewrittenDialogues, *rows), unique_dialogues(*sources)
    result = sample_rewrites(*frames, Sampling(**sampling), 5)
    return accounted("sampled_rewrites", ("round",), [frames[0]], result)


@settings(deadline=None, max_examples=25)
@given(st.lists(SPEAKERS, min_size=1, max_size=4), st.integers(1, 4), st.sets(st.sampled_from("DRP"), min_size=1))
def test_all_variants_have_the_rounds_of_their_source_and_copies_its_words(
    drawn: list[list[str]], wanted: int, variants: set[str]
):
    sources = [dialogue(n, *(f"{who}: {place}" for place, who in enumerate(said))) for n, said in enumerate(drawn)]
    rows = [rewriting(one, variant, group_id="older") for one in sources for variant in sorted(variants)]
    kept, dropped = rewritten(*rows, sources=sources, n_samples=wanted, variants=("none", *"DRP"))
    of_sources = sample_turns(unique_dialogues(*sources), Sampling(n_samples=wanted), 5)[0]
    key = ["source_dialogue_id", "round"]
    same = ["probability", "n_rounds", "strategies", "emotion", "group_id", "source", "risk", "under_18"]
    for variant in variants:
        of_variant = kept.filter(variant=variant)
        both = of_variant.join(of_sources, left_on=key, right_on=["dialogue_id", "round"], suffix="_of_source")
        assert both.height == of_variant.height == of_sources.height
        assert set(both["dialogue_id"]) == {f"{one['dialogue_id']}~{variant}" for one in sources}
        names = [*same, *(["history", "reference", "reference_origin"] if variant == "D" else [])]
        assert [name for name in names if not both[name].equals(both[f"{name}_of_source"])] == []
        if variant != "D":
            assert (both["reference"] == both["reference_of_source"] + variant).all()
            assert set(both["reference_origin"]) == {"model"}
    assert set(dropped["reason"]) <= {"not_sampled"}


def test_a_rewriting_needs_the_clips_that_its_source_needs():
    source = dialogue(1, turn("seeker: 一", media=[CLIP]), "supporter: 甲")
    kept, _ = rewritten(rewriting(source, "P"), sources=[source])
    assert kept.select("needs_media", "has_media").rows() == [(True, True)]


def test_a_variant_that_is_not_wanted_and_one_whose_source_has_gone_or_changed_are_dropped_round_by_round():
    first, second, third = (dialogue(n, *long(2)) for n in (1, 2, 3))
    rows = [rewriting(first, "R"), rewriting(first, "P"), rewriting(second, "P"), rewriting(third, "P")]
    kept, dropped = rewritten(*rows, sources=[first, third | {"turns": third["turns"][:-2], "n_rounds": 1}])
    assert kept["dialogue_id"].unique().to_list() == ["s:1~P"]
    assert dropped.select("row_id", "reason", "detail").rows() == [
        *((f"s:1~R#{number}", "variant_not_wanted", "R") for number in (1, 2)),
        *((f"s:{n}~P#{number}", "source_lost", f"s:{n}") for n in (2, 3) for number in (1, 2)),
    ]
