"""M's subtopics, and what C says of its data, beside ours."""

from collections import Counter
from typing import Any

import labelled_rows
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from table_rows import dialogue_of, frame
from unique_rows import post, posts, rounds, sampled_round, splits

from pipelines.annotate.coherence import REMOVED
from pipelines.operations.paper_tables import c_figures, m_subtopics, m_table_1, paper_tables
from pipelines.split.eligible import with_topics
from pipelines.store import Store
from schemas.annotations import CerLabels, Topics
from schemas.dialogues import CoherentDialogues
from schemas.dropped import Lost, dropped
from schemas.training import SampledTurns, Splits

NAMES = ("熬夜", "出轨", "焦虑", "自己写的标签")


def column(table: Any, name: str) -> dict[str, Any]:
    """A column of a table by its first one."""
    return {row[0]: row[table.columns.index(name)] for row in table.rows}


@given(st.lists(st.lists(st.sampled_from(NAMES), max_size=4), max_size=8))
def test_a_subtopic_is_counted_once_a_post_and_what_is_not_listed_is_not_printed(labels: list[list[str]]):
    """A label of a source may be anybody's words."""
    table = m_subtopics(posts(*(post(n, "我睡不着", subtopics=names) for n, names in enumerate(labels))))
    counts = Counter(name for names in labels for name in set(names))
    others = counts.pop("自己写的标签", 0)
    assert column(table, "posts") == counts | {"not of the taxonomy": others}
    listed = [row[2] for row in table.rows[:-1]]
    assert listed == sorted(listed, reverse=True)
    assert all(row[3] == round(100 * row[2] / len(labels), 2) for row in table.rows if labels)


def test_a_subtopic_of_two_topics_names_both():
    table = m_subtopics(posts(post(1, "我睡不着", subtopics=["出轨"])))
    assert column(table, "category")["出轨"] == "Romantic Relationship, Marriage"


def test_a_judged_topic_counts_where_the_source_gives_none_of_the_taxonomy():
    rows = posts(
        *(post(n, "我睡不着", topic=topic, subtopics=["失眠"]) for n, topic in enumerate(("行为", "杂谈", None)))
    )
    said = {
        "relevant": True,
        "risk": [],
        "why": "",
        **labelled_rows.PROVENANCE,
        "topic": "情绪",
        "subtopic": "抑郁情绪",
    }
    judged = frame(Topics, *(said | {"row_id": one} for one in rows["post_id"]))
    named = with_topics(rows, judged)
    assert {name: n for name, n in column(m_table_1(named), "posts").items() if n} == {
        "Behavior": 1,
        "Emotion": 2,
        "all": 3,
    }
    assert column(m_subtopics(named), "posts") == {"抑郁情绪": 2, "not of the taxonomy": 3}
    assert named["subtopics"].to_list() == [["失眠"], ["失眠", "抑郁情绪"], ["失眠", "抑郁情绪"]]


OF_ROUNDS = [sampled_round(n, 2, labelled_rows.HISTORY, "好", group_id=f"g{n}") for n in range(4)]
TURNS = rounds(*OF_ROUNDS)
SPLITS = splits(g0="train", g1="train", g2="validation", g3="test")
SAID = ("TTT", "TFF", "FTT", "FFF")  # of the candidate of each round


def labels(**more: Any) -> pl.DataFrame:
    made = [
        labelled_rows.label(labelled_rows.candidate(dialogue_id=turn["dialogue_id"]), turn, right)
        for turn, right in zip(OF_ROUNDS, SAID, strict=True)
    ]
    return frame(CerLabels, *made).with_columns(**more)


def dialogues(n: int, provider: str = "openai") -> pl.DataFrame:
    said = ("seeker: 我睡不着", "supporter: 多久了？")
    more = {"provider": provider, "verdict": "keep"}
    return frame(CoherentDialogues, *(dialogue_of(CoherentDialogues, f"k{one}", *said, **more) for one in range(n)))


def test_what_c_says_of_its_data_beside_ours_by_hand():
    """A label may have a split beside it: that of its group counts either way."""
    for made in (labels(), labels(split=pl.lit("train"))):
        table = c_figures(dialogues(6), 2, made, TURNS, SPLITS)
        assert [row[1:] for row in table.rows] == [
            (8, None),
            (25.0, 23.0),
            (4, None),
            (16, 11_140),
            (2, 574),
            (50.0, None),
            (50.0, None),  # 6 of 12 verdicts
            (66.67, 23.0),  # 4 of 6
        ]


def test_where_there_is_nothing_yet_there_is_no_figure_of_ours():
    tables = (CoherentDialogues, CerLabels, SampledTurns, Splits)
    filtered, *others = (one.create_empty() for one in tables)
    table = c_figures(filtered, 0, *others)
    assert {row[1] for row in table.rows} == {None}
    assert column(table, "C")["held-out samples"] == 574
    assert column(c_figures(filtered, 3, *others), "ours")["removed by the filter, %"] == 100
    assert not any("by form alone" in note for note in table.notes)
    assert "by form alone" in c_figures(dialogues(1, "structural"), 0, *others).notes[-1]


def test_what_the_filter_removed_is_what_it_judged_and_a_home_without_posts_has_cs_figures(tmp_path):
    """A reply that could not be read removed nothing."""
    store = Store(tmp_path)
    assert [row[1] for row in paper_tables(store, "c")["C"].rows] == [None] * 8
    lost = [Lost("dialogue", f"s:{n}", reason) for n, reason in enumerate((*REMOVED, "no_json", "personal_data"))]
    assert len(REMOVED) == 8
    store.write("coherent_dialogues", dialogues(2), dropped("coherent_dialogues", lost))
    assert [row[1] for row in paper_tables(store, "C")["C"].rows[:2]] == [10, 80.0]
