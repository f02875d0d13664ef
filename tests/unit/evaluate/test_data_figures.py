"""The figures of a release's data, each by hand on invented rows."""

from typing import Any

import polars as pl
import pytest

from pipelines.evaluate.data import evaluate_sets
from schemas.reasoning import Cer
from schemas.training import GrpoCoe, SftCoe

HUMAN = "听起来你这几天一个人撑着，身边又没有人可以说，难怪会觉得累。"


def prompts(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows of `grpo_coe`: id, post, answer, split, topic."""
    return pl.DataFrame(
        [
            {
                "row_id": row["id"],
                "split": row.get("split", "train"),
                "reward_model": {"ground_truth": row["answer"]},
                "extra_info": {
                    "dialogue": [{"text": row["post"]}],
                    "references": [row["answer"]],
                    "topic": row.get("topic"),
                },
            }
            for row in rows
        ]
    )


def chats(rows: list[tuple[str, str]]) -> pl.DataFrame:
    """Rows of `sft_coe`: made from, and what the assistant says."""
    return pl.DataFrame(
        [
            {
                "made_from": made_from,
                "group_id": made_from,
                "split": "train",
                "messages": [{"content": "系统"}, {"content": "问题"}, {"content": said}],
            }
            for made_from, said in rows
        ]
    )


def value(rows: list[dict[str, Any]], model: str, metric: str, mode: str = "") -> Any:
    [row] = [row for row in rows if (row["model"], row["metric"]) == (model, metric) and row["mode"].startswith(mode)]
    return row["value"]


def test_variety_and_balance_are_counted():
    rows = evaluate_sets(
        {
            "grpo_coe": prompts(
                [
                    {"id": "a", "post": "一", "answer": "甲乙", "topic": "家庭"},
                    {"id": "b", "post": "二", "answer": "甲丙", "topic": "家庭"},
                    {"id": "c", "post": "三", "answer": "丁", "topic": "恋爱"},
                    {"id": "d", "post": "四", "answer": "", "topic": "恋爱"},
                ]
            )
        }
    )
    assert value(rows, "grpo_coe", "distinct_1") == pytest.approx(4 / 5), "the row without an answer has no output"
    assert value(rows, "grpo_coe", "distinct_2") == 1
    assert value(rows, "grpo_coe", "topic_entropy") == pytest.approx(0.9182958)
    assert value(rows, "grpo_coe", "topic_commonest") == pytest.approx(2 / 3)


def test_what_is_held_out_and_near_to_train_is_counted_among_what_is_held_out():
    post = "最近总是睡不着，躺下就想起白天说错的那句话，越想越后悔，第二天又没有精神。"
    rows = evaluate_sets(
        {
            "grpo_coe": prompts(
                [
                    {"id": "a", "post": post, "answer": "慢慢来。"},
                    {"id": "b", "post": post[:-6] + "，又很困。", "answer": "先歇一歇吧。", "split": "test"},
                    {"id": "c", "post": "和室友因为一只杯子吵了一架。", "answer": "委屈吧？", "split": "validation"},
                ]
            )
        }
    )
    assert value(rows, "grpo_coe", "held_out_inputs_near_train", "jaccard 0.5") == 0.5
    assert value(rows, "grpo_coe", "held_out_inputs_near_train", "jaccard 0.8") == 0
    assert value(rows, "grpo_coe", "near_duplicate_outputs", "jaccard 0.5") == 0


def test_what_trains_in_another_set_counts_as_well():
    post = "最近总是睡不着，躺下就想起白天说错的那句话，越想越后悔，第二天又没有精神。"
    chat = chats([("a", "慢慢来。")]).with_columns(
        messages=pl.Series([[{"content": "系统"}, {"content": post}, {"content": "慢慢来。"}]])
    )
    held_out = prompts([{"id": "b", "post": post, "answer": "先歇一歇吧。", "split": "test"}])
    rows = evaluate_sets({"grpo_coe": held_out, "sft_coe": chat})
    assert value(rows, "grpo_coe", "held_out_inputs_near_train", "jaccard 0.8") == 1
    assert value(rows, "sft_coe", "held_out_inputs_near_train", "jaccard 0.8") is None, "nothing of it is held out"


def test_a_chain_that_repeats_the_human_answer_before_it_is_a_copy_and_the_answer_itself_is_none():
    own = "<empathy_think><L1>他累。</L1></empathy_think>"
    copied = f"<empathy_think><L1>{HUMAN}</L1></empathy_think>"
    sets = {
        "grpo_coe": prompts([{"id": one, "post": one * 9, "answer": HUMAN} for one in "ab"]),
        "sft_coe": chats([("a", f"{own}<answer>{HUMAN}</answer>"), ("b", f"{copied}<answer>{HUMAN}</answer>")]),
    }
    assert value(evaluate_sets(sets), "sft_coe", "copies_a_reference") == 0.5
    changed = HUMAN.replace("一个人撑着", "独自撑着").replace("，", " ").replace("。", "！")
    near = f"<empathy_think><L1>{changed}</L1></empathy_think><answer>{HUMAN}</answer>"
    rows = evaluate_sets(sets | {"sft_coe": chats([("a", near), ("b", near)])})
    assert value(rows, "sft_coe", "copies_a_reference") == 0
    assert value(rows, "sft_coe", "repeats_a_reference", "of its 5-grams 0.5") == 1


def test_what_a_machine_writes_and_what_is_personal_is_counted_in_a_thousand():
    rows = evaluate_sets(
        {
            "grpo_coe": prompts(
                [
                    {
                        "id": "a",
                        "post": "我的电话是13800138000，打给我。",
                        "answer": "1. 先呼吸。\n2. 再睡觉。\n3. 再说。",
                    },
                    {"id": "b", "post": "很难过。", "answer": "作为一个人工智能，我没有感情。"},
                    {"id": "c", "post": "很累。", "answer": HUMAN},
                    {"id": "d", "post": "很烦。", "answer": "那就先放一放。"},
                ]
            )
        }
    )
    assert value(rows, "grpo_coe", "list") == 250
    assert value(rows, "grpo_coe", "refusal_or_ai") == 250
    assert value(rows, "grpo_coe", "formula") == 0
    assert value(rows, "grpo_coe", "personal_data") == 250


def test_the_columns_read_are_those_of_the_sets():
    assert {"row_id", "split", "reward_model", "extra_info"} <= set(GrpoCoe.column_names())
    assert {"made_from", "group_id", "split", "messages"} <= set(SftCoe.column_names())
    assert "strategy" in Cer.model_fields


def test_a_chat_without_a_question_has_an_empty_one():
    rows = chats([("a", HUMAN)]).with_columns(pl.col("messages").list.tail(1))
    assert value(evaluate_sets({"sft_coe": rows}), "sft_coe", "personal_data") == 0
