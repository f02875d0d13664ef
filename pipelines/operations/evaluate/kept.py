"""What is kept of an evaluation: its answers in `model_answers`, its figures in `evaluations`, a partition each."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.core.home import Home
from pipelines.evaluate.benchmarks import ROLES
from pipelines.store.store import Store, Version
from schemas.evaluations import Evaluations

ANSWERS, FIGURES = "model_answers", "evaluations"
OF_ANSWERS = ("automatic", "judge", "bias")  # suites of the answers that are kept


def keep(
    home: Path, name: str, answers: pl.DataFrame | None, rows: Sequence[Mapping[str, Any]], note: Mapping[str, Any]
) -> Version:
    """Writes the figures of some suites into an evaluation; those of its other suites stay, but for those of other
    answers. The answers are written first, for figures of answers that are not there would tell nothing.
    """
    with Home(home).lock("evaluating"):  # two commands of one name: each reads what the other has written
        store = Store(Home(home).data)
        of_answers = dict(note)
        if answers is not None:
            if name in store.partitions(ANSWERS):
                of_answers["answers_before"] = store.version(ANSWERS, partition=name).version
            of_answers["answers"] = store.write(ANSWERS, answers, partition=name, note=dict(note)).version
        return _write(store, name, rows, of_answers)


def _write(store: Store, name: str, rows: Sequence[Mapping[str, Any]], note: dict[str, Any]) -> Version:
    made = pl.DataFrame(list(rows), schema=Evaluations.polars_schema())
    suites = set(made["suite"])
    before, answers = note.pop("answers_before", None), note.get("answers")
    notes = {note_key(*key): note for key in sorted(set(made.select("suite", "mode").rows()))}
    if name in store.partitions(FIGURES):
        known = last_note(store, name)
        # A note of before has no version of its answers: they were those that lay there.
        stale = {key for key in OF_ANSWERS if answers and known.get(key, {}).get("answers", before) != answers}
        settings = made.filter(pl.col("suite").is_in(list(ROLES)))["mode"].to_list()  # of a benchmark others stay
        other = ~pl.col("suite").is_in(list(suites)) | (
            pl.col("suite").is_in(list(ROLES)) & ~pl.col("mode").is_in(settings)
        )
        other &= ~pl.col("suite").is_in(list(stale))
        made = pl.concat([store.read(FIGURES, partition=name).filter(other).collect(), made])
        notes = {key: note for key, note in known.items() if key not in {*stale, *suites}} | notes
    frame = Evaluations.validate(made.sort(Evaluations.primary_key()))
    return store.write(FIGURES, frame, partition=name, note=notes)


def note_key(suite: str, mode: str) -> str:
    """Under what name a note stands: of SAGE each setting has its own."""
    return f"{suite}, {mode}" if suite == "sage" else suite


def last_note(store: Store, name: str) -> dict[str, Any]:
    """How the figures of an evaluation were made, by `note_key`."""
    note: dict[str, Any] = store.version(FIGURES, partition=name).manifest.runs[-1].note
    return note
