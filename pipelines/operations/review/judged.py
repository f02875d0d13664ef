"""What there is to judge in a home today: its items, without what was erased or is to be taken down."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from pydantic import BaseModel, ValidationError

from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.errors import NoVersion, UnknownName, UnreadableFile
from pipelines.review.answers import ItemAnswers, Known, problem_of
from pipelines.review.contract import CONTENTS, Kind
from pipelines.review.items import Item, Items, ModelAnswer, ModelQuestion, cer_items, coe_items, question_items
from pipelines.rewrite.scripts import of_label
from pipelines.split.eligible import exclusion
from pipelines.store.store import Store
from pipelines.store.suppression import SuppressionList, is_taken_down, taken_down
from pipelines.text.minors import under_18
from pipelines.text.pii import redact
from pipelines.text.risk import risk
from schemas.dropped import Lost

TABLE = "review_tasks"
_QUESTION = '{"question_id": …, "question": …, "answers": [{"model": …, "text": …}, …]}'
_KNOWN = '{"item_id": …, "answers": {…}, "calibration": true or false}'
_Record = TypeVar("_Record", bound=BaseModel)
_Answers = TypeVar("_Answers", bound=ItemAnswers)
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
    kept = kept.filter(~is_taken_down(key, taken_down(home)))
    return kept, [Lost(unit, row_id, "suppressed") for row_id in rows.join(kept, on=key, how="anti")[key]]


def questions_file(home: Path, kind: Kind) -> Path:
    """The questions that went out, with the names of the models that answered."""
    return Home(home).review / f"questions-{kind}.jsonl"


def known_file(home: Path, kind: Kind) -> Path:
    """The items of which the answer is known."""
    return Home(home).review / f"known-{kind}.jsonl"


def keep_questions(home: Path, kind: Kind, path: Path, store: Store) -> tuple[list[str], list[Lost]]:
    """Takes the questions of a file into the home, in the place of earlier ones of their ids, with placeholders for
    personal data. What may not be shown is not kept.

    Gives the ids of those that were kept, and why others were not. Raises UnreadableFile, with the line.
    """
    read = read_records(path, ModelQuestion, _QUESTION, "question_id")
    if kind == "compare" and (more := next((one for one in read if len(one.answers) > 2), None)):
        raise UnreadableFile(
            f"{more.question_id} has {len(more.answers)} answers, and two are compared",
            where=path,
            hint="gongqing review export rank; or two answers a question",
        )
    new, lost = _fit(_redacted(read), home, store)
    before = questions_file(home, kind)
    known = {one.question_id: one for one in _kept_questions(before)}
    known |= {one.question_id: one for one in new}
    write_whole(before, "".join(f"{one.model_dump_json()}\n" for one in known.values()).encode())
    return [one.question_id for one in new], lost


def keep_known(home: Path, kind: Kind, path: Path, items: Mapping[str, Item]) -> None:
    """Takes the known answers of a file into the home, in the place of earlier ones of their items.

    Raises UnreadableFile, with the item, for answers that are none of an item.
    """
    known = {one.item_id: one for one in known_answers(home, kind)}
    known |= {one.item_id: one for one in read_answers(path, Known, kind, items)}
    write_whole(known_file(home, kind), "".join(f"{one.model_dump_json()}\n" for one in known.values()).encode())


def known_answers(home: Path, kind: Kind) -> list[Known]:
    """The known answers of a home. Raises UnreadableFile."""
    path = known_file(home, kind)
    return read_records(path, Known, _KNOWN, "item_id") if path.exists() else []


def read_answers(path: Path, of: type[_Answers], kind: Kind, items: Mapping[str, Item], *more: str) -> list[_Answers]:
    """Answers about items, of a file of JSON lines: one an item, or an item and what the fields `more` hold.

    Raises UnreadableFile for some that are none of an item.
    """
    form = _KNOWN if of is Known else _KNOWN.replace("calibration", "model")
    read = read_records(path, of, form, "item_id", *more)
    for one in read:
        if (problem := problem_of(kind, one, items.get(one.item_id))) is not None:
            raise UnreadableFile(f"{one.item_id}: {problem}", where=path, hint="mend or leave out its line")
    return read


def read_records(path: Path, of: type[_Record], form: str, *key: str) -> list[_Record]:
    """The records of a file of JSON lines, of which `form` shows one, no two with the same fields of `key`.

    Raises UnreadableFile, with the line.
    """
    hint = f"{form} a line (docs/reviewing.md)"
    records: dict[tuple[str, ...], _Record] = {}
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"the file cannot be read: {error}", where=path, hint=hint) from error
    for number, line in ((number, line) for number, line in enumerate(lines, 1) if line.strip()):
        where = f"{path}, line {number}"
        try:
            one = of.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
            what = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
            raise UnreadableFile(f"a line of another form: {what}", where=where, hint=hint) from error
        if (name := tuple(getattr(one, field) for field in key)) in records:
            raise UnreadableFile(f"the same {' and '.join(key)} twice", where=where, hint="give each its own")
        records[name] = one
    return list(records.values())


def _kept_questions(path: Path) -> list[ModelQuestion]:
    return read_records(path, ModelQuestion, _QUESTION, "question_id") if path.exists() else []


def _questions(kind: Kind, home: Path, store: Store) -> Items:
    path = questions_file(home, kind)
    if not path.exists():
        raise NoVersion("there is nothing to review: no questions were handed in", hint="--questions FILE")
    questions, lost = _fit(_kept_questions(path), home, store)
    return question_items(kind, questions), lost


def _redacted(questions: list[ModelQuestion]) -> list[ModelQuestion]:
    """The questions with placeholders, the same in a question and its answers."""
    texts = [[one.question, *(answer.text for answer in one.answers)] for one in questions]
    numbers = [number for number, some in enumerate(texts) for _ in some]
    left = iter(redact([text for some in texts for text in some], pl.Series(numbers, dtype=pl.UInt32)).texts)
    return [
        ModelQuestion(
            question_id=one.question_id,
            question=next(left),
            answers=[ModelAnswer(model=answer.model, text=next(left)) for answer in one.answers],
        )
        for one in questions
    ]


def _fit(questions: list[ModelQuestion], home: Path, store: Store) -> tuple[list[ModelQuestion], list[Lost]]:
    """The questions that may be shown, and why others may not: by their text, by that of an answer, and where a post of
    ours has their id or their text by what is known of it.
    """
    texts = pl.DataFrame(
        [
            (one.question_id, text)
            for one in questions
            for text in (one.question, *(answer.text for answer in one.answers))
        ],
        schema={"post_id": pl.String, "text": pl.String},
        orient="row",
    )
    _, suppressed = _sifted(home, texts, "post")
    gone = {one.row_id for one in suppressed}
    posts = store.read("unique_posts").collect() if store.current("unique_posts") else None
    reasons: dict[str, tuple[str, str | None]] = {}
    for row in posts.iter_rows(named=True) if posts is not None else ():
        if (reason := exclusion(row)) is not None:
            reasons[row["post_id"]] = reasons[row["text"]] = reason
    own = pl.DataFrame({"text": [one.question for one in questions]}, schema={"text": pl.String})
    judged = own.select(under_18=under_18(pl.col("text")), risk=risk(pl.col("text"))).to_dicts()
    kept, lost = [], []
    for one, row in zip(questions, judged, strict=True):
        if one.question_id in gone:
            lost.append(Lost("post", one.question_id, "suppressed"))
        elif reason := reasons.get(one.question_id) or reasons.get(one.question) or exclusion(row):
            lost.append(Lost("post", one.question_id, *reason))
        else:
            kept.append(one)
    return kept, lost
