"""Chains to imitate: E's to human answers, C's that people found right, under the prompts of the reinforcement."""

import datetime as dt
from typing import Any

import polars as pl
import pytest
from accounted import accounted
from labelled_rows import REFERENCE, STEPS, candidate, label, tables
from table_rows import frame as framed_as
from table_rows import row_of
from unique_rows import RISK, answer, post, posts, splits

from pipelines.llm.tasks import rows as framed
from pipelines.review.items import chain_hash
from pipelines.trainsets.labelled import labelled
from pipelines.trainsets.prompt_sets import cer_system_prompt, coe_prompts
from pipelines.trainsets.warm_starts import cer_samples, coe_samples
from schemas.annotations import CoeChains
from schemas.reasoning import Cer, Coe
from schemas.reviews import CoeReviews

CHAIN = {"L1": "委屈", "L2": "觉得都怪自己", "L3": "想被认可", "L4": "先倾听", "answer": "抱抱你。"}
PROVENANCE = {"provider": "openai", "model_asked": "m", "prompt_version": "p", "request_key": "k"}
POST = post(1, "我和室友吵架了", answer("s:1/0", "抱抱你。"))
ONE = candidate()


def chains(**more: Any) -> pl.DataFrame:
    row = {"post_id": "s:1", "group_id": "g1", "answer_id": "s:1/0", "author_role": "unknown", "draw_probability": 1.0}
    return framed(CoeChains, [row | CHAIN | PROVENANCE | {"reasoning": "想了想"} | more])


def review(verdict: str = "accept", task: str = "t1", question: str = POST["text"], **more: Any) -> dict[str, Any]:
    seen = chain_hash(chains().row(0, named=True), question)
    known = {"task_id": task, "post_id": "s:1", "answer_id": "s:1/0", "annotator": "u_1", "labelled": seen}
    known |= {"role": "annotator", "suggested": False}
    return row_of(CoeReviews, **known | {"verdict": verdict} | more)


def coe(
    post: dict[str, Any] | None = POST, split: str = "train", *reviews: dict[str, Any], only_reviewed: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame]:
    frame, said = chains(), framed_as(CoeReviews, *reviews)
    made = coe_samples(frame, posts(*([post] if post else [])), splits(g1=split), said, only_reviewed=only_reviewed)
    return accounted("sft_coe", ("post",), [frame], made)


def cer(*arguments: Any, **split_of: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    found = tables(*arguments, **split_of)
    made = cer_samples(found["candidates"], *labelled(**found))
    return accounted("sft_cer", ("candidate",), [found["candidates"], found["rewritten"]], made)


# --- E


def test_a_chain_is_taught_under_the_prompt_that_asks_for_it_later():
    [row] = coe()[0].to_dicts()
    prompt = coe_prompts(posts(POST), splits(g1="train"))[0]["prompt"][0]
    assert row["messages"][:2] == list(prompt)
    assert row["messages"][2]["role"] == "assistant"
    assert Coe.parse(row["messages"][2]["content"]) == Coe(**CHAIN)
    assert (row["row_id"], row["made_from"], row["group_id"]) == ("s:1/sft_coe", "s:1", "g1")
    assert (row["split"], row["variant"], row["providers"]) == ("train", "none", ["openai"])
    assert row["reviewed"] is False


def test_a_chain_that_may_not_teach_is_dropped():
    for row, split, reason in (
        (POST, "test", "not_train"),
        (POST, "validation", "not_train"),
        (POST | {"under_18": True}, "train", "under_18"),
        (POST | {"risk": RISK}, "train", "risk"),
        (None, "train", "no_question"),
    ):
        kept, dropped = coe(row, split)
        assert kept.is_empty()
        assert dropped.select("unit", "row_id", "reason").rows() == [("post", "s:1", reason)]


def learnt(*reviews: dict[str, Any], **more: bool) -> tuple[Coe, bool] | str:
    """The chain that is taught and whether it was reviewed, or why it is dropped."""
    kept, dropped = coe(POST, "train", *reviews, **more)
    if kept.is_empty():
        return str(dropped["reason"].item())
    return Coe.parse(kept["messages"][0][2]["content"]), kept["reviewed"].item()


def test_a_chain_is_taught_as_the_professional_left_it():
    assert learnt(review()) == (Coe(**CHAIN), True)
    assert learnt(review("mend", L2="不是她的错", L4="先安慰")) == (
        Coe(**CHAIN | {"L2": "不是她的错", "L4": "先安慰"}),
        True,
    )
    assert learnt(review("reject")) == "rejected"


def test_a_review_of_another_version_of_the_chain_counts_for_nothing():
    for other in (review("reject", question="别的问题"), review("reject", post_id="s:2")):
        assert learnt(other) == (Coe(**CHAIN), False)
        assert learnt(other, only_reviewed=True) == "not_reviewed"


def test_a_review_to_practise_or_to_see_how_somebody_works_decides_nothing():
    kept, _ = coe(POST, "train", review("reject", role="gold"), review("reject", "t2", role="calibration"))
    assert kept["reviewed"].to_list() == [False]


def test_reviewed_chains_alone_are_taught_where_that_is_set():
    assert learnt(only_reviewed=True) == "not_reviewed"
    assert learnt(review(), only_reviewed=True) == (Coe(**CHAIN), True)


def test_of_several_reviews_the_strictest_counts_and_of_equally_strict_ones_the_last():
    early, late = (dt.datetime(2026, 11, day, tzinfo=dt.UTC) for day in (1, 2))
    mended = [review("mend", "t1", L2="晚", at=late), review("mend", "t2", L2="早", at=early)]
    mended += [review("mend", "t0", L2="不知何时"), review("accept", "t9", at=late)]
    for reviews in (mended, mended[::-1]):
        assert learnt(*reviews) == (Coe(**CHAIN | {"L2": "晚"}), True)
        assert learnt(*reviews, review("reject", "t3", at=early)) == "rejected"


# --- C


@pytest.mark.parametrize("preference", ["second", "both"])
def test_a_candidate_that_was_found_right_is_taught(preference):
    [row] = cer([ONE], [label(ONE, preference=preference)])[0].to_dicts()
    *asked, answered = row["messages"]
    assert [(one["role"], one["content"]) for one in asked] == [
        ("system", cer_system_prompt("zh").text),
        *(("assistant", "你好"), ("user", "我睡不着"), ("assistant", "多久了？"), ("user", "一个月")),
    ]
    assert answered["role"] == "assistant"
    assert Cer.parse(answered["content"]) == Cer(lang="zh", **STEPS)
    assert (row["row_id"], row["made_from"]) == ("s:1#2/1/sft_cer", "s:1#2/1")
    assert (row["split"], row["group_id"], row["providers"]) == ("train", "g1", ["openai"])
    assert REFERENCE not in str(row["messages"])


def test_what_people_did_not_find_right_is_dropped():
    for label_of, reason, detail in (
        ({"right": "FTF"}, "step_wrong", "1, 3"),
        ({"right": "TTF", "preference": "first"}, "step_wrong", "3"),
        ({"preference": "first"}, "not_preferred", "first"),
        ({"preference": "neither"}, "not_preferred", "neither"),
        ({"labelled": "of another one"}, "candidate_changed", "since it was labelled"),
    ):
        kept, dropped = cer([ONE], [label(ONE, **label_of)])
        assert kept.is_empty()
        assert dropped.select("unit", "row_id", "reason", "detail").rows() == [("candidate", "s:1#2/1", reason, detail)]


@pytest.mark.parametrize("split", ["validation", "test"])
def test_no_held_out_candidate_is_taught_however_right_it_is(split):
    kept, dropped = cer([ONE], [label(ONE)], g1=split)
    assert kept.is_empty()
    assert dropped.select("row_id", "reason", "detail").rows() == [("s:1#2/1", "not_train", split)]


def test_before_anybody_labelled_nothing_is_taught_nor_where_the_candidate_is_gone():
    kept, dropped = cer([ONE, candidate(candidate=2)], [])
    assert kept.is_empty()
    assert dropped.select("row_id", "reason").rows() == [("s:1#2/1", "not_labelled"), ("s:1#2/2", "not_labelled")]
    assert [frame.height for frame in cer([], [label(ONE)])] == [0, 0]


def test_the_sample_home_teaches_training_rows_alone(labelled_store):
    split_of = dict(labelled_store.read("splits").select("group_id", "split").collect().iter_rows())
    for table in ("sft_coe", "sft_cer"):
        kept = labelled_store.read(table).collect()
        assert kept.height > 5
        assert {split_of[group] for group in kept["group_id"]} == {"train"} == set(kept["split"])
    assert set(labelled_store.read("sft_cer").collect()["variant"]) == {"none", "D", "R", "P"}


def test_a_policy_is_asked_in_reinforcement_as_its_warm_start_was_in_every_row_that_stands_in_both(labelled_store):
    """Message by message, up to the reply."""
    read = {name: labelled_store.read(name).collect() for name in ("sft_coe", "grpo_coe", "sft_cer", "grpo_cer")}
    for warm, reinforced in (("sft_coe", "grpo_coe"), ("sft_cer", "grpo_cer")):
        prompts = dict(read[reinforced].select("row_id", "prompt").iter_rows())
        rows = read[warm].filter(variant="none").select("made_from", "messages").iter_rows()
        taught = [
            (made_from.partition("#")[0] if warm == "sft_coe" else made_from.rpartition("/")[0], messages)
            for made_from, messages in rows
        ]
        both = [(prompts[row_id], messages) for row_id, messages in taught if row_id in prompts]
        assert len(both) > 5
        assert [messages[:-1] for _, messages in both] == [prompt for prompt, _ in both]
        assert {messages[-1]["role"] for _, messages in both} == {"assistant"}
    lengths = {len(messages) for messages in read["sft_cer"]["messages"]}
    assert lengths > {3, 5}, "rounds that open a dialogue, and later ones"
