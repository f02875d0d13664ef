"""Danger and relevance of one text: the same as clean.risk and clean.relevance say, on thousands of real texts."""

import csv
from itertools import islice

import polars as pl
import pytest
from rules_inputs import dialogues, posts

from pipelines.annotate.rules.danger import dangers
from pipelines.annotate.rules.relevant import relevance
from pipelines.store import Store
from pipelines.text import relevance as by_column
from pipelines.text.risk import risk

# What real texts have little of: advertisements, and danger in English and at the end of a line.
_MADE_UP = (
    "专业团队一对一挽回，成功率98%，无效退款，加微信[微信]咨询",
    "有没有人聊天，加我[QQ]，无聊的来，扩列",
    "【公告】请勿发布广告，违规将被移除，感谢配合",
    "招聘兼职，日结，时间自由，有意者加[微信]",
    "I want to kill myself tonight.",
    "i don't want to live anymore, kms",
    "想死\n",
    "我不想死，也不想活了",
    "",
)


@pytest.fixture(scope="module")
def texts(real_home, shared):
    store = Store(real_home / "data")
    with (shared / "noisy" / "COLDataset_dev.csv").open(encoding="utf-8-sig", newline="") as lines:
        noisy = [row["TEXT"] for row in csv.DictReader(lines)][:2000]
    rows = csv.DictReader((shared / "zh_qa" / "medical_qa_gb18030.csv").read_text(encoding="gb18030").splitlines())
    medical = [row["ask"] or "" for row in islice(rows, 400)]
    said = [turn["text"] for one in dialogues(store)[::8] for turn in one["turns"]]
    return pl.DataFrame(
        [(post["text"], post["title"]) for post in posts(store)]
        + [(text, text[:20]) for text in (*noisy, *medical, *said, *_MADE_UP)],
        schema={"text": pl.String, "title": pl.String},
        orient="row",
    )


def test_dangers_are_those_of_the_cleaning_rules(texts):
    signs = texts.select(risk(pl.col("text"), simplified=True)).to_series().to_list()
    kinds = [{sign["kind"] for sign in one} for one in signs]
    assert sum(map(bool, kinds)) > 50
    assert [set(dangers(text)) for text in texts["text"]] == kinds


def test_relevance_is_that_of_the_cleaning_rules(texts):
    column = texts.select(one=by_column.relevance(pl.col("text"), pl.col("title")))["one"].to_list()
    reasons = 0
    for (text, title), whole in zip(texts.iter_rows(), column, strict=True):
        alone = relevance(text, title)
        assert alone.reason == whole["reason"]
        assert set(alone.doubts) == set(whole["doubts"])
        assert alone.score == pytest.approx(whole["emotional_context"])
        reasons += alone.reason is not None
    assert reasons > 10
