"""What is kept of an evaluation: its answers in `model_answers`, its figures in `evaluations`, a partition each."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.core.home import Home
from pipelines.evaluate.benchmarks import ROLES
from pipelines.store.store import Store, Version
from schemas.evaluations import Evaluations, ModelAnswers

ANSWERS, FIGURES = "model_answers", "evaluations"
OF_ANSWERS = ("automatic", "judge", "bias")  # suites of the answers that are kept


def keep(
    home: Path, name: str, answers: pl.DataFrame | None, rows: Sequence[Mapping[str, Any]], note: Mapping[str, Any]
) -> Version:
    """Writes the figures of some suites into an evaluation; those of its other suites stay, but for those of answers
    that are replaced. The answers are written first, for figures of answers that are not there would tell nothing.
    """
    store = Store(Home(home).data)
    stale: tuple[str, ...] = ()
    if answers is not None:
        before = store.read(ANSWERS, partition=name).collect() if name in store.partitions(ANSWERS) else answers
        key = ModelAnswers.primary_key()
        stale = () if before.sort(key).equals(answers.select(before.columns).sort(key)) else OF_ANSWERS
        store.write(ANSWERS, answers, partition=name, note=dict(note))
    made = pl.DataFrame(list(rows), schema=Evaluations.polars_schema())
    suites = set(made["suite"])
    notes = {note_key(*key): dict(note) for key in sorted(set(made.select("suite", "mode").rows()))}
    if name in store.partitions(FIGURES):
        settings = made.filter(pl.col("suite").is_in(list(ROLES)))["mode"].to_list()  # of a benchmark others stay
        other = ~pl.col("suite").is_in(list(suites)) | (
            pl.col("suite").is_in(list(ROLES)) & ~pl.col("mode").is_in(settings)
        )
        other &= ~pl.col("suite").is_in(list(stale))
        made = pl.concat([store.read(FIGURES, partition=name).filter(other).collect(), made])
        notes = {key: note for key, note in last_note(store, name).items() if key not in {*stale, *suites}} | notes
    frame = Evaluations.validate(made.sort(Evaluations.primary_key()))
    return store.write(FIGURES, frame, partition=name, note=notes)


def note_key(suite: str, mode: str) -> str:
    """Under what name a note stands: of SAGE each setting has its own."""
    return f"{suite}, {mode}" if suite == "sage" else suite


def last_note(store: Store, name: str) -> dict[str, Any]:
    """How the figures of an evaluation were made, by `note_key`."""
    note: dict[str, Any] = store.version(FIGURES, partition=name).manifest.runs[-1].note
    return note
