"""The first filters of dialogues: at least one round, in the language that the set says."""

from collections import Counter
from pathlib import Path

import dataframely as dy
import polars as pl
import pytest
from clean_rows import dialogue, dialogues

from pipelines.clean import clean_dialogues
from pipelines.ingest.importing import read
from pipelines.settings import Cleaning
from pipelines.store.reconciliation import reconcile, require_balance
from schemas.dialogues import CleanDialogues, ImportedDialogues
from schemas.table import Dropped

ZH = ("seeker: 我睡不着", "supporter: 多久了？")
EN = ("seeker: I cannot sleep", "supporter: How long?")


def require_accounted(frame: pl.DataFrame, kept: pl.DataFrame, dropped: pl.DataFrame) -> None:
    require_balance("clean_dialogues", [reconcile("dialogue", [frame], kept, dropped)])
    assert CleanDialogues.is_valid(kept)
    assert Dropped.is_valid(dropped)


def test_what_stays():
    cases = [
        (ZH, "zh", None),
        (EN, "en", None),
        (EN, "zh", "not_chinese"),
        (ZH, "en", "not_english"),
        (ZH[:1], "zh", "no_round"),
        (ZH[::-1], "zh", "no_round"),  # nobody answers the seeker
        ((ZH[1], *ZH), "zh", None),  # a supporter may open
        (("seeker: 难a", "supporter: 过b"), "en", "not_english"),
        (("seeker: 难aa", "supporter: 过b"), "zh", "not_chinese"),
        (("seeker: 😀", "supporter: ……"), "zh", "not_chinese"),
        (("seeker: 😀", "supporter: …"), "en", None),  # nothing speaks against it
    ]
    frame = dialogues(*(dialogue(n, *turns, lang=lang) for n, (turns, lang, _) in enumerate(cases)))
    kept, dropped = clean_dialogues(frame)
    require_accounted(frame, kept, dropped)
    wanted = {f"s:{n}": reason for n, (_, _, reason) in enumerate(cases) if reason}
    assert dict(dropped.select("row_id", "reason").iter_rows()) == wanted


def test_length_and_script_are_of_all_turns():
    kept, _ = clean_dialogues(dialogues(dialogue(1, "seeker: 我睡 不着", "supporter: 這麼久了")))
    assert kept["turns"][0][1]["text"] == "这么久了"
    assert kept.select("n_chars", "han_ratio", "script").rows() == [(8, 1.0, "traditional")]


def test_risk_is_judged_on_the_situation_and_all_turns():
    """The supporter may name what the seeker answers with a word."""
    frame = dialogues(
        dialogue(1, "seeker: 我难过", "supporter: 怎么了？"),
        dialogue(2, "seeker: 我难过", "supporter: 嗯。", "seeker: 我想过自杀", "supporter: 嗯。"),
        dialogue(3, "seeker: 我难过", "supporter: 你想过自杀吗？", "seeker: 嗯，很多次", "supporter: 我在听。"),
        dialogue(4, "seeker: I feel low", "supporter: Why?", lang="en", situation="I think about killing myself"),
    )
    kept, _ = clean_dialogues(frame)
    kinds = [[sign["kind"] for sign in signs] for signs in kept["risk"].to_list()]
    assert kinds == [[], ["self_harm"], ["self_harm"], ["self_harm"]]


@pytest.mark.parametrize("profile", ["default", "paper"])
def test_children_are_dropped_and_minors_marked(profile):
    cases = [
        (("seeker: 我今年13岁，很烦", "supporter: 嗯。"), None, "under_14"),
        (("seeker: 很烦", "supporter: 嗯。"), "我今年12岁，总被同学欺负", "under_14"),
        (("seeker: 很烦", "supporter: 你几岁了？", "seeker: 12", "supporter: 还小呀。"), None, "under_14"),
        (("seeker: 很烦", "supporter: 什么年龄？", "seeker: 十三，怎么了", "supporter: 嗯。"), None, "under_14"),
        (("seeker: 很烦", "supporter: 你多大？", "seeker: 刚16", "supporter: 嗯。"), None, "under_18"),
        (("seeker: 很烦", "supporter: 你多大？", "seeker: 26", "supporter: 嗯。"), None, None),
        (("seeker: 很烦", "supporter: 几个人？", "seeker: 12", "supporter: 嗯。"), None, None),
        (("seeker: 很烦", "supporter: 你几岁开始失眠的？", "seeker: 12月开始的", "supporter: 嗯。"), None, None),
        (("seeker: 很烦", "supporter: 我今年13岁的时候也这样。"), None, None),  # not the seeker
        (("seeker: 很烦", "supporter: 孩子多大了？", "seeker: 七岁，刚上一年级。", "supporter: 嗯。"), None, None),
        (("seeker: 很烦", "supporter: 他几岁？", "seeker: 9", "supporter: 嗯。"), None, None),
        (("seeker: 很烦", "supporter: 孩子，你多大了？", "seeker: 十三", "supporter: 嗯。"), None, "under_14"),
        (("seeker: 很烦", "supporter: 他几岁？", "seeker: 9。我今年13岁。", "supporter: 嗯。"), None, "under_14"),
    ]
    frame = dialogues(*(dialogue(n, *turns, situation=said) for n, (turns, said, _) in enumerate(cases)))
    kept, dropped = clean_dialogues(frame, cleaning=Cleaning(profile=profile))
    ages = dict(dropped.select("row_id", "reason").iter_rows())
    ages |= dict.fromkeys(kept.filter("under_18")["dialogue_id"], "under_18")
    assert ages == {f"s:{n}": age for n, (_, _, age) in enumerate(cases) if age}


def test_what_the_source_notes_is_cleaned_as_well():
    frame = dialogues(
        dialogue(
            1, *ZH, topic="加微信 abc_12345", emotion="焦虑", attributes=[{"name": "备注", "value": "电话13812345678"}]
        )
    )
    row = clean_dialogues(frame)[0].row(0, named=True)
    assert (row["topic"], row["emotion"]) == ("加微信 [微信]", "焦虑")
    assert row["attributes"] == [{"name": "备注", "value": "电话[电话]"}]


def test_personal_data_and_artefacts_are_removed_from_every_turn_and_counted():
    frame = dialogues(
        dialogue(
            1,
            "seeker: 我的电话是13812345678，看这里 https://example.com/a 好难过😭[泪]",
            "supporter: 收到，13812345678 我会打的。",
            "seeker: 也可以打13987654321",
            "supporter: 好的，我记下了。",
            situation="发帖人的邮箱是 nobody@example.com",
        )
    )
    kept, _ = clean_dialogues(frame)
    texts = [turn["text"] for turn in kept["turns"].to_list()[0]]
    assert texts[:3] == ["我的电话是[电话]，看这里 好难过", "收到，[电话] 我会打的。", "也可以打[电话2]"]
    assert kept["situation"].to_list() == ["发帖人的邮箱是 [邮箱]"]
    assert [tuple(one.values()) for one in kept["pii"].to_list()[0]] == [("email", 1), ("phone", 3), ("url", 1)]


def test_a_turn_of_nothing_but_emoji_keeps_its_place():
    kept, _ = clean_dialogues(dialogues(dialogue(1, "seeker: 😭😭", "supporter: 你看起来很难过。")))
    assert [turn["text"] for turn in kept["turns"].to_list()[0]] == ["[表情]", "你看起来很难过。"]
    assert kept["han_ratio"].to_list() == [1.0]  # what nobody wrote is not measured


def test_the_paper_profile_leaves_english_dialogues_alone():
    frame = dialogues(
        dialogue(1, "seeker: 我是INFP，996三年了", "supporter: 辛苦了。"),
        dialogue(2, "seeker: I feel sad.", "supporter: I am sorry.", lang="en"),
    )
    kept, _ = clean_dialogues(frame, cleaning=Cleaning(profile="paper"))
    assert [turns[0]["text"] for turns in kept["turns"].to_list()] == ["我是，三年了", "I feel sad."]


def test_whatever_the_schema_allows_is_accounted_for():
    frame = ImportedDialogues.sample(30, generator=dy.random.Generator(0))
    before = frame.clone()
    kept, dropped = clean_dialogues(frame)
    require_accounted(frame, kept, dropped)
    assert 0 < kept.height < 30
    assert frame.equals(before)
    again, dropped_again = clean_dialogues(kept)
    assert again.drop("pii", "script").equals(kept.drop("pii", "script"))
    assert dropped_again.is_empty()


def test_the_real_sets(shared: Path):
    sets = {
        "smile": ("zh_multiturn/smile_raw.tar.gz", {"no_round": 1}),
        "cpsycoun": (
            "zh_multiturn/cpsycound_raw.tar.gz",
            {"under_14": 4},
        ),  # two boys of eleven, one of nine, twins of 13
        "esconv": ("en_strategy/FailedESConv.json", {"under_14": 1}),  # "I am 13"
        "emollm": ("noisy/emollm_aiwei_part.json", {"not_chinese": 1}),  # the supporter falls into German
    }
    for name, (file, reasons) in sets.items():
        frame = read(name, shared / file).kept
        kept, dropped = clean_dialogues(frame)
        require_accounted(frame, kept, dropped)
        assert Counter(dropped["reason"]) == reasons, name
        assert set(kept.filter(lang="zh")["script"]) <= {"simplified"}, name
