"""C's three reward sets: the same verdicts of people, step by step, of the responses, and in one conversation."""

import json
from collections import Counter, defaultdict
from itertools import combinations, product

import polars as pl
import pytest
from accounted import accounted
from labelled_rows import REFERENCE, RESPONSE, candidate, label, tables, variant

from pipelines.judge.turns import STEPS, as_preference, read_choice, read_step, reference_first, system_prompt
from pipelines.rewrite.scripts import label_id
from pipelines.trainsets.labelled import labelled
from pipelines.trainsets.reward_sets import reward_samples
from schemas.labels import PREFERENCES

SETS = ("rm_process", "rm_outcome", "rm_unified")
each_set = pytest.mark.parametrize("name", SETS)
ONE = candidate()
SAID = label(ONE, right="TFT", preference="first")


def made(name, *arguments, seed=0, **split_of):
    found = tables(*arguments, **split_of)
    parents = [found["labels"], found["rewritten"]]
    return accounted(name, ("candidate",), parents, reward_samples(name, *labelled(**found), seed))


def verdicts(messages):
    return [message["content"] for message in messages if message["role"] == "assistant"]


def shown(messages):
    return [json.loads(message["content"]) for message in messages if message["role"] == "user"]


def test_a_step_is_a_sample_and_sees_the_steps_before_it():
    kept, _ = made("rm_process", [ONE], [SAID])
    assert kept["row_id"].to_list() == ["s:1#2/1/step1", "s:1#2/1/step2", "s:1#2/1/step3"]
    assert [verdicts(one) for one in kept["messages"]] == [["第一步正确。"], ["第二步不正确。"], ["第三步正确。"]]
    assert [[before["step"] for before in shown(one)[0]["before"]] for one in kept["messages"]] == [[], [1], [1, 2]]


def test_an_outcome_is_told_by_places():
    kept, _ = made("rm_outcome", [ONE], [SAID])
    [messages] = kept["messages"]
    [turn], [verdict] = shown(messages), verdicts(messages)
    better = read_choice(verdict)
    assert turn[better] == REFERENCE
    assert {turn["A"], turn["B"]} == {REFERENCE, RESPONSE}


def test_one_conversation_sees_every_verdict_before():
    kept, _ = made("rm_unified", [ONE], [SAID])
    [messages] = kept["messages"]
    assert [message["role"] for message in messages] == ["system", *["user", "assistant"] * 4]
    assert verdicts(messages)[:3] == ["第一步正确。", "第二步不正确。", "第三步正确。"]
    assert shown(messages)[-1][read_choice(verdicts(messages)[-1])] == REFERENCE


def test_a_verdict_stands_in_no_other_sample_but_in_later_turns_of_the_unified_one():
    """Over all 32 labels of one candidate: PRM and ORM judge independently, UnifiReward with what it has judged."""
    samples = defaultdict(list)  # by its part: the label, and the messages
    for right, preference in product(map("".join, product("TF", repeat=3)), PREFERENCES):
        for name in SETS:
            kept, _ = made(name, [ONE], [label(ONE, right=right, preference=preference)])
            for row_id, messages in kept.select("row_id", "messages").iter_rows():
                samples[row_id.rpartition("/")[2]].append(((*right, preference), messages))
    for place, part in enumerate(("step1", "step2", "step3", "outcome")):
        pairs = [*combinations(samples[part], 2)]
        assert len(pairs) == 32 * 31 / 2
        for (one, messages), (other, others) in pairs:
            assert messages[:-1] == others[:-1], (part, one, other)
            assert (messages == others) is (one[place] == other[place]), (part, one, other)
    unified = [json.dumps(messages) for _, messages in samples["unified"]]
    assert len(set(unified)) == len(unified) == 32


@each_set
def test_the_judge_is_told_what_it_is_in_the_language_of_the_dialogue(name):
    for lang in ("zh", "en"):
        one = candidate(lang=lang)
        kept, _ = made(name, [one], [label(one)])
        assert {messages[0]["content"] for messages in kept["messages"]} == {system_prompt(name, lang).text}


@each_set
def test_variants_carry_their_verdicts_and_their_group(name):
    kept, _ = made(name, [ONE], [SAID], (variant(ONE, SAID, "D"), variant(ONE, SAID, "R")))
    a_case = 3 if name == "rm_process" else 1
    assert Counter(kept["variant"]) == {"none": a_case, "D": a_case, "R": a_case}
    assert set(kept.select("group_id", "split").rows()) == {("g1", "train")}
    assert kept["row_id"].is_unique().all()
    assert set(kept.filter(variant="R")["made_from"]) == {"s:1~R#2/1"}


@each_set
def test_what_is_lost_is_dropped_with_its_reason(name):
    other = candidate(response="换了一句。")
    kept, dropped = made(name, [other], [SAID], (variant(ONE, SAID),))
    assert kept.is_empty()
    assert dropped.select("stage", "row_id", "reason").rows() == [
        (name, "s:1#2/1", "candidate_changed"),
        (name, "s:1~P#2/1", "source_lost"),
    ]


@each_set
def test_held_out_labels_are_rows_of_their_split_word_for_word_as_training_rows_are(name):
    learnt, _ = made(name, [ONE], [SAID])
    for split in ("validation", "test"):
        kept, _ = made(name, [ONE], [SAID], g1=split)
        assert set(kept["split"]) == {split}
        assert kept.drop("split").equals(learnt.drop("split"))


def test_the_seed_draws_the_places_and_nothing_else():
    found = tables([ONE], [SAID])
    places = {}
    for seed in range(20):
        [messages] = reward_samples("rm_outcome", *labelled(**found), seed)[0]["messages"]
        places[seed] = shown(messages)[0]["A"] == REFERENCE
        assert as_preference(read_choice(verdicts(messages)[0]), places[seed]) == "first"
    assert places == {seed: reference_first("s:1#2/1", seed) for seed in range(20)}
    assert set(places.values()) == {True, False}


def test_in_the_sample_home_the_sets_say_what_people_said(labelled_store):
    """Parsed as a reward will parse them, the three sets and the labels are one."""
    labels = {label_id(row): row for row in labelled_store.read("cer_labels").collect().to_dicts()}
    frames = {name: labelled_store.read(name).collect() for name in SETS}
    split_of = dict(labelled_store.read("splits").select("group_id", "split").collect().iter_rows())
    for name, frame in frames.items():
        assert frame["split"].to_list() == [split_of[group] for group in frame["group_id"]]
        variants = dict(frame.group_by("split").agg(pl.col("variant").unique().sort()).iter_rows())
        assert variants == {"train": ["D", "P", "R", "none"], "validation": ["none"], "test": ["none"]}
        assert set(frame["made_from"]) == set(frames["rm_unified"]["made_from"]), name
    for row in frames["rm_unified"].filter(pl.col("variant") == "none").iter_rows(named=True):
        said, label_of = verdicts(row["messages"]), labels[row["made_from"]]
        assert [read_step(said[step - 1], step) for step in STEPS] == [label_of[f"step{step}"] for step in STEPS]
        first = reference_first(row["made_from"])
        assert as_preference(read_choice(said[3]), first) == label_of["preference"]
        steps = frames["rm_process"].filter(made_from=row["made_from"]).sort("row_id")
        assert [verdicts(one) for one in steps["messages"]] == [[one] for one in said[:3]]
        [outcome] = frames["rm_outcome"].filter(made_from=row["made_from"])["messages"]
        assert verdicts(outcome) == said[3:]
