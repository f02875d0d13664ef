"""Group keys: equal texts and one author are exact keys, nearly equal texts and shared passages are soft ones."""

from collections.abc import Mapping
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from near_texts import random_text
from sample_rows import dialogue, dialogues, post, posts

from pipelines.dedup import group_keys
from pipelines.dedup.group_keys import (
    FORMULA,
    TELLING,
    dialogue_keys,
    post_keys,
    post_texts,
    soft_keys,
    without_formulas,
)
from pipelines.dedup.group_keys import LONG as LONG_ANSWER
from pipelines.dedup.search import digests, name_clusters

STORY = "最近我和室友吵架了，晚上睡不着觉，不知道怎么办才好"
TITLE = "和室友吵架了怎么办才好呢？"
ELSE = "这是另一件事，说来话长，请听我慢慢说"


def exact(row: dict) -> set[str]:
    frame = post_keys(posts(row)) if "post_id" in row else dialogue_keys(dialogues(row))
    [(row_id, found)] = frame.iter_rows()
    assert row_id in row.values()
    assert found
    assert len(set(found)) == len(found)
    return set(found)


POST = post(1, STORY, title=TITLE, author="u_1")
QUOTED = ("你已经很努力了，请不要责怪自己，先好好睡一觉" * 5)[:LONG_ANSWER]
WITH_ANSWER = post(1, STORY, "短", QUOTED)
ROOMMATE = "seeker: 我想和您聊聊我的室友"
OFTEN_SHORT = dialogue(1, "seeker: 你好", "supporter: 在", "seeker: 好累", "supporter: 嗯")


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (POST, post(2, STORY, title=TITLE), True),
        (POST, post(2, "最近我和室友 吵架了,\n晚上睡不着觉，不知道怎么办才好", title="别的标题，完全不同的问题"), True),
        (POST, post(2, ELSE, title=TITLE), True),
        (POST, post(2, ELSE, author="u_1"), True),
        (POST, post(2, ELSE, author="u_2"), False),
        (POST, post(2, STORY + "。"), False),  # for near-duplicates
        (POST, post(2, f"{TITLE}\n{STORY}"), True),
        (POST, post(2, TITLE), True),
        (post(1, STORY), post(2, ELSE), False),  # unknown authors are not one author
        (post(1, STORY, title="今" * TELLING), post(2, ELSE, title=f" {'今' * TELLING}\u200b "), True),
        (post(1, STORY, title="今" * (TELLING - 1)), post(2, ELSE, title="今" * (TELLING - 1)), False),
        (post(1, "好累怎么办", title=TITLE), post(2, "好累怎么办", title=ELSE), False),
        (POST, dialogue(2, f"seeker: {TITLE}\n{STORY}", "supporter: 嗯"), True),
        (POST, dialogue(2, f"seeker: {STORY}", "supporter: 嗯"), True),
        (POST, dialogue(2, "seeker: 你好", "supporter: 你好", f"seeker: {STORY}", "supporter: 嗯"), True),
        (POST, dialogue(2, f"supporter: {STORY}", "seeker: 是的，就是这样，一直都是这样", "supporter: 嗯"), False),
        (POST, dialogue(2, ROOMMATE, "supporter: 嗯", f"seeker: {STORY}", "supporter: 嗯"), False),
        (WITH_ANSWER, post(2, ELSE, "嗯", f" {QUOTED}\n"), True),
        (WITH_ANSWER, post(2, QUOTED, title="有人这样回答我，大家怎么看"), True),
        (WITH_ANSWER, post(2, ELSE, QUOTED[:-1]), False),
        (post(1, STORY, QUOTED[:-1]), post(2, ELSE, QUOTED[:-1]), False),
        (WITH_ANSWER, dialogue(2, f"seeker: {ELSE}", f"supporter: {QUOTED}"), True),
        (WITH_ANSWER, dialogue(2, f"seeker: {ELSE}", "supporter: 嗯", f"seeker: {QUOTED}", "supporter: 嗯"), True),
        (dialogue(1, ROOMMATE, f"supporter: {QUOTED}"), dialogue(2, f"seeker: {ELSE}", f"supporter: {QUOTED}"), True),
        # Where the seeker never says much all of it is the opening.
        (OFTEN_SHORT, dialogue(2, "seeker: 你好", "supporter: 说吧", "seeker: 好 累", "supporter: 嗯"), True),
        (OFTEN_SHORT, dialogue(2, "seeker: 你好", "supporter: 在", "seeker: 好烦", "supporter: 嗯"), False),
    ],
)
def test_which_rows_share_an_exact_key(one: dict, other: dict, shared: bool):
    assert exact(one).isdisjoint(exact(other)) is not shared


def test_no_key_is_readable():
    found = exact(POST) | exact(dialogue(1, f"seeker: {STORY}", "supporter: 嗯"))
    assert [key for key in found if key != "a:u_1" and not key.removeprefix("t:").isalnum()] == []
    assert not any("吵架" in key for key in found)


def test_no_rows_have_no_keys():
    for frame in (post_keys(posts()), dialogue_keys(dialogues())):
        assert frame.schema == {"row_id": pl.String, "keys": pl.List(pl.String)}
        assert frame.is_empty()
    assert soft({}) == {}


NIGHTS = "最近半年我一直睡不好，夜里醒来就再也睡不着，白天上课没有精神，成绩也掉了下来，我不知道该跟谁说这件事。"
OTHER = "和室友因为空调的温度吵了一架，现在谁也不理谁，寝室里的空气像结了冰，我每天都想在图书馆待到关门再回去。"
LONG = "".join(f"第{n}天，我把想说的话写下来，又一句一句地划掉；" for n in range(10, 30))


def soft(
    texts: Mapping[str, str | list[str]], split_of: Mapping[str, str] | None = None, titles: tuple[str, ...] = ()
) -> dict[str, set[str]]:
    """The soft keys of rows, of row → text or texts."""
    rows = [(row, one) for row, of in texts.items() for one in ([of] if isinstance(of, str) else of)]
    frame = pl.DataFrame(rows, schema={"row_id": pl.String, "text": pl.String}, orient="row")
    frame = frame.with_columns(key="t:" + digests(frame["text"]), title=pl.col("row_id").is_in(titles))
    split = pl.DataFrame(list((split_of or {}).items()), schema={"row_id": pl.String, "split": pl.String}, orient="row")
    found = soft_keys(frame, split, name_clusters)
    return {row: set(of["key"]) for (row,), of in found.group_by("row_id")}


def groups(found: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """Rows that have a key in common, key by key."""
    return {frozenset(row for row in found if key in found[row]) for of in found.values() for key in of}


def test_nearly_equal_texts_share_a_key_and_different_or_equal_ones_do_not():
    assert groups(soft({"a": NIGHTS, "b": NIGHTS.replace("半年", "一年"), "c": OTHER})) == {frozenset("ab")}
    assert soft({"a": NIGHTS[:20], "b": NIGHTS[:20]}) == {}  # an exact key


def test_texts_that_differ_in_marks_alone_share_a_key_but_not_across_splits():
    bare = NIGHTS.replace("，", "").replace("。", "")
    texts = {"a": NIGHTS, "b": bare, "c": OTHER, "d": "好累，好累！", "e": "好累好累"}
    assert groups(soft(texts)) == {frozenset("ab")}
    assert groups(soft(texts, {"a": "train"})) == {frozenset("ab")}
    assert soft(texts, {"a": "train", "b": "test"}) == {}


def test_a_title_has_no_key_for_being_nearly_equal():
    near = {"a": NIGHTS[:24], "b": NIGHTS[:24] + "呢"}
    assert groups(soft(near)) == {frozenset("ab")}
    assert soft(near, titles=("a", "b")) == {}


def test_a_passage_of_a_line_is_a_key_and_a_shorter_one_is_not():
    assert groups(soft({"a": NIGHTS, "b": f"老师您好。{LONG}{NIGHTS}{LONG}"})) == {frozenset("ab")}
    whole = OTHER + NIGHTS
    assert groups(soft({"a": whole, "b": f"我读到过这样一段话：{NIGHTS[:32]}"})) == {frozenset("ab")}
    assert soft({"a": whole, "b": f"我读到过这样一段话：{NIGHTS[:22]}"}) == {}
    assert soft({"a": [NIGHTS + OTHER, NIGHTS], "b": LONG}) == {}  # one row repeats itself


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000))
def test_a_passage_is_a_key_where_a_row_without_a_split_has_it_however_few_these_are(seed: int):
    random = Random(seed)
    lines = [random_text(40, seed + number) for number in range(8)]
    texts = {str(row): "".join(random.sample(lines, 3)) for row in range(12)}
    split_of = {row: random.choice(("train", "test")) for row in texts if random.random() < 0.8}
    few = soft(texts, split_of)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_keys, "AT_A_TIME", 300)  # bytes, fewer than a text has: they are not few any more
        assert min(len(text.encode()) for text in texts.values()) > 300
        assert soft(texts, split_of) == few
    passages = {row: {key for key in keys if key.startswith("p:")} for row, keys in few.items()}
    assert all(len(rows) > 1 and not rows <= split_of.keys() for rows in groups(passages))
    undecided = groups(soft(texts))
    assert any(rows <= split_of.keys() for rows in undecided)


def test_a_passage_of_very_many_texts_is_a_formula():
    def rows(number: int) -> dict[str, str]:
        return {f"r{n}": f"{NIGHTS}{''.join(chr(0x4E00 + 200 * n + m) for m in range(80))}" for n in range(number)}

    assert frozenset(rows(FORMULA)) in groups(soft(rows(FORMULA)))
    assert frozenset(rows(FORMULA + 1)) not in groups(soft(rows(FORMULA + 1)))


def test_a_reply_of_very_many_rows_is_no_key_and_a_post_of_as_many_is():
    def kept(number: int) -> set[str]:
        answered = [post(n, f"{STORY}{chr(0x4E00 + n)}", QUOTED, title=f"{TITLE}{n}") for n in range(number)]
        texts = without_formulas(post_texts(posts(*answered, *(post(f"copy{n}", ELSE) for n in range(number)))))
        return set(texts["text"])

    assert kept(FORMULA) - kept(FORMULA + 1) == {QUOTED.replace("，", ",")}
    assert ELSE.replace("，", ",") in kept(FORMULA + 1)


def test_a_passage_that_stands_in_two_splits_is_no_key():
    rows = {"a": f"{NIGHTS}{LONG}", "b": f"{OTHER}{NIGHTS}", "c": f"{NIGHTS}，后来就好了。" + OTHER[:9]}
    assert frozenset("abc") in groups(soft(rows))
    assert frozenset("abc") not in groups(soft(rows, {"a": "test", "b": "train"}))


def test_a_chain_between_two_splits_has_a_key_for_each_pair():
    """a ~ b ~ c, a and c apart: where both have their split, b shares with both, and they do not share."""
    middle = NIGHTS.replace("半年", "一年")
    texts = {"a": NIGHTS, "b": middle, "c": middle.replace("没有", "没什")}

    def near(split_of: dict[str, str], rows: str = "abc") -> set[frozenset[str]]:
        found = soft({row: texts[row] for row in rows}, split_of)
        return groups({row: {key for key in of if key.startswith("n:")} for row, of in found.items()})

    assert near({}, "ac") == set()
    assert near({}) == near({"a": "test"}) == near({"a": "test", "c": "test"}) == {frozenset("abc")}
    assert near({"a": "test", "c": "train"}) == {frozenset("ab"), frozenset("bc")}
