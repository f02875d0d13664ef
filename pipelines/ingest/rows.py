"""Rows of `imported_posts` and `imported_dialogues` from what readers yield, and the drops on the way."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import polars as pl

from pipelines.ingest.forms import Unfit, shown
from pipelines.ingest.records import (
    MAX_RECORD_CHARS,
    Answer,
    Broken,
    DataSet,
    Dialogue,
    Origin,
    Post,
    Record,
    Utterance,
)
from schemas.ids import answer_id, digest, pseudonym, source_row_id
from schemas.labels import STRATEGIES, normalise_strategies
from schemas.tables import TABLES

# Lone surrogates (half of an emoji) have no UTF-8; NUL ends a text for half of the tools that will meet it.
_BAD = re.compile("[\0\ud800-\udfff]")
_ID_LENGTH = 12
_BATCH = 5_000  # rows that wait as Python objects: many times the size of the frame they become


class Rows:
    """The rows of one import."""

    def __init__(self, data_set: DataSet, source: str, author_key: bytes | None) -> None:
        self.ids: set[str] = set()  # of all rows so far
        self.n_answers = 0  # with posts kept and dropped
        self.notes: Counter[str] = Counter()  # what was done to the rows, and how often
        self.unknown_strategies: Counter[str] = Counter()  # that the cross-walk lacks, and how often each occurs
        self._data_set = data_set
        self._source = source
        self._author_key = author_key
        self._table = TABLES[data_set.table]
        self._rows: list[dict[str, Any]] = []
        self._frames: list[pl.DataFrame] = []

    def add(self, record: Record) -> list[Broken]:
        """Adds a record; returns what was dropped of it: all of it, or some answers."""
        places = []
        if isinstance(record, Post):
            places = [*(one.where for one in record.answers), *(one.where for one in record.broken_answers)]
        self.n_answers += len(places)
        try:
            _check(record)
            return self._add_post(record) if isinstance(record, Post) else self._add_dialogue(record)
        except Unfit as unfit:
            lost = [Broken(place, "post_dropped", record.where, unit="answer") for place in places]
            return [Broken(record.where, unfit.reason, unfit.detail), *lost]

    def frame(self) -> pl.DataFrame:
        """All rows, checked against the table's schema."""
        self._pack()
        return self._table.validate(pl.concat(self._frames))

    def _pack(self) -> None:
        # Fields of a post that are no columns are left out, and columns that none has are null.
        self._frames.append(pl.DataFrame(self._rows, schema=self._table.polars_schema()))
        self._rows = []

    def _add_post(self, post: Post) -> list[Broken]:
        if not (post.title.strip() or post.description.strip()):
            raise Unfit("empty_post", "neither title nor description")
        common = self._common(post, f"{post.title}\x1f{post.description}")
        row_id = self._claim(common["source_id"])
        answers, dropped = self._answers(row_id, post)
        self._rows.append(
            {
                **post._asdict(),
                **common,
                "post_id": row_id,
                "author": self._pseudonym(post.author),
                "origin": self._data_set.origin.seeker,
                "layout": self._data_set.name,
                "answers": answers,
            }
        )
        return dropped

    def _add_dialogue(self, dialogue: Dialogue) -> list[Broken]:
        joined = join(dialogue.utterances, self._data_set.origin)
        common = self._common(dialogue, "\x1f".join(f"{turn['role']}\x1f{turn['text']}" for turn in joined.turns))
        row_id = self._claim(common["source_id"])
        kinds = {clip["kind"] for turn in joined.turns for clip in turn["media"]}
        attributes = (*dialogue.attributes, *joined.attributes)
        main = next((kind for kind in ("video", "audio", "image") if kind in kinds), None)
        self._rows.append(
            {
                "dialogue_id": row_id,
                **common,
                "topic": dialogue.topic,
                "situation": dialogue.situation,
                "emotion": dialogue.emotion,
                "turns": joined.turns,
                "n_rounds": n_rounds([turn["role"] for turn in joined.turns]),
                "modality": dialogue.modality or (f"text+{main}" if main else "text"),
                "attributes": [{"name": name, "value": value} for name, value in attributes],
            }
        )
        self.notes.update(joined.notes)
        self.unknown_strategies.update(joined.unknown_strategies)
        return []

    def _common(self, record: Record, content: str) -> dict[str, Any]:
        """The columns that posts and dialogues share; `content` names a record without an id."""
        return {
            "source": self._source,
            "source_id": record.source_id or digest(content, _ID_LENGTH),
            "lang": record.lang or self._data_set.lang,
            "lineage": list(self._data_set.lineage),
            "licence": self._data_set.licence,
            "consent": self._data_set.consent,
        }

    def _claim(self, source_id: str) -> str:
        """The id of a new row; raises Unfit for one that another row has."""
        row_id = source_row_id(self._source, source_id)
        if row_id in self.ids:
            raise Unfit("duplicate_id", f"{row_id} is there already")
        self.ids.add(row_id)
        if len(self._rows) >= _BATCH:
            self._pack()
        return row_id

    def _pseudonym(self, author: str | None) -> str | None:
        return None if author is None or self._author_key is None else pseudonym(self._source, author, self._author_key)

    def _answers(self, row_id: str, post: Post) -> tuple[list[dict[str, Any]], list[Broken]]:
        rows: dict[str, dict[str, Any]] = {}
        dropped = list(post.broken_answers)
        for answer in post.answers:
            name = f"{row_id}/{answer.answer_id}" if answer.answer_id else answer_id(row_id, answer.text)
            if not answer.text.strip():
                dropped.append(Broken(answer.where, "empty_answer", None, unit="answer"))
            elif name in rows:
                dropped.append(Broken(answer.where, "duplicate_answer", f"{name} is there already", unit="answer"))
            else:
                changed = answer._replace(answer_id=name, author=self._pseudonym(answer.author))
                row = changed._asdict() | {"spans": list(self._spans(answer))}
                del row["where"]
                rows[name] = row
        return list(rows.values()), dropped

    def _spans(self, answer: Answer) -> Iterator[dict[str, Any]]:
        for span in answer.spans:
            if not 0 <= span.start <= span.end <= len(answer.text):
                self.notes["spans_outside_text"] += 1
                continue
            label = STRATEGIES.find(span.source_strategy)
            if label is None:
                self.unknown_strategies[span.source_strategy] += 1
            yield span._asdict() | {"strategy": None if label is None else label.en}


def _check(record: Record) -> None:
    """Raises Unfit for a record that is too long, or holds what no text can."""
    chars = 0
    for text in _texts(record):
        chars += len(text)
        if chars > MAX_RECORD_CHARS:
            raise Unfit("too_long", f"more than {MAX_RECORD_CHARS:,} characters")
        if bad := _BAD.search(text):
            what = "NUL" if bad[0] == "\0" else "a lone surrogate"
            raise Unfit("bad_unicode", f"{what} at character {bad.start()} of a text of {len(text)}")


def _texts(record: tuple[Any, ...]) -> Iterator[str]:
    """Every text of a record and of what it holds."""
    for value in record:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from _texts(value)


ALIASES = {
    "seeker": "seeker speaker user usr human client patient help-seeker 来访者 求助者 用户",
    "supporter": (
        "supporter listener assistant sys gpt bot model therapist counselor counsellor 心理咨询师 咨询师 支持者"
    ),
}
_ROLES = {alias: role for role, aliases in ALIASES.items() for alias in aliases.split()}


class Joined(NamedTuple):
    """Turns as rows of `schemas.dialogues.TURN`, what joining them set aside, and the counts that an import reports."""

    turns: list[dict[str, Any]]
    attributes: list[tuple[str, str]]
    notes: Counter[str]
    unknown_strategies: Counter[str]


def role_of(name: str) -> str | None:
    """seeker, supporter, or None for a name that stands for neither."""
    return _ROLES.get(name.strip().casefold())


def n_rounds(roles: Sequence[str]) -> int:
    """Seeker turns that a supporter turn answers."""
    return sum(pair == ("seeker", "supporter") for pair in pairwise(roles))


def join(utterances: Sequence[Utterance], origin: Origin) -> Joined:
    """Turns that alternate: utterances of one speaker in a row are one turn, a line each.

    Empty utterances are left out and counted. A joined turn has the strategies of all its utterances, the emotion
    that most of them have (the first of several alike) and the latest feedback; where they differ, all of them
    stand in the attributes. A dialogue of one side has turns but no round: it is for the filters to judge.
    Raises Unfit for a role that stands for neither side, and where no utterance holds anything.
    """
    spoken = []
    for number, utterance in enumerate(utterances, start=1):
        if (role := role_of(utterance.role)) is None:
            raise Unfit("unknown_role", f"utterance {number}: {shown(utterance.role)}")
        spoken.append((role, utterance))
    # One with no more than white space, control and zero-width characters is empty.
    visible = [
        (role, one) for role, one in spoken if any(unicodedata.category(char)[0] not in "ZC" for char in one.text)
    ]
    groups = [(role, [one for _, one in group]) for role, group in groupby(visible, key=lambda pair: pair[0])]
    if not groups:
        raise Unfit("no_turns", "nobody says anything")
    unknown = Counter(name for _, one in visible for name in normalise_strategies([*one.strategies]).unknown)
    notes = Counter(
        empty_turns=len(spoken) - len(visible),
        joined_turns=len(visible) - len(groups),
        opened_by_supporter=int(groups[0][0] == "supporter"),
        one_sided=int(len(groups) == 1),
    )
    turns: list[dict[str, Any]] = []
    attributes: list[tuple[str, str]] = []
    for role, group in groups:
        strategies = list(dict.fromkeys(name for one in group for name in one.strategies))
        emotions = [one.emotion for one in group if one.emotion]
        feedback = [one.feedback for one in group if one.feedback is not None]
        for what, labels in (("emotions", emotions), ("feedback", feedback)):
            if len(set(labels)) > 1:
                attributes.append((f"turns.{len(turns)}.{what}", "|".join(map(str, labels))))
        turns.append(
            {
                "role": role,
                "text": "\n".join(one.text.strip() for one in group),
                "strategies": normalise_strategies(strategies).known,
                "source_strategies": strategies,
                "emotion": Counter(emotions).most_common(1)[0][0] if emotions else None,
                "feedback": feedback[-1] if feedback else None,
                "origin": origin.seeker if role == "seeker" else origin.supporter,
                "media": [clip._asdict() | {"available": False} for one in group for clip in one.media],
            }
        )
    if notes["empty_turns"]:
        attributes.append(("empty_turns", str(notes["empty_turns"])))
    return Joined(turns, attributes, notes, unknown)
