"""Ties: nearly equal texts and shared passages hold rows together; chains and formulas do not."""

from collections.abc import Mapping

import polars as pl

from pipelines.dedup.search import digests, search_by
from pipelines.dedup.ties import FORMULA, ties

STORY = "最近半年我一直睡不好，夜里醒来就再也睡不着，白天上课没有精神，成绩也掉了下来，我不知道该跟谁说这件事。"
OTHER = "和室友因为空调的温度吵了一架，现在谁也不理谁，寝室里的空气像结了冰，我每天都想在图书馆待到关门再回去。"
LONG = "".join(f"第{n}天，我把想说的话写下来，又一句一句地划掉；" for n in range(10, 30))


def tied(
    texts: Mapping[str, str | list[str]], standing: Mapping[str, str] | None = None, titles: tuple[str, ...] = ()
) -> dict[str, set[str]]:
    """The ties of rows, of row → text or texts."""
    told = [(row, one) for row, of in texts.items() for one in ([of] if isinstance(of, str) else of)]
    frame = pl.DataFrame(told, schema={"row_id": pl.String, "text": pl.String}, orient="row")
    frame = frame.with_columns(link="t:" + digests(frame["text"]), title=pl.col("row_id").is_in(titles))
    split = pl.DataFrame(list((standing or {}).items()), schema={"row_id": pl.String, "split": pl.String}, orient="row")
    found = ties(frame, split, search_by())
    assert found["row_id"].is_sorted()
    return {row: set(of) for row, of in found.iter_rows()}


def groups(found: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """Rows that have a tie in common, tie by tie."""
    return {frozenset(row for row in found if tie in found[row]) for of in found.values() for tie in of}


def test_nearly_equal_texts_tie_and_different_ones_do_not():
    assert groups(tied({"a": STORY, "b": STORY.replace("半年", "一年"), "c": OTHER})) == {frozenset("ab")}


def test_equal_texts_are_links_and_no_ties():
    assert tied({"a": STORY[:20], "b": STORY[:20]}) == {}


def test_texts_that_differ_in_marks_alone_tie_but_no_two_splits():
    bare = STORY.replace("，", "").replace("。", "")
    texts = {"a": STORY, "b": bare, "c": OTHER, "d": "好累，好累！", "e": "好累好累"}
    assert groups(tied(texts)) == {frozenset("ab")}
    assert groups(tied(texts, {"a": "train"})) == {frozenset("ab")}
    assert tied(texts, {"a": "train", "b": "test"}) == {}


def test_a_title_ties_nobody_by_being_nearly_equal():
    near = {"a": STORY[:24], "b": STORY[:24] + "呢"}
    assert groups(tied(near)) == {frozenset("ab")}
    assert tied(near, titles=("a", "b")) == {}


def test_a_text_within_another_ties_by_its_passage():
    assert groups(tied({"a": STORY, "b": f"老师您好。{LONG}{STORY}{LONG}"})) == {frozenset("ab")}


def test_a_part_of_a_text_ties_when_it_is_a_line_long():
    whole = OTHER + STORY
    assert groups(tied({"a": whole, "b": f"我读到过这样一段话：{STORY[:32]}"})) == {frozenset("ab")}
    assert tied({"a": whole, "b": f"我读到过这样一段话：{STORY[:22]}"}) == {}


def test_a_passage_that_one_row_repeats_ties_nobody():
    assert tied({"a": [STORY + OTHER, STORY], "b": LONG}) == {}


def test_a_passage_of_very_many_texts_is_a_formula():
    def rows(number: int) -> dict[str, str]:
        return {f"r{n}": f"{STORY}{''.join(chr(0x4E00 + 200 * n + m) for m in range(80))}" for n in range(number)}

    assert frozenset(rows(FORMULA)) in groups(tied(rows(FORMULA)))
    assert frozenset(rows(FORMULA + 1)) not in groups(tied(rows(FORMULA + 1)))


def test_a_chain_between_two_splits_ties_pair_by_pair():
    """a ~ b ~ c, a and c apart: where both have their split, b touches both, and they do not touch each other."""
    words = {"a": STORY, "b": STORY.replace("半年", "一年"), "c": STORY.replace("半年", "一年").replace("没有", "没什")}
    apart = tied({"a": words["a"], "c": words["c"]})
    assert [tie for of in apart.values() for tie in of if tie.startswith("n:")] == []

    def near(standing: dict[str, str]) -> set[frozenset[str]]:
        found = tied(words, standing)
        return groups({row: {tie for tie in of if tie.startswith("n:")} for row, of in found.items()})

    assert near({}) == near({"a": "test"}) == near({"a": "test", "c": "test"}) == {frozenset("abc")}
    assert near({"a": "test", "c": "train"}) == {frozenset("ab"), frozenset("bc")}


def test_a_passage_that_stands_on_two_sides_ties_no_third():
    rows = {"a": f"{STORY}{LONG}", "b": f"{OTHER}{STORY}", "c": f"{STORY}，后来就好了。" + OTHER[:9]}
    assert frozenset("abc") in groups(tied(rows))
    assert frozenset("abc") not in groups(tied(rows, {"a": "test", "b": "train"}))


def test_ties_do_not_depend_on_the_order_of_rows():
    rows = {"a": STORY, "b": STORY + "唉", "c": [OTHER, LONG], "d": OTHER[:40] + "，" + LONG[:90]}
    assert tied(rows) == tied(dict(reversed(rows.items())))


def test_nothing_ties_nothing():
    assert tied({}) == {}
