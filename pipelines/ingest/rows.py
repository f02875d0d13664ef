"""Rows of `imported_posts` and `imported_dialogues` from what readers yield, and the drops on the way."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar

import polars as pl

from pipelines.ingest.data_set import DataSet
from pipelines.ingest.fields import Unfit
from pipelines.ingest.records import MAX_RECORD_CHARS, Answer, Broken, Dialogue, Post
from pipelines.ingest.turns import join, n_rounds
from schemas.dialogues import ImportedDialogues
from schemas.ids import answer_id, digest, pseudonym, source_row_id
from schemas.labels import STRATEGIES
from schemas.posts import ImportedPosts
from schemas.table import Table

# Lone surrogates (half of an emoji) have no UTF-8; NUL ends a text for half of the tools that will meet it.
_BAD = re.compile("[\0\ud800-\udfff]")
_ID_LENGTH = 12


_BATCH = 5_000  # rows that wait as Python objects: many times the size of the frame they become


class Rows:
    """What every table has: its rows, the ids seen, and the counts that the import reports."""

    table: ClassVar[type[Table]]

    def __init__(self, data_set: DataSet, source: str, author_key: bytes | None) -> None:
        self.data_set = data_set
        self.source = source
        self.author_key = author_key
        self._rows: list[dict[str, Any]] = []
        self._frames: list[pl.DataFrame] = []
        self.ids: set[str] = set()
        self.notes: Counter[str] = Counter()
        self.unknown_strategies: Counter[str] = Counter()

    def frame(self) -> pl.DataFrame:
        """All rows, checked against the table's schema."""
        self._pack()
        return self.table.validate(pl.concat(self._frames))

    def _pack(self) -> None:
        self._frames.append(pl.DataFrame(self._rows, schema=self.table.polars_schema()))
        self._rows = []

    def _claim(self, row_id: str) -> None:
        if row_id in self.ids:
            raise Unfit("duplicate_id", f"{row_id} is there already")
        self.ids.add(row_id)
        if len(self._rows) >= _BATCH:
            self._pack()

    def _stated(self, source_id: str, lang: str | None) -> dict[str, Any]:
        return {
            "source": self.source,
            "source_id": source_id,
            "lang": lang or self.data_set.lang,
            "lineage": list(self.data_set.lineage),
            "licence": self.data_set.licence,
            "consent": self.data_set.consent,
        }

    def _pseudonym(self, author: str | None) -> str | None:
        if author is None or self.author_key is None:
            return None
        return pseudonym(self.source, author, self.author_key)


def _check(texts: Iterable[str]) -> None:
    """Raises Unfit for a record that is too long, or holds what no text can."""
    chars = 0
    for text in texts:
        chars += len(text)
        if chars > MAX_RECORD_CHARS:
            raise Unfit("too_long", f"more than {MAX_RECORD_CHARS:,} characters")
        bad = _BAD.search(text)
        if bad is not None:
            what = "NUL" if bad[0] == "\0" else "a lone surrogate"
            raise Unfit("bad_unicode", f"{what} at character {bad.start()} of a text of {len(text)}")


class PostRows(Rows):
    """Rows of `imported_posts`; `n_answers` counts every answer that came."""

    table = ImportedPosts

    def __init__(self, data_set: DataSet, source: str, author_key: bytes | None) -> None:
        super().__init__(data_set, source, author_key)
        self.n_answers = 0

    def add(self, post: Post) -> list[Broken]:
        """Adds the post; returns what of it was dropped: all of it, or some answers."""
        self.n_answers += len(post.answers) + len(post.broken_answers)
        try:
            row_id = self._add(post)
        except Unfit as unfit:
            places = [*(answer.where for answer in post.answers), *(answer.where for answer in post.broken_answers)]
            lost = [Broken(place, "post_dropped", post.where, unit="answer") for place in places]
            return [Broken(post.where, unfit.reason, unfit.detail), *lost]
        return [*post.broken_answers, *self._answers(row_id, post.answers)]

    def _add(self, post: Post) -> str:
        _check(post.texts())
        if not (post.title.strip() or post.description.strip()):
            raise Unfit("empty_post", "neither title nor description")
        source_id = post.source_id or digest(f"{post.title}\x1f{post.description}", _ID_LENGTH)
        row_id = source_row_id(self.source, source_id)
        self._claim(row_id)
        self._rows.append(
            {
                "post_id": row_id,
                **self._stated(source_id, post.lang),
                "url": post.url,
                "title": post.title,
                "description": post.description,
                "topic": post.topic,
                "subtopics": list(post.subtopics),
                "author": self._pseudonym(post.author),
                "posted_at": post.posted_at,
                "posted_at_precision": post.posted_at_precision,
                "fetched_at": None,
                "origin": self.data_set.origin.seeker,
                "layout": self.data_set.name,
                "answers": [],
            }
        )
        return row_id

    def _answers(self, row_id: str, answers: Iterable[Answer]) -> list[Broken]:
        dropped: list[Broken] = []
        rows: dict[str, dict[str, Any]] = {}
        for answer in answers:
            name = f"{row_id}/{answer.answer_id}" if answer.answer_id else answer_id(row_id, answer.text)
            if not answer.text.strip():
                dropped.append(Broken(answer.where, "empty_answer", None, unit="answer"))
            elif name in rows:
                dropped.append(Broken(answer.where, "duplicate_answer", f"{name} is there already", unit="answer"))
            else:
                rows[name] = self._answer(name, answer)
        self._rows[-1]["answers"] = list(rows.values())
        return dropped

    def _answer(self, name: str, answer: Answer) -> dict[str, Any]:
        return {
            "answer_id": name,
            "author": self._pseudonym(answer.author),
            "author_role": answer.author_role,
            "text": answer.text,
            "posted_at": answer.posted_at,
            "likes": answer.likes,
            "recommended": answer.recommended,
            "spans": list(self._spans(answer)),
        }

    def _spans(self, answer: Answer) -> Iterable[dict[str, Any]]:
        for span in answer.spans:
            if not 0 <= span.start <= span.end <= len(answer.text):
                self.notes["spans_outside_text"] += 1
                continue
            label = STRATEGIES.find(span.source_strategy)
            if label is None:
                self.unknown_strategies[span.source_strategy] += 1
            yield {
                "strategy": None if label is None else label.en,
                "source_strategy": span.source_strategy,
                "start": span.start,
                "end": span.end,
            }


class DialogueRows(Rows):
    """Rows of `imported_dialogues`."""

    table = ImportedDialogues

    def add(self, dialogue: Dialogue) -> list[Broken]:
        """Adds the dialogue; returns it as Broken where it had to be dropped."""
        try:
            self._add(dialogue)
        except Unfit as unfit:
            return [Broken(dialogue.where, unfit.reason, unfit.detail)]
        return []

    def _add(self, dialogue: Dialogue) -> None:
        _check(dialogue.texts())
        joined = join(dialogue.utterances, self.data_set.origin)
        said = "\x1f".join(f"{turn['role']}\x1f{turn['text']}" for turn in joined.turns)
        source_id = dialogue.source_id or digest(said, _ID_LENGTH)
        row_id = source_row_id(self.source, source_id)
        self._claim(row_id)
        kinds = {clip["kind"] for turn in joined.turns for clip in turn["media"]}
        shown = next((kind for kind in ("video", "audio", "image") if kind in kinds), None)
        self._rows.append(
            {
                "dialogue_id": row_id,
                **self._stated(source_id, dialogue.lang),
                "topic": dialogue.topic,
                "situation": dialogue.situation,
                "emotion": dialogue.emotion,
                "turns": joined.turns,
                "n_rounds": n_rounds([turn["role"] for turn in joined.turns]),
                "modality": dialogue.modality or (f"text+{shown}" if shown else "text"),
                "attributes": [
                    {"name": name, "value": value} for name, value in (*dialogue.attributes, *joined.attributes)
                ],
            }
        )
        self.notes.update(joined.notes)
        self.unknown_strategies.update(joined.unknown_strategies)
