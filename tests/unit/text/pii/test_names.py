"""Names: the forms they have, the words that look like them, real posts, awkward input."""

import json
import tomllib
from pathlib import Path
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.text.pii import names, redact
from pipelines.text.pii.folding import fold
from pipelines.text.pii.redaction import find, find_entities
from pipelines.text.pii.segmentation import segment
from pipelines.text.pii.spans import SPANS

SENTENCES = tomllib.loads(Path(__file__).with_name("names.toml").read_text(encoding="utf-8"))


def test_names_are_found_in_all_their_forms_and_words_that_look_like_them_stay():
    wanted = SENTENCES["found"] | {text: [] for text in SENTENCES["stays"]}
    spans = find(pl.Series(list(wanted)), names="wide").filter(pl.col("kind") == "name")
    names = {text: [] for text in wanted}
    for row, start, end in spans.select("row", "start", "end").iter_rows():
        text = list(wanted)[row]
        names[text].append(text.encode()[start:end].decode())
    assert {text: one for text, one in names.items() if one != wanted[text]} == {}


def test_a_given_name_alone_is_the_same_person():
    text = redact(["我喜欢陈晓雯。后来晓雯走了，陈晓雯没有回头，陈晓雯老师也没有。周凯点头。"], names="wide").texts[0]
    assert text == "我喜欢[姓名]。后来[姓名]走了，[姓名]没有回头，[姓名]也没有。[姓名2]点头。"


def test_awkward_texts():
    texts = [
        "",
        "\n",
        "王",
        "我叫",
        "姓",
        "老师",
        "叫" * 50,
        "王" * 3000,
        "小" * 3000,
        "我叫" * 2000,
        "😀" * 100,
        "a" * 5000,
    ]
    spans = find_entities(pl.Series([*texts, "我是张伟。"]))
    assert spans.schema == SPANS
    assert spans.filter(pl.col("row") == len(texts)).height == 1
    assert find_entities(pl.Series([], dtype=pl.String)).schema == SPANS


def test_a_million_characters_without_a_stop():
    text = "今天王建国和李秀英说他们不高兴" * 70_000
    found = names.names_in(segment(pl.Series([text])))
    # Each is found where it stands, and no more, however long the run.
    found = found.filter(pl.col("end") - pl.col("start") == 9).unique(["start", "end", "value"])
    assert found["value"].value_counts().sort("value").rows() == [("李秀英", 70_000), ("王建国", 70_000)]


CHARACTERS = "王张小老阿伟芳叫我是的在路村号3a，。 \n\u3007𠀀😀é"
WORDS = "老师 医院 大学 我叫 他叫 姓名： 住在 公司 [姓名] 欧阳 静静 Tom 陈晓雯 中山路"
PIECES = st.sampled_from([*CHARACTERS, *WORDS.split()])


@settings(deadline=None, max_examples=10)
@given(st.lists(st.lists(PIECES, max_size=25).map("".join), max_size=6))
def test_spans_lie_in_their_rows_and_rows_do_not_touch_each_other(texts):
    found = find_entities(pl.Series(texts, dtype=pl.String))
    for row, text in enumerate(texts):
        data = text.encode()
        spans = found.filter(pl.col("row") == row).drop("row")
        for start, end in spans.select("start", "end").rows():
            assert 0 <= start < end <= len(data)
            assert data[start:end].decode()
        alone = find_entities(pl.Series([text])).drop("row")
        assert alone.sort(alone.columns).equals(spans.sort(spans.columns))


PLACES = "翠湖小区 师大附中 幸福路3号 陈雨桐 李老师 老王 王芳 骂我 对我说 山西 中北大学 13822095514"


@settings(deadline=None, max_examples=2)  # a call costs more than its texts do
@given(st.integers(0, 2**32))
def test_the_wide_reading_replaces_all_that_the_strict_one_does(seed):
    random = Random(seed)
    pieces = [*CHARACTERS, *WORDS.split(), *PLACES.split()]
    texts = ["".join(random.choices(pieces, k=random.randrange(13))) for _ in range(500)]

    def bytes_found(names: str) -> set[tuple[int, int]]:
        spans = find(pl.Series(texts), names=names).select("row", "start", "end").rows()
        return {(row, place) for row, start, end in spans for place in range(start, end)}

    strict = bytes_found("strict")
    assert len({row for row, _ in strict}) > 100
    assert {texts[row] for row, _ in strict - bytes_found("wide")} == set()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("我住在翠湖小区陈雨桐家", "我住在[地址][姓名]家"),
        ("住在翠湖小区李老师骂我", "住在[地址][姓名]骂我"),
        ("老王王芳师大附中，说", "[姓名][学校]，说"),
    ],
)
def test_what_an_institution_leaves_of_a_name_is_replaced_as_well(text, wanted):
    assert redact([text], names="wide").texts[0] == wanted


def test_real_posts_hold_few_names(shared):
    """Read by eye: in 180,000 characters of questions and answers stand four people's names and a dozen signatures."""
    posts = json.loads((shared / "zh_qa" / "PsyQA_example.json").read_text(encoding="utf-8"))
    texts = [post[part] for post in posts for part in ("question", "description")]
    texts += [answer["answer_text"] for post in posts for answer in post["answers"]]
    found = find_entities(fold(pl.Series(texts)).texts)
    assert found.filter(pl.col("kind") == "name").height <= 15
    assert found.filter(pl.col("kind") != "name").unique(["row", "start", "kind"]).height <= 6


def test_what_is_counted_is_no_surname():
    texts = SENTENCES["counted"]
    rows = names.names_in(segment(pl.Series(texts)))["row"].unique()
    assert [texts[row] for row in rows] == []


def test_a_surname_behind_another_word_is_one():
    others = "晚上周老师打我 网上周老师说的 以前周老师打我 上周周老师打我 周老师打我 电话13812345678周老师"
    wanted = {**dict.fromkeys(others.split(), "周老师"), "这王老师骂我": "王老师"}
    spans = names.names_in(segment(pl.Series(list(wanted)))).sort("row")
    assert spans["row"].to_list() == list(range(len(wanted)))
    for (text, name), start, end in zip(wanted.items(), spans["start"], spans["end"], strict=True):
        assert text.encode()[start:end].decode() == name
