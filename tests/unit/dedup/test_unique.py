"""Posts and dialogues together: without duplicates, in groups, each group with its split; every row accounted for."""

from collections import Counter
from datetime import UTC, datetime
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from near_texts import edited, random_text
from polars.testing import assert_frame_equal
from sample_rows import dialogue, dialogues, post, posts

from pipelines.core import spill
from pipelines.dedup import group_keys
from pipelines.dedup.group_keys import dialogue_keys, dialogue_texts, post_keys, post_texts, soft_keys
from pipelines.dedup.search import name_clusters
from pipelines.dedup.unique import require_sources, require_training_rows, unique
from pipelines.errors import RequestError
from pipelines.settings import PostSizes, SplitSizes
from pipelines.settings import Splits as Sizes
from pipelines.split.splits import WEAK
from pipelines.store.reconciliation import reconcile, require_balance
from schemas.dialogues import UniqueDialogues
from schemas.posts import UniquePosts
from schemas.table import Dropped
from schemas.training import Splits

Made = dict[str, tuple[pl.DataFrame, pl.DataFrame]]

NONE = Splits.create_empty()
_ALL = PostSizes(test=0.999999, validation=1e-9)
ALL_TEST = Sizes(posts=_ALL, dialogues=_ALL)
ALL_TRAIN = Sizes(posts=PostSizes(test=0, validation=0), dialogues=SplitSizes(test=0, validation=0))
STORY, OTHER = "最近我和室友吵架了，晚上睡不着觉", "我考试没有考好，爸爸妈妈都很失望"


def make(
    some_posts: list[dict[str, Any]],
    some_dialogues: list[dict[str, Any]] | None = None,
    known: pl.DataFrame = NONE,
    sizes: Sizes | None = None,
) -> Made:
    clean = posts(*some_posts), dialogues(*some_dialogues or [])
    made = unique(*clean, known, sizes, given_at="clean_posts@1")
    for table, frame, units in (
        ("unique_posts", clean[0], ("post", "answer")),
        ("unique_dialogues", clean[1], ("dialogue",)),
    ):
        require_balance(table, [reconcile(unit, [frame], *made[table]) for unit in units])
        assert Dropped.is_valid(made[table][1])
    assert UniquePosts.is_valid(UniquePosts.cast(made["unique_posts"][0]))
    assert UniqueDialogues.is_valid(UniqueDialogues.cast(made["unique_dialogues"][0]))
    assert Splits.is_valid(made["splits"][0])
    return made


def reasons(made: Made, table: str) -> dict[str, tuple[str, str]]:
    return {row: (reason, detail) for _, _, row, reason, detail in made[table][1].iter_rows()}


def split_of(made: Made) -> dict[str, str]:
    """The split of every post and dialogue that was kept."""
    split = dict(made["splits"][0].select("group_id", "split").iter_rows())
    rows = [
        *made["unique_posts"][0].select("post_id", "group_id").iter_rows(),
        *made["unique_dialogues"][0].select("dialogue_id", "group_id").iter_rows(),
    ]
    return {row: split[group] for row, group in rows}


def test_a_post_and_the_dialogue_made_from_it_are_one_group():
    made = make([post(1, STORY)], [dialogue("d", f"seeker: {STORY}", "supporter: 嗯")])
    [group] = set(made["unique_posts"][0]["group_id"]) | set(made["unique_dialogues"][0]["group_id"])
    assert made["splits"][0]["group_id"].to_list() == [group]
    assert made["splits"][0]["given_at"].to_list() == ["clean_posts@1"]


def test_a_conflict_is_dropped_with_its_answers_and_names_the_groups():
    tested = make([post(1, STORY)], sizes=ALL_TEST)["splits"][0]
    both = make([post(1, STORY), post(2, OTHER)], known=tested, sizes=ALL_TRAIN)["splits"][0]
    made = make([post(1, STORY), post(2, OTHER), post(3, STORY, "答", title=OTHER)], known=both)
    group = {split: group for group, split in made["splits"][0].select("group_id", "split").iter_rows()}
    reason, detail = reasons(made, "unique_posts")["s:3"]
    named = sorted(detail.removeprefix("ties ").split(" and "))
    assert (reason, named) == ("bridges_split", [f"test ({group['test']})", f"train ({group['train']})"])
    assert reasons(made, "unique_posts")["s:3/0"] == ("post_dropped", "s:3")
    assert split_of(made) == {"s:1": "test", "s:2": "train"}


NIGHTS = "最近半年我一直睡不好，夜里醒来就再也睡不着，白天上课没有精神，成绩也掉了下来，我不知道该跟谁说这件事。"
NIGHTS_2 = NIGHTS.replace("半年", "一年")
NIGHTS_3 = NIGHTS_2.replace("没有", "没什")  # like NIGHTS_2, and not enough like NIGHTS
LETTER = "谢谢你愿意把这些说出来。半年没有睡好，任谁都会累，先别急着责怪自己，可以试着每天在同一个时间躺下，" * 2


def test_two_posts_in_nearly_the_same_words_are_one_post_with_all_answers():
    made = make([post(1, NIGHTS, LETTER), post(2, NIGHTS_2, LETTER + "祝好。", "抱抱")])
    [row] = made["unique_posts"][0].to_dicts()
    assert (row["post_id"], row["cluster_id"], row["cluster_size"]) == ("s:1", "s:1", 2)
    assert [(one["answer_id"], one["n_questions"]) for one in row["answers"]] == [("s:2/0", 1), ("s:2/1", 1)]
    assert reasons(made, "unique_posts") == {
        "s:2": ("near_duplicate", "0.88 like s:1"),
        "s:1/0": ("near_duplicate", "0.94 like s:2/0"),
    }


def test_a_dialogue_that_opens_nearly_like_a_post_or_quotes_an_answer_is_of_its_group():
    quoted = f"有人劝我说：“{LETTER[:32]}”可我做不到"
    for text, opening in ((NIGHTS, NIGHTS_2), (NIGHTS, f"您好，我第一次来。{NIGHTS}"), (OTHER, quoted)):
        made = make([post(1, text, LETTER)], [dialogue("d", f"seeker: {opening}", "supporter: 嗯")])
        assert made["splits"][0].height == 1


def test_a_post_nearly_like_two_splits_is_dropped_and_both_stay():
    """However early it was posted, and wherever it stands in the order of ids."""
    talk, tested = dialogue("d", f"seeker: {STORY}", "supporter: 嗯"), make([post(1, NIGHTS)], sizes=ALL_TEST)
    apart = make([post(1, NIGHTS)], [talk], tested["splits"][0], ALL_TRAIN)
    assert split_of(apart) == {"s:1": "test", "s:d": "train"}
    middle = post(0, NIGHTS_2, LETTER, title=STORY, posted_at=datetime(2020, 1, 1, tzinfo=UTC))
    made = make([middle, post(1, NIGHTS)], [talk], apart["splits"][0])
    assert split_of(made) == {"s:1": "test", "s:d": "train"}
    assert reasons(made, "unique_posts")["s:0"][0] == "bridges_split"
    assert reasons(made, "unique_posts")["s:0/0"] == ("post_dropped", "s:0")


def test_a_chain_of_near_duplicates_is_one_post_unless_its_ends_were_given_apart():
    first, middle, last = post(1, NIGHTS), post(2, NIGHTS_2), post(3, NIGHTS_3)
    assert make([first, middle, last])["unique_posts"][0]["cluster_size"].to_list() == [3]
    tested = make([first], sizes=ALL_TEST)["splits"][0]
    apart = make([first, last], known=tested, sizes=ALL_TRAIN)
    assert split_of(apart) == {"s:1": "test", "s:3": "train"}
    made = make([first, middle, last], known=apart["splits"][0])
    assert split_of(made) == split_of(apart)
    assert made["unique_posts"][0]["cluster_size"].to_list() == [1, 1]
    assert reasons(made, "unique_posts")["s:2"][0] == "bridges_split"


def test_a_near_duplicate_takes_no_room_in_a_size():
    rows = [post(1, NIGHTS), post(2, NIGHTS_2), post(3, STORY), post(4, OTHER)]
    made = make(rows, sizes=Sizes(posts=PostSizes(test=2, validation=0)))
    kept = Counter(split_of(made).values())
    assert kept == {"test": 2, "train": 1}


def of_source(source: str, number: int, text: str, **more: Any) -> dict[str, Any]:
    return post(number, text, source=source, post_id=f"{source}:{number}", **more)


def test_posts_that_are_one_count_for_the_source_of_the_post_that_stays():
    early, late = (datetime(2025, 3, day, tzinfo=UTC) for day in (1, 2))
    rows = [
        of_source("psyqa", 1, NIGHTS, posted_at=early),
        of_source("xinli001", 2, NIGHTS_2, posted_at=late),
        of_source("xinli001", 3, STORY),
        of_source("psyqa", 4, OTHER),
    ]
    one = SplitSizes(test=1, validation=0)
    made = make(rows, sizes=Sizes(posts=PostSizes(test=0, validation=0, sources={"xinli001": one})))
    held_out = {row for row, split in split_of(made).items() if split == "test"}
    assert held_out == {"xinli001:3"}, "psyqa:1 stays for xinli001:2"


def test_a_source_that_is_misspelt_is_refused_and_one_that_is_still_to_come_is_not():
    """Its posts would get the common sizes, and a split is given once."""
    one = SplitSizes(test=1, validation=0)
    rows = posts(of_source("psyqa", 1, STORY), of_source("smile", 2, OTHER))
    with pytest.raises(RequestError, match="no post is of the source 'psyqua'") as caught:
        require_sources(rows, Sizes(posts=PostSizes(sources={"psyqua": one})))
    assert "did you mean 'psyqa'?" in str(caught.value.hint)
    assert caught.value.where == "splits.posts.sources.psyqua"
    require_sources(rows, Sizes(posts=PostSizes(sources={"psyqa": one, "psyqa2": one, "xinli001": one})))
    require_sources(posts(), Sizes(posts=PostSizes(sources={"psyqa": one})))


def test_the_author_of_a_duplicate_counts_as_well():
    """The survivor is anonymous, its re-post is not: what its author wrote elsewhere must not be learnt from."""
    early, late = (datetime(2025, 3, day, tzinfo=UTC) for day in (1, 2))
    rows = [post(1, STORY, posted_at=early), post(2, STORY, author="u_1", posted_at=late), post(3, OTHER, author="u_1")]
    made = make(rows)
    assert made["unique_posts"][0]["post_id"].to_list() == ["s:1", "s:3"]
    assert made["unique_posts"][0]["group_id"].n_unique() == 1
    assert split_of(make(rows[2:], known=make(rows[:2], sizes=ALL_TEST)["splits"][0])) == {"s:3": "test"}


def test_numbers_that_leave_nothing_to_train_on_are_refused_and_shares_of_a_handful_or_no_rows_are_not():
    """A split is given once: what was all given to test by mistake could never train."""
    rows, talks = [post(1, STORY), post(2, OTHER)], [dialogue("d", f"seeker: {STORY}", "supporter: 嗯")]
    for size in (PostSizes(test=2, validation=0), PostSizes(test=500, validation=0.1)):
        by_number = Sizes(posts=size, dialogues=size)
        with pytest.raises(RequestError, match="leave none of 2 posts to train on") as caught:
            require_training_rows(make(rows, talks, sizes=by_number), by_number)
        assert f"splits.posts (test = {size.test}, " in str(caught.value.where)
        with pytest.raises(RequestError, match="leave none of 1 dialogues to train on"):
            require_training_rows(make([], talks, sizes=by_number), by_number)
    of_a_source = Sizes(posts=PostSizes(sources={"s": SplitSizes(test=2, validation=0)}))
    with pytest.raises(RequestError, match="leave none of 2 posts to train on"):
        require_training_rows(make(rows, sizes=of_a_source), of_a_source)
    require_training_rows(make(rows[:1], sizes=ALL_TEST), ALL_TEST)
    require_training_rows(make([], sizes=ALL_TRAIN), ALL_TRAIN)


PIECES = st.sampled_from(
    [
        *(STORY, OTHER, f" {STORY}", "你好", "我不知道该怎么和妈妈说这件事", "工作压力太大了，想要辞职又不敢"),
        *(NIGHTS, NIGHTS_2, NIGHTS_3, f"老师您好。{NIGHTS}{STORY}", f"{OTHER}{NIGHTS_3[12:]}", LETTER, LETTER[9:60]),
    ]
)
POSTS = st.lists(
    st.tuples(PIECES, PIECES, st.sampled_from([None, "u_1", "u_2"]), st.lists(PIECES, max_size=2)), max_size=6
)
DIALOGUES = st.lists(st.lists(PIECES, min_size=1, max_size=2), max_size=5)


def soft_keys_of(made: Made) -> pl.DataFrame:
    """The soft keys of the rows that were kept, seen by themselves."""
    texts = pl.concat([post_texts(made["unique_posts"][0]), dialogue_texts(made["unique_dialogues"][0])])
    keys = soft_keys(texts, pl.DataFrame(schema={"row_id": pl.String, "split": pl.String}), name_clusters)
    assert set(keys["key"].str.head(2)) <= {"n:", *WEAK}
    return keys


@settings(deadline=None, max_examples=10)
@given(batches=st.lists(st.tuples(POSTS, DIALOGUES), min_size=1, max_size=3), seed=st.integers(0, 3))
def test_over_refreshes_no_row_of_train_has_a_key_of_test(batches: list[Any], seed: int):
    sizes = Sizes(posts=PostSizes(test=0.4, validation=0.2), dialogues=SplitSizes(test=0.4, validation=0.2))
    some_posts: list[dict[str, Any]] = []
    some_dialogues: list[dict[str, Any]] = []
    known = NONE
    given_before: dict[str, str] = {}
    for drawn_posts, drawn_dialogues in batches:
        for title, body, author, answers in drawn_posts:
            some_posts.append(post(f"p{len(some_posts)}", body, *answers, title=title, author=author))
        for asked in drawn_dialogues:
            said = [turn for words in asked for turn in (f"seeker: {words}", "supporter: 嗯")]
            some_dialogues.append(dialogue(f"d{len(some_dialogues)}", *said))
        made = make(some_posts, some_dialogues, known, sizes)
        split = split_of(made)
        exact = post_keys(made["unique_posts"][0]), dialogue_keys(made["unique_dialogues"][0])
        keys = dict(pl.concat(exact).iter_rows())
        assert keys.keys() == split.keys()
        for row, soft in soft_keys_of(made).iter_rows():
            keys[row].append(soft)
        of = {name: {key for row in keys if split[row] == name for key in keys[row]} for name in set(split.values())}
        assert not any(of[a] & of[b] for a in of for b in of if a < b)
        groups = dict(made["splits"][0].select("group_id", "split").iter_rows())
        assert given_before.items() <= groups.items()
        for before in (known, made["splits"][0]):
            again = make(some_posts, some_dialogues, before, sizes)
            assert all(again[table][part].equals(made[table][part]) for table in made for part in (0, 1))
        known, given_before = made["splits"][0], groups


@settings(deadline=None, max_examples=8)
@given(POSTS, DIALOGUES, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(drawn_posts: list[Any], drawn_dialogues: list[Any], chance: Any):
    rows = [
        post(n, body, *answers, title=title, author=who) for n, (title, body, who, answers) in enumerate(drawn_posts)
    ]
    talks = [dialogue(f"d{n}", f"seeker: {asked[0]}", "supporter: 嗯") for n, asked in enumerate(drawn_dialogues)]
    one = make(rows, talks)
    chance.shuffle(rows)
    chance.shuffle(talks)
    other = make(rows, talks)
    assert len(one) == 3
    for table in one:
        assert one[table][0].equals(other[table][0])
        assert one[table][1].sort("unit", "row_id").equals(other[table][1].sort("unit", "row_id"))


def test_nothing_depends_on_how_much_is_read_at_a_time(monkeypatch, tmp_path):
    random = Random(3)
    texts = [random_text(random.randint(40, 120), number) for number in range(30)]
    texts += [edited(random.choice(texts), random, 0.02) for _ in range(15)]
    texts += [random.choice(texts)[:60] + random_text(60, 100 + number) for number in range(15)]
    signed = [f"{random_text(160, 200 + number)}。我是小明，祝你早日走出阴霾。" for number in range(40)]
    some = [post(number, text, *random.sample(signed, 2)) for number, text in enumerate(texts)]
    spoken = [dialogue(f"d{number}", f"seeker: {text}", "supporter: 嗯") for number, text in enumerate(texts[::4])]
    whole = make(some, spoken)
    assert "near_duplicate" in set(whole["unique_posts"][1]["reason"])
    assert whole["unique_posts"][0]["edits"].list.len().sum() > 0
    assert "p:" in set(soft_keys_of(whole)["key"].str.head(2))
    monkeypatch.setattr(spill, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(group_keys, "AT_A_TIME", 500)
    in_pieces = unique(posts(*some), dialogues(*spoken), NONE, given_at="clean_posts@1", scratch=tmp_path)
    for table, frames in whole.items():
        for one, other in zip(frames, in_pieces[table], strict=True):
            assert_frame_equal(one, other, check_row_order=False)
