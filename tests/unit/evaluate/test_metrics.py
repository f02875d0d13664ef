"""The automatic figures of E §4.1.4: equal to their reference packages, and defined whatever was answered.

All answers are invented.
"""

import sys

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_metrics import by_their_packages

from pipelines.errors import RequestError
from pipelines.evaluate import metrics
from pipelines.evaluate.metrics import (
    BLEU_1,
    DISTINCT_1_ANSWER,
    METEOR_EXACT,
    N_AVG_CHARACTER,
    N_AVG_PAPER,
    OF_ANSWER,
    ROUGE_L_CHARACTER,
    ROUGE_L_PAPER,
    Answer,
    Question,
    baselines,
    n_avg,
    score_answer,
    score_answers,
    zh_tokens,
)
from pipelines.operations.evaluate.papers import E_AUTOMATIC

# Few characters, so that texts share some: Chinese, Latin, digits, marks, an emoji, blanks.
TEXTS = st.text("我你难过很，。 aAb1😀\n", max_size=20)

# E Table 2, and the rows of 3 and 4 that are no rows of it: BLEU-1, Distinct-1, ROUGE-L, METEOR, NAvg.
E_TABLES = [
    *(tuple(figures.values()) for figures in E_AUTOMATIC.values()),
    (0.249, 0.307, 0.092, 0.278, 0.232),
    (0.292, 0.354, 0.066, 0.309, 0.255),
    (0.296, 0.345, 0.054, 0.309, 0.251),
]


@given(TEXTS, TEXTS)
def test_every_figure_is_that_of_its_package(answer: str, reference: str):
    ours = score_answer(answer, [reference])
    theirs = by_their_packages(answer, reference)
    assert {figure: ours[figure] for figure in theirs} == pytest.approx(theirs, abs=1e-9)


@given(TEXTS, st.lists(TEXTS, max_size=4))
def test_every_figure_is_a_share_or_undefined_and_the_mean_over_references(answer: str, references: list[str]):
    figures = score_answer(answer, references)
    assert tuple(figures) == OF_ANSWER
    undefined = {figure for figure, value in figures.items() if value is None}
    assert undefined == (set() if references else set(OF_ANSWER) - {DISTINCT_1_ANSWER})
    assert all(0 <= value <= 1 + 1e-12 for value in figures.values() if value is not None)
    if references:
        each = [score_answer(answer, [one]) for one in references]
        means = {figure: sum(one[figure] for one in each) / len(each) for figure in OF_ANSWER}
        assert figures == pytest.approx(means)


@given(TEXTS)
def test_a_copy_scores_1_and_in_meteor_all_but_its_one_chunk(text: str):
    figures, tokens = score_answer(text, [text]), zh_tokens(text)
    whole = 1.0 if tokens else 0.0
    assert figures[BLEU_1] == pytest.approx(whole)
    assert figures[ROUGE_L_CHARACTER] == whole
    assert figures[METEOR_EXACT] == pytest.approx(1 - 0.5 / len(tokens) ** 3 if tokens else 0)
    assert figures[ROUGE_L_PAPER] == (1 if any(one.isascii() and one.isalnum() for one in text) else 0)


@given(TEXTS, TEXTS)
def test_what_has_nothing_in_common_scores_0(answer: str, reference: str):
    figures = score_answer(answer, [reference])
    common = {one.lower() for one in zh_tokens(answer)} & {one.lower() for one in zh_tokens(reference)}
    if not common:
        assert figures[BLEU_1] == figures[ROUGE_L_CHARACTER] == figures[METEOR_EXACT] == 0


@pytest.mark.parametrize(
    ("answer", "distinct"),
    [("", 0), (" \n", 0), ("😀😀", 1), ("😀 😀", 0.5), ("嗯嗯嗯嗯", 0.25), ("I hear you, I do.", 6 / 7)],
    ids=["empty", "blank", "one run of emoji", "emoji apart", "one character", "English"],
)
def test_distinct_1_of_whatever_was_answered(answer: str, distinct: float):
    figures = score_answer(answer, ["听起来你很难过。"])
    assert figures[DISTINCT_1_ANSWER] == pytest.approx(distinct)
    assert figures[BLEU_1] == figures[ROUGE_L_PAPER] == figures[ROUGE_L_CHARACTER] == figures[METEOR_EXACT] == 0


def test_of_english_both_modes_of_rouge_l_see_the_words_and_of_chinese_only_one():
    english = score_answer("You are not alone in this", ["you are not alone"])
    assert english[ROUGE_L_PAPER] == pytest.approx(0.8)
    assert english[ROUGE_L_CHARACTER] == pytest.approx(0.6), "sacrebleu's tokens keep their case"
    chinese = score_answer("你并不孤单", ["你不是孤单的"])
    assert chinese[ROUGE_L_PAPER] == 0
    assert chinese[ROUGE_L_CHARACTER] == pytest.approx(2 * 4 / 11)


def test_n_avg_is_that_of_every_row_of_es_tables():
    for b_1, d_1, r_l, meteor, printed in E_TABLES:
        assert n_avg(b_1, r_l, meteor, d_1) == pytest.approx(printed, abs=0.001)
    figures = score_answer("你并不孤单 ok", ["你不是孤单的 ok"])
    rest = figures[BLEU_1] + figures[METEOR_EXACT] + figures[DISTINCT_1_ANSWER]
    assert figures[N_AVG_PAPER] == pytest.approx((rest + figures[ROUGE_L_PAPER]) / 4)
    assert figures[N_AVG_CHARACTER] == pytest.approx((rest + figures[ROUGE_L_CHARACTER]) / 4)


QUESTIONS = [
    Question(
        "q1", "最近总是睡不着，怎么办？", ["先别急，说说你睡前在想什么。", "睡不着的时候，可以起来走走。", "抱抱你。"]
    ),
    Question("q2", "和室友吵架了。", ["听起来你很委屈，吵架之后心里不好受。"]),
]


def test_a_table_has_each_figure_with_its_mode_and_an_interval_by_question():
    answers = [Answer(one.question_id, text, one.answers) for one in QUESTIONS for text in ("你睡不着", "你很委屈")]
    table = score_answers([*answers, Answer("q3", "没有人回答过", [])], draws=200)
    assert table.select("metric", "mode").rows() == [*OF_ANSWER, ("distinct_1", "corpus")]
    assert table["n_answers"].to_list() == [4, 4, 4, 4, 5, 4, 4, 5]
    scored = [score_answer(*one[1:]) for one in answers]
    value = {row["metric"] + row["mode"]: row["value"] for row in table.iter_rows(named=True)}
    assert value["bleu_1zh"] == pytest.approx(sum(one[BLEU_1] for one in scored) / 4)
    everything = zh_tokens("你睡不着你很委屈你睡不着你很委屈没有人回答过")
    assert value["distinct_1corpus"] == len(set(everything)) / len(everything)
    [corpus] = table.filter(mode="corpus").select("low", "high").rows()
    assert corpus == (None, None)
    bounded = table.filter(pl.col("mode") == "answer")
    assert (bounded["low"] <= bounded["value"]).all()
    assert (bounded["value"] <= bounded["high"]).all()


def test_of_no_answers_every_figure_is_undefined():
    table = score_answers([])
    assert table["n_answers"].to_list() == [0] * 8
    assert table["value"].null_count() == 8


def test_baselines_are_the_post_comfort_for_everybody_and_a_person_against_the_others():
    found = baselines(QUESTIONS)
    assert [one.text for one in found["post_copied"]] == [one.post for one in QUESTIONS]
    assert {one.text for one in found["generic_comfort"]} == {metrics.GENERIC_COMFORT}
    [sibling] = found["sibling"]  # q2 has one answer alone
    assert sorted([sibling.text, *sibling.references]) == sorted(QUESTIONS[0].answers)
    assert baselines(QUESTIONS[:1])["sibling"] == [sibling], "another question moves nothing"
    drawn = {baselines(QUESTIONS, seed=seed)["sibling"][0].text for seed in range(30)}
    assert drawn == set(QUESTIONS[0].answers)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "nltk", None)
    metrics._require.cache_clear()
    with pytest.raises(RequestError, match="nltk is not installed") as caught:
        score_answer("你好", ["你好"])
    assert "[evaluate]" in caught.value.hint
