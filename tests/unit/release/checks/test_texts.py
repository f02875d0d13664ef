"""The texts of released rows, with who says each, and no system prompt."""

import json

import polars as pl

from pipelines.release.checks.texts import answers_alone, folded, texts_of
from schemas.tables import TABLES


def _chat(config, *messages):
    rows = [{"row_id": "s:1#2/1", "split": "train", "variant": "none", "messages": list(messages)}]
    return texts_of(config, pl.DataFrame(rows, schema=TABLES[config].polars_schema()))


SYSTEM = {"role": "system", "content": "你是倾听者"}
REPLY = {"role": "assistant", "content": "<cer_think>想</cer_think><answer>辛苦了</answer>"}


def test_of_a_warm_start_the_last_reply_is_the_models_and_those_before_are_the_supporters():
    history = [
        {"role": role, "content": text} for role, text in (("user", "我好累"), ("assistant", "抱抱"), ("user", "嗯"))
    ]
    read = _chat("sft_cer", SYSTEM, *history, REPLY).select("part", "place", "text").rows()
    assert read == [
        ("seeker", 0, "我好累"),
        ("supporter", 0, "抱抱"),
        ("seeker", 1, "嗯"),
        ("model", 0, REPLY["content"]),
    ]


def test_the_answer_that_a_chain_leads_to_is_an_answer():
    chain = "<L1>想</L1><answer>我也这样过</answer>"
    told = _chat("sft_coe", SYSTEM, {"role": "user", "content": "我好累"}, {"role": "assistant", "content": chain})
    assert told.select("part", "text").rows()[1:] == [("model", chain), ("answer", "我也这样过")]


def test_a_triplet_has_three_texts_and_a_generic_negative_has_no_speaker():
    row = {"split": "train", "query": "问", "positive": "答", "negative": "加油", "variant": "none"}
    rows = [row | {"row_id": kind, "kind": kind} for kind in ("generic", "other_answer")]
    told = texts_of("rm_triplets", pl.DataFrame(rows, schema=TABLES["rm_triplets"].polars_schema()))
    parts = {kind: told.filter(row_id=kind).sort("text")["part"].to_list() for kind in ("generic", "other_answer")}
    assert parts == {"generic": ["generic", "answer", "seeker"], "other_answer": ["answer", "answer", "seeker"]}
    assert told.filter(row_id="generic").sort("text")["text"].to_list() == ["加油", "答", "问"]


def test_every_text_of_a_prompt_set_is_there_but_the_system_prompt(sample_store):
    for config, answerer in (("grpo_ecot", "answer"), ("grpo_coe", "answer"), ("grpo_cer", "supporter")):
        rows = sample_store.read(config).collect()
        told = texts_of(config, rows)
        assert set(told["part"]) <= {"seeker", "supporter", "answer", "label"}
        for row in rows.iter_rows(named=True):
            said = told.filter(row_id=row["row_id"])
            held = {one["content"] for one in row["prompt"][1:]} | set(row["extra_info"]["references"])
            held |= {row["reward_model"]["ground_truth"], row["extra_info"]["topic"]} - {"", None}
            assert set(said["text"]) == held
            assert set(said.filter(part=answerer)["text"]) >= set(row["extra_info"]["references"])
            assert row["prompt"][0]["content"] not in set(said["text"])


def test_an_answer_stands_alone_without_the_reasoning_before_it():
    texts = pl.DataFrame({"text": [REPLY["content"], "没有标签", "<answer>一\n二</answer>"]})
    assert texts.select(answers_alone(pl.col("text"))).to_series().to_list() == ["辛苦了", "没有标签", "一\n二"]


def test_the_input_of_a_judge_is_read_by_turn_with_its_speaker():
    """`line?"}, {"role"` is no account on LINE."""
    dialogue = [{"role": "seeker", "text": "只看一行line？"}, {"role": "supporter", "text": "嗯"}]
    asked = json.dumps({"dialogue": dialogue, "A": "好", "B": "行"}, ensure_ascii=False)
    told = _chat("rm_outcome", SYSTEM, {"role": "user", "content": asked}, REPLY)
    read = told.select("part", "text").rows()[:3]
    assert read == [("seeker", "只看一行line？"), ("supporter", "嗯"), ("judged", "好\n行")]
    for other in ("我好累", "3", "[1]", '{"dialogue": [{"text": "嗯"}]}', '{"dialogue": 3}'):
        told = _chat("rm_outcome", SYSTEM, {"role": "user", "content": other}, REPLY)
        assert told.select("part", "text").row(0) == ("judged", other), "not what judges of ours are shown"


def test_two_texts_are_compared_without_marks_and_in_one_script():
    alike = ["我今天很累我想休息", "我今天，很累！😭我想休息……", "我 今天很累,我想休息~"]
    texts = pl.DataFrame({"text": ["我今天很累。我想休息。", *alike, "「我今天很累」，我想休息"]})
    assert texts.select(folded(pl.col("text"))).to_series().unique().to_list() == ["我今天很累我想休息"]
    scripts = pl.DataFrame({"text": ["這裡沒有人聽我說話", "这里没有人听我说话"]})
    assert scripts.select(folded(pl.col("text"))).to_series().n_unique() == 1
