"""What there is to judge in a home today: its items, without what was erased or is to be taken down."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import ValidationError

from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.errors import NoVersion, UnknownName, UnreadableFile
from pipelines.review.contract import CONTENTS, Kind
from pipelines.review.items import Items, ModelQuestion, cer_items, coe_items, question_items
from pipelines.rewrite.scripts import of_label
from pipelines.split.eligible import exclusion
from pipelines.store.store import Store
from pipelines.store.suppression import SuppressionList
from schemas.dropped import Lost

TABLE = "review_tasks"
_WHERE_TO_BEGIN = {"coe": "coe_chains", "cer": "cer_candidates"}


def require_kind(kind: str) -> Kind:
    """The kind of that name. Raises UnknownName."""
    for known in CONTENTS:
        if kind == known:
            return known
    raise UnknownName("kind of review", kind, CONTENTS)


def items_of(kind: Kind, home: Path, store: Store) -> Items:
    """The items of a kind, and why the others are left out: `pipelines.review.items`, and suppressed.

    Raises NoVersion where there is nothing to judge yet.
    """
    if kind in ("rank", "compare"):
        return _questions(kind, home, store)
    if not store.current(_WHERE_TO_BEGIN[kind]):
        hint = "gongqing refresh --provider openai, or another (docs/asking.md); or gongqing demo"
        raise NoVersion(f"there is nothing to review: {_WHERE_TO_BEGIN[kind]} was never made", hint=hint)
    splits = store.read("splits").collect()
    if kind == "coe":
        posts, lost = _sifted(home, store.read("unique_posts").collect(), "post")
        topics = store.read("topics").collect() if store.current("topics") else None
        chains = _without(store.read("coe_chains").collect(), "post_id", lost)
        items, more = coe_items(chains, posts, splits, topics)
        return items, [*lost, *more]
    dialogues, lost = _sifted(home, store.read("coherent_dialogues").collect(), "dialogue")
    turns = store.read("sampled_turns").collect().join(dialogues, on="dialogue_id", how="semi")
    candidates = _without(store.read("cer_candidates").collect(), "dialogue_id", lost)
    items, more = cer_items(candidates, turns, splits, candidate_hash)
    return items, [*lost, *more]


def candidate_hash(candidate: Mapping[str, Any], turn: Mapping[str, Any]) -> str:
    """The hash by which `cer_labels` knows what was labelled."""
    return of_label(candidate, turn).hash


def _without(rows: pl.DataFrame, key: str, lost: Iterable[Lost]) -> pl.DataFrame:
    return rows.filter(~pl.col(key).is_in([one.row_id for one in lost]))


def _sifted(home: Path, rows: pl.DataFrame, unit: str) -> tuple[pl.DataFrame, list[Lost]]:
    """Posts or dialogues that may be shown, and the ids of the others."""
    key = f"{unit}_id"
    kept, _ = SuppressionList(home).sift(rows, TABLE)
    listed = _taken_down(home)
    source_id = pl.col(key).str.splitn(":", 2).struct.field("field_1")
    kept = kept.filter(~(pl.col(key).is_in(list(listed)) | source_id.is_in(list(listed)).fill_null(value=False)))
    return kept, [Lost(unit, row_id, "suppressed") for row_id in rows.join(kept, on=key, how="anti")[key]]


def _taken_down(home: Path) -> Collection[str]:
    """What the takedown list names: `source:id`, or an id alone."""
    path = Home(home).takedown
    lines = path.read_text(encoding="utf-8-sig").splitlines() if path.exists() else []
    return {name for line in lines if (name := line.split("#", 1)[0].strip())}


def questions_file(home: Path, kind: Kind) -> Path:
    """The questions that ever went out, with the names of the models that answered."""
    return Home(home).review / f"questions-{kind}.jsonl"


def keep_questions(home: Path, kind: Kind, path: Path) -> list[str]:
    """Takes the questions of a file into the home, in the place of earlier ones of their ids; gives their ids.

    Raises UnreadableFile, with the line.
    """
    new = read_questions(path)
    before = questions_file(home, kind)
    known = {one.question_id: one for one in read_questions(before)} if before.exists() else {}
    known |= {one.question_id: one for one in new}
    write_whole(before, "".join(f"{one.model_dump_json()}\n" for one in known.values()).encode())
    return [one.question_id for one in new]


def read_questions(path: Path) -> list[ModelQuestion]:
    """The questions of a file of JSON lines. Raises UnreadableFile, with the line."""
    hint = '{"question_id": …, "question": …, "answers": [{"model": …, "text": …}, …]} a line (docs/reviewing.md)'
    questions: dict[str, ModelQuestion] = {}
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"the questions cannot be read: {error}", where=path, hint=hint) from error
    for number, line in ((number, line) for number, line in enumerate(lines, 1) if line.strip()):
        where = f"{path}, line {number}"
        try:
            one = ModelQuestion.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
            what = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
            raise UnreadableFile(f"no question: {what}", where=where, hint=hint) from error
        if one.question_id in questions:
            raise UnreadableFile("the question is there already", where=where, hint="give each question its own id")
        questions[one.question_id] = one
    return list(questions.values())


def _questions(kind: Kind, home: Path, store: Store) -> Items:
    path = questions_file(home, kind)
    if not path.exists():
        raise NoVersion("there is nothing to review: no questions were handed in", hint="--questions FILE")
    questions = read_questions(path)
    rows = pl.DataFrame(
        {"post_id": [one.question_id for one in questions], "text": [one.question for one in questions]}
    )
    kept, lost = _sifted(home, rows, "post")
    posts = store.read("unique_posts").collect().iter_rows(named=True) if store.current("unique_posts") else ()
    unfit = {row["post_id"]: reason for row in posts if (reason := exclusion(row)) is not None}
    left = set(kept["post_id"]) - set(unfit)
    lost += [Lost("post", name, *unfit[name]) for name in kept["post_id"] if name in unfit]
    return question_items(kind, (one for one in questions if one.question_id in left)), lost
