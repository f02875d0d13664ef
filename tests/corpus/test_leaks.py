"""Real data: what is told twice, or nearly so, or quoted in part, never stands on two sides of a split.

SMILE was made from PsyQA, several dialogues a question: a third of its first turns are exact repeats of another.
"""

import gzip
import json
import random
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest
from sample_rows import dialogue, dialogues, posts

from pipelines.clean import clean_dialogues, clean_posts
from pipelines.dedup.group_keys import TELLING, post_keys, post_texts, soft_keys, without_formulas
from pipelines.dedup.search import name_clusters
from pipelines.dedup.unique import unique
from pipelines.ingest.importing import read
from pipelines.settings import PostSizes, SplitSizes
from pipelines.settings import Splits as Sizes
from pipelines.split.splits import MOST, give_splits, known_splits
from pipelines.text import keys
from schemas.dialogues import CleanDialogues, ImportedDialogues
from schemas.training import Splits

NONE = Splits.create_empty()
NO_ANSWERS = pl.List(pl.Struct({"text": pl.String}))
# So large that half of all pairs that are not tied would stand on two sides.
MANY = Sizes(posts=PostSizes(test=0.35, validation=0.3), dialogues=SplitSizes(test=0.35, validation=0.3))


def keys_of(texts: list[str]) -> list[str]:
    return pl.DataFrame({"text": texts}).select(key=keys.key(pl.col("text")))["key"].to_list()


def split_of(made: dict[str, tuple[pl.DataFrame, pl.DataFrame]]) -> dict[str, str]:
    """The split of every row that is no bridge; a duplicate has that of the row it was merged into."""
    split = dict(made["splits"][0].select("group_id", "split").iter_rows())
    found = {}
    for table, row_id in (("unique_posts", "post_id"), ("unique_dialogues", "dialogue_id")):
        kept, dropped = made[table]
        found |= {row: split[group] for row, group in kept.select(row_id, "group_id").iter_rows()}
        merged = dropped.filter(pl.col("reason").str.ends_with("duplicate"), pl.col("unit") != "answer")
        for row, detail in merged.select("row_id", "detail").iter_rows():
            found[row] = found[detail.rsplit(" ", 1)[1]]
    return found


def sides(split: dict[str, str], tied: dict[Any, list[str]]) -> tuple[int, int]:
    """How many of the ties hold more than one row, and how many of these stand on more than one side."""
    several = [rows for rows in tied.values() if len(rows) > 1]
    return len(several), sum(len({split[row] for row in rows if row in split}) > 1 for rows in several)


# --- SMILE


def test_equal_first_turns_of_smile(shared: Path):
    """All 2,131 first turns of the part that was kept for near-duplicates."""
    lines = (shared / "near_dup" / "smile_first_turns.jsonl").read_text(encoding="utf-8").splitlines()
    first_turns = [json.loads(line) for line in lines]
    rows = [dialogue(n, f"seeker: {one['text']}", f"supporter: 回复{n}") for n, one in enumerate(first_turns)]
    made = unique(posts(), dialogues(*rows), NONE, MANY)
    split = split_of(made)
    assert len(split) == 2131
    assert len(set(split.values())) == 3
    equal, near = defaultdict(list), defaultdict(list)
    for row, key, one in zip(rows, keys_of([one["text"] for one in first_turns]), first_turns, strict=True):
        near[one["cluster"]].append(row["dialogue_id"])
        equal[key].append(row["dialogue_id"])
    assert len(equal) == 2131 - 659  # 31 % of this part are repeats; 33 % of the whole set
    assert min(map(len, equal)) >= TELLING
    assert sides(split, equal) == (319, 0)
    assert sides(split, near) == (351, 0)
    one_by_one = {row["dialogue_id"]: str(n % 3) for n, row in enumerate(rows)}
    assert sides(one_by_one, equal)[1] > 319 / 3, "split dialogue by dialogue, most would stand on two sides"


# --- sixty questions of PsyQA, each edited


WIDE = {ord(","): "，", ord("?"): "？", ord("!"): "！"} | {ord(str(n)): chr(0xFF10 + n) for n in range(10)}
NARROW = {ord(wide): narrow for wide, narrow in zip("，？！：（）", ",?!:()", strict=True)}


def edited(words: str, way: int) -> str:
    """`words` as somebody else may type them: no reader sees another text."""
    half = len(words) // 2
    return [
        words.translate(WIDE),
        words.translate(NARROW),
        f"\u3000{words[:half]}\n\n{words[half:]} ",
        f"\ufeff{words[:half]}\u200b{words[half:]}",
    ][way % 4]


@pytest.fixture(scope="module")
def questions(shared: Path) -> pl.DataFrame:
    frame = read("psyqa", shared / "zh_qa" / "PsyQA_example.json").kept
    asked = frame["post_id"].is_in(clean_posts(frame)[0]["post_id"].implode())
    return frame.filter(asked, pl.col("description").str.len_chars() >= 30).sort("post_id").head(60)


def post_row(question: dict[str, Any], kind: str, title: str, description: str) -> dict[str, Any]:
    name = f"{question['source_id']}-{kind}"
    answers = [answer | {"answer_id": f"psyqa:{name}/{n}"} for n, answer in enumerate(question["answers"])]
    changed = {"post_id": f"psyqa:{name}", "source_id": name, "title": title, "description": description}
    return question | changed | {"answers": answers}


class Told(NamedTuple):
    """The questions told again: as posts, as dialogues, and which rows tell one question, by the way in which."""

    posts: pl.DataFrame
    dialogues: pl.DataFrame
    rows: dict[str, dict[str, str]]


EQUAL = ("repost", "retitled", "untitled", "whole", "body", "greeted", "answered")
NEAR = ("near", "longer", "quote", "cut")


@pytest.fixture(scope="module")
def told_again(questions: pl.DataFrame) -> Told:
    more_posts, more_dialogues = [], []
    rows: dict[str, dict[str, str]] = {}
    for way, question in enumerate(questions.iter_rows(named=True)):
        name, title, body = question["source_id"], question["title"], question["description"]
        quoted = question["answers"][0]["text"]
        more_posts += [
            post_row(question, "repost", edited(title, way), edited(body, way)),
            post_row(question, "retitled", f"求助{name}", edited(body, way + 1)),
            post_row(question, "untitled", "", edited(f"{title}\n{body}", way + 2)),
            post_row(question, "near", f"{title}（再发一次）", f"大家好，{body}谢谢大家！") | {"answers": []},
        ]
        openings = {
            "whole": edited(f"{title}\n{body}", way),
            "body": edited(body, way + 1),
            "greeted": edited(body, way + 3),
            "longer": f"老师您好，我想请教一件事。{title}{body}我该怎么办？",
            "quote": f"有人这样回答{name}：“{quoted[:120]}”您觉得呢？",
            "cut": f"{body[: max(40, len(body) // 3)]}……我说不下去了，{name}",
        }
        for kind, opening in openings.items():
            said = ["seeker: 你好", "supporter: 你好，请讲。"] if kind == "greeted" else []
            asked = [*said, f"seeker: {opening}", f"supporter: {name}{kind}，我在听，请说吧。"]
            more_dialogues.append(dialogue(f"{name}-{kind}", *asked))
        asked = [f"seeker: {name}号来访者想聊一聊自己的近况", f"supporter: {edited(quoted, way + 2)}"]
        more_dialogues.append(dialogue(f"{name}-answered", *asked))
        rows[name] = {kind: f"psyqa:{name}-{kind}" for kind in ("repost", "retitled", "untitled", "near")}
        rows[name] |= {kind: f"s:{name}-{kind}" for kind in ("answered", *openings)}
        rows[name]["itself"] = question["post_id"]
    posts = pl.concat([questions, pl.DataFrame(more_posts, schema=questions.schema)])
    dialogues = pl.DataFrame(more_dialogues, schema=CleanDialogues.polars_schema())
    return Told(posts, dialogues.select(ImportedDialogues.column_names()), rows)


def crossings(told: Told, split: dict[str, str]) -> Counter[str]:
    """In how many of the questions a way of telling stands on another side than the question."""
    sides = ((kind, split.get(row), split[rows["itself"]]) for rows in told.rows.values() for kind, row in rows.items())
    return Counter(kind for kind, side, of_itself in sides if side not in (None, of_itself))


def test_sixty_questions_told_again_do_not_cross(questions: pl.DataFrame, told_again: Told):
    assert questions.height == 60
    posts, talks = clean_posts(told_again.posts)[0], clean_dialogues(told_again.dialogues)[0]
    assert (posts.height, talks.height) == (5 * 60, told_again.dialogues.height)
    split = split_of(unique(posts, talks, NONE, MANY))
    there = Counter(kind for rows in told_again.rows.values() for kind, row in rows.items() if row in split)
    assert there == dict.fromkeys(("itself", *EQUAL, *NEAR), 60)
    assert len({split[rows["itself"]] for rows in told_again.rows.values()}) == 3
    assert crossings(told_again, split) == {}


def test_nor_when_they_come_crawl_after_crawl(questions: pl.DataFrame, told_again: Told):
    """The questions, then the posts, then the dialogues: no split moves, and what would tie two of them falls."""
    posts, talks = clean_posts(told_again.posts)[0], clean_dialogues(told_again.dialogues)[0]
    first = unique(clean_posts(questions)[0], talks.clear(), NONE, MANY)
    second = unique(posts, talks.clear(), first["splits"][0], MANY)
    third = unique(posts, talks, second["splits"][0], MANY)
    given = dict(third["splits"][0].select("group_id", "split").iter_rows())
    assert dict(first["splits"][0].select("group_id", "split").iter_rows()).items() <= given.items()
    before, split = split_of(first), split_of(third)
    assert before.items() <= split.items()
    assert crossings(told_again, split) == {}
    assert all(row in split for rows in told_again.rows.values() for row in rows.values())


# --- Xinli001's posts, put together anew


def test_posts_of_lines_that_many_share_are_many_groups_and_come_out_in_the_shares_asked_for(shared: Path):
    """20,000 posts, each of lines of others: of each line about ten have it, and all hang together."""
    with gzip.open(shared / "real_posts" / "posts.jsonl.gz", "rt", encoding="utf-8") as lines:
        told = [re.split(r"(?<=[。！？\n])", json.loads(line)["description"]) for line in lines]
    some, chance = [line for lines in told for line in lines if len(line.strip()) >= 8], random.Random(0)
    texts = ["".join(chance.choices(some, k=len(chance.choice(told)))) for _ in range(20_000)]
    frame = pl.DataFrame({"post_id": [f"r:{n}" for n in range(len(texts))], "text": texts, "description": texts})
    frame = frame.with_columns(title=pl.lit(""), author=pl.lit(None, pl.String), answers=pl.lit([], NO_ANSWERS))
    keyed = without_formulas(post_texts(frame))
    exact = post_keys(frame, keyed)
    soft = soft_keys(keyed, known_splits(exact, NONE), name_clusters)
    given = give_splits(exact, exact.clear(), NONE, Sizes(), soft=soft)
    assert max(Counter(given.rows["group_id"]).values()) <= MOST
    assert given.splits.height >= 10_000
    split_of_group = dict(given.splits.select("group_id", "split").iter_rows())
    rows = Counter(split_of_group[group] for group in given.rows["group_id"])
    for name in ("test", "validation"):
        assert rows[name] / len(texts) == pytest.approx(getattr(Sizes().posts, name), abs=0.01)
