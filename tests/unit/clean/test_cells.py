"""All steps of the cleaning of a text together: nothing personal is left, and cleaning again changes nothing."""

from random import Random

import polars as pl
import pytest
from columns import PIECES

from pipelines.clean.cells import cleaned, cleaned_labels
from pipelines.settings import Cleaning

CONTACT = (
    *("13812345678", "138 1234 5678", "138", "1234", "5678", "１３８", "一三八", "电话", "电话：", "手机"),
    *("微信：", "加我微信", "➕V", "薇", "abc_12345", "wxid_8k2jq0f7", "QQ", "QQ：", "扣扣", "23456789", "加我"),
    *("xiaoming@qq.com", "abc", "qq.com", "11010519491231002X", "6222021234567890128", "京A12345", "住在"),
    *("李小明", "王老师", "北京大学", "协和医院", "幸福路12号", "我叫", "李家村", "在腾讯上班"),
)


def clean(*texts: str | None, **cleaning: object) -> pl.DataFrame:
    frame = pl.DataFrame({"group": range(len(texts)), "text": texts}, schema_overrides={"text": pl.String})
    return cleaned(frame.with_columns(lang=pl.lit("zh")), Cleaning(**cleaning))[0]


def test_what_artefacts_tear_apart_is_put_together_and_replaced():
    cases = {
        "138<b>1234</b>5678": "[电话]",
        "电话：<span>138</span><span>12345678</span>": "电话：[电话]",
        "138&nbsp;1234&nbsp;5678": "[电话]",
        "1️⃣13812345678": "[电话]",
        "13812345[泪]678": "[电话]",
        "微信：<b>abc</b>_12345": "微信：[微信]",
        "加我&#50;&#51;&#52;&#53;&#54;&#55;&#56;&#57; QQ": "加我[QQ] QQ",
        "我想死[泪]": "我想死",
    }
    assert clean(*cases)["text"].to_list() == list(cases.values())


def test_a_number_found_later_is_another_one_of_its_post():
    """Placeholders count on in the whole post, in whichever reading they are given."""
    texts = ["电话13812345678", "还有139<b>1234</b>5678", "别的帖子139<b>1234</b>5678"]
    read, pii = cleaned(pl.DataFrame({"group": [0, 0, 1], "lang": "zh", "text": texts}), Cleaning())
    assert read["text"].to_list() == ["电话[电话]", "还有[电话2]", "别的帖子[电话]"]
    assert pii["pii"].to_list() == [[{"kind": "phone", "count": 2}], [{"kind": "phone", "count": 1}]]


@pytest.mark.parametrize("profile", ["default", "paper"])
def test_cleaning_again_changes_nothing(profile: str):
    random = Random(profile)
    pieces = [*PIECES, *CONTACT, *CONTACT]
    texts = ["".join(random.choices(pieces, k=random.randint(1, 10))) for _ in range(2500)]
    once = clean(*texts, profile=profile)
    cells = once.select("group", "lang", text="stored")
    again, pii = cleaned(cells, Cleaning(profile=profile))
    changed = [pair for pair in zip(texts, once["stored"], again["stored"], strict=True) if pair[1] != pair[2]]
    assert changed == []
    assert pii.is_empty()


def test_the_profile_is_for_what_is_stored():
    """Ages and risks are read where figures and Latin still stand."""
    read = clean("我今年13岁, I want to die").row(0, named=True)
    paper = clean("我今年13岁, I want to die", profile="paper").row(0, named=True)
    assert read["stored"] == read["text"] == paper["text"]
    assert paper["stored"] == "我今年岁，"


def test_ten_megabytes_full_of_hits_take_no_more_memory_than_they_should():
    """Two chunks: a text gathered out of several would be copied whole for each of its hits."""
    text = "打13812345678，" * 60_000
    cells = pl.DataFrame({"group": [0, 1], "lang": "zh", "text": pl.Series([text]).append(pl.Series([text]))})
    assert cells["text"].n_chunks() == 2
    read, pii = cleaned(cells, Cleaning(names="none"))
    assert read["text"].to_list() == ["打[电话]，" * 60_000] * 2
    assert pii["pii"].to_list() == [[{"kind": "phone", "count": 60_000}]] * 2


def test_labels_are_cleaned_each_apart():
    labels = pl.Series(["恋爱", "加微信 abc_12345", None, "恋爱"])
    frame = pl.DataFrame({"label": labels})
    made = frame.select(cleaned_labels(labels, Cleaning())(pl.col("label")))["label"]
    assert made.to_list() == ["恋爱", "加微信 [微信]", None, "恋爱"]
    assert clean(None, "")["text"].to_list() == [None, ""]
    none = pl.DataFrame({"label": labels.clear()})
    assert none.select(cleaned_labels(none["label"], Cleaning(profile="paper"))(pl.col("label"))).is_empty()
