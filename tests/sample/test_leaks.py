"""Real data: what is told twice never stands on two sides of a split.

SMILE was made from PsyQA, several dialogues a question: a third of its first turns are exact repeats of another.
"""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sample_rows import dialogue, dialogues, posts

from pipelines import text
from pipelines.clean import clean_dialogues, clean_posts
from pipelines.ingest.importing import read
from pipelines.sample.links import TELLING
from pipelines.sample.unique import unique
from pipelines.settings import Splits as Sizes
from pipelines.settings import SplitSizes
from schemas.training import Splits

NONE = Splits.create_empty()
# So large that half of all pairs that are not tied would stand on two sides.
MANY = Sizes(posts=SplitSizes(test=0.35, validation=0.3), dialogues=SplitSizes(test=0.35, validation=0.3))


def keys(texts: list[str]) -> list[str]:
    return pl.DataFrame({"text": texts}).select(key=text.key(pl.col("text")))["key"].to_list()


def split_of(made: dict[str, tuple[pl.DataFrame, pl.DataFrame]]) -> dict[str, str]:
    """The split of every row; a duplicate has that of the row it was merged into."""
    split = dict(made["splits"][0].select("group_id", "split").iter_rows())
    found = {}
    for table, row_id in (("unique_posts", "post_id"), ("unique_dialogues", "dialogue_id")):
        kept, dropped = made[table]
        found |= {row: split[group] for row, group in kept.select(row_id, "group_id").iter_rows()}
        for row, detail in dropped.filter(reason="duplicate").select("row_id", "detail").iter_rows():
            if "/" not in row:
                found[row] = found[detail.removeprefix("same text as ")]
    return found


def sides(split: dict[str, str], tied: dict[Any, list[str]]) -> tuple[int, int]:
    """How many of the ties hold more than one row, and how many of these stand on more than one side."""
    several = [rows for rows in tied.values() if len(rows) > 1]
    return len(several), sum(len({split[row] for row in rows if row in split}) > 1 for rows in several)


def told(*figures: object) -> None:
    sys.stdout.write(" ".join(map(str, figures)) + "\n")


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
    for row, key, one in zip(rows, keys([one["text"] for one in first_turns]), first_turns, strict=True):
        near[one["cluster"]].append(row["dialogue_id"])
        equal[key].append(row["dialogue_id"])
    repeats = 2131 - len(equal)
    assert repeats == 659  # 31 % of this part; 33 % of the whole set
    assert min(map(len, equal)) >= TELLING
    several, crossing = sides(split, equal)
    assert several == 319
    assert crossing == 0
    told("near-duplicate clusters of first turns that still stand on two sides:", *sides(split, near))


def test_whole_dialogues_of_smile(shared: Path):
    kept, _ = clean_dialogues(read("smile", shared / "zh_multiturn" / "smile_raw.tar.gz").kept)
    made = unique(posts(), kept, NONE, MANY)
    assert made["unique_dialogues"][0].height == kept.height == 266
    split = split_of(made)
    first_turns = [next(one["text"] for one in turns if one["role"] == "seeker") for turns in kept["turns"].to_list()]
    equal = defaultdict(list)
    for row, key in zip(kept["dialogue_id"], keys(first_turns), strict=True):
        if len(key) >= TELLING:
            equal[key].append(row)
    several, crossing = sides(split, equal)
    assert several > 20
    assert crossing == 0


def test_by_dialogue_they_would_leak(shared: Path):
    """The check above can fail: split dialogue by dialogue, most repeated first turns would stand on two sides."""
    lines = (shared / "near_dup" / "smile_first_turns.jsonl").read_text(encoding="utf-8").splitlines()
    equal = defaultdict(list)
    for n, key in enumerate(keys([json.loads(line)["text"] for line in lines])):
        equal[key].append(f"s:{n}")
    one_by_one = unique(
        posts(),
        dialogues(*(dialogue(n, f"seeker: {n}号的故事，和别人都不同", "supporter: 嗯") for n in range(2131))),
        NONE,
        MANY,
    )
    several, crossing = sides(split_of(one_by_one), equal)
    assert crossing > several / 3


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
    return frame.filter(pl.col("description").str.len_chars() >= 30).sort("post_id").head(60)


def post_row(question: dict[str, Any], kind: str, title: str, description: str) -> dict[str, Any]:
    name = f"{question['source_id']}-{kind}"
    answers = [answer | {"answer_id": f"psyqa:{name}/{n}"} for n, answer in enumerate(question["answers"])]
    changed = {"post_id": f"psyqa:{name}", "source_id": name, "title": title, "description": description}
    return question | changed | {"answers": answers}


def test_sixty_questions_edited_do_not_cross(questions: pl.DataFrame):
    assert questions.height == 60
    equal: dict[str, list[str]] = {}
    near: dict[str, list[str]] = {}
    more_posts, more_dialogues = [], []
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
            "quote": f"有人这样回答我：“{quoted[:120]}”您觉得呢？",
        }
        for kind, opening in openings.items():
            said = ["seeker: 你好", "supporter: 你好，请讲。"] if kind == "greeted" else []
            more_dialogues.append(dialogue(f"{name}-{kind}", *said, f"seeker: {opening}", f"supporter: {name}{kind}"))
        asked = f"seeker: {name}号来访者想聊一聊自己的近况"
        more_dialogues.append(dialogue(f"{name}-answered", asked, f"supporter: {edited(quoted, way + 2)}"))
        equal[name] = [question["post_id"], *(f"psyqa:{name}-{kind}" for kind in ("repost", "retitled", "untitled"))]
        equal[name] += [f"s:{name}-{kind}" for kind in ("whole", "body", "greeted", "answered")]
        near[name] = [question["post_id"], f"psyqa:{name}-near", f"s:{name}-longer", f"s:{name}-quote"]
    edits = pl.DataFrame(more_posts, schema=questions.schema)
    together = pl.concat([questions, edits])
    clean, _ = clean_posts(together)
    assert clean.height == 5 * 60
    talks = dialogues(*more_dialogues)

    at_once = split_of(unique(clean, talks, NONE, MANY))
    assert all(row in at_once for rows in equal.values() for row in rows)
    assert len({at_once[rows[0]] for rows in equal.values()}) == 3
    assert sides(at_once, equal) == (60, 0)

    # The same when the edits come in a later crawl, and the dialogues in one after it.
    first = unique(clean_posts(questions)[0], dialogues(), NONE, MANY)["splits"][0]
    second = unique(clean, dialogues(), first, MANY)["splits"][0]
    later = unique(clean, talks, second, MANY)
    assert sides(split_of(later), equal) == (60, 0)
    given = dict(later["splits"][0].select("group_id", "split").iter_rows())
    assert dict(first.select("group_id", "split").iter_rows()).items() <= given.items()

    crossing = Counter(
        row.split("-")[1] for rows in near.values() for row in rows[1:] if at_once[row] != at_once[rows[0]]
    )
    told("near edits of sixty questions that still stand on another side (held from part 2 on):", dict(crossing))
