"""Labels of candidates that we invented for the samples, in the place of people's: so that the demo's tables have rows.

They lie in `samples/written/cer_labels.jsonl`, a line each: which candidate (`dialogue_id`, `round`, and the `alias` of
the model in whose place it was written), the verdicts, and `why`, for readers of the file. Their raters are called
`invented-1` and so on.
"""

from pathlib import Path
from typing import Annotated, Literal

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines.errors import UnreadableFile
from pipelines.llm.providers.written import FOLDER, WRITTEN
from pipelines.rewrite.scripts import of_label
from pipelines.settings import Settings
from pipelines.store.store import Store, Version
from schemas.annotations import CerLabels
from schemas.labels import Preference

LABELS = FOLDER / "cer_labels.jsonl"
RATER = "invented-"

_KEY = ("dialogue_id", "round", "candidate")


class InventedLabel(BaseModel):
    """A line of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    dialogue_id: str
    round: int = Field(ge=1)
    alias: str
    step1: bool
    step2: bool
    step3: bool
    preference: Preference
    annotators: list[Annotated[str, Field(pattern=f"^{RATER}[0-9]+$")]] = Field(min_length=2)
    consensus: Literal["agreed", "adjudicated"]
    why: str


def write_sample_labels(store: Store, settings: Settings, path: Path = LABELS) -> Version:
    """Put the invented labels into `cer_labels`, replacing earlier invented ones; people's labels stay.

    Raises UnreadableFile, and NoVersion before there are candidates.
    """
    candidates, turns = (store.read(name).collect() for name in ("cer_candidates", "sampled_turns"))
    invented = sample_labels(candidates, turns, settings.annotate.cer, read_labels(path))
    if not store.current("cer_labels"):
        return store.write("cer_labels", invented)
    is_invented = pl.col("annotators").list.eval(pl.element().str.starts_with(RATER)).list.all()
    by_people = store.read("cer_labels").collect().filter(~is_invented)
    return store.write("cer_labels", pl.concat([by_people, invented.join(by_people, on=_KEY, how="anti")]))


def sample_labels(
    candidates: pl.DataFrame, turns: pl.DataFrame, aliases: tuple[str, ...], labels: list[InventedLabel]
) -> pl.DataFrame:
    """Rows of `cer_labels`, each with the hash of its candidate as it stands.

    A label is left out where there is no candidate, or one by another provider. `aliases` are the models that were
    asked, in the order of the candidates.
    """
    written = candidates.filter(provider=WRITTEN)
    candidate_of = {tuple(row[name] for name in _KEY): row for row in written.iter_rows(named=True)}
    turn_of = {(row["dialogue_id"], row["round"]): row for row in turns.iter_rows(named=True)}
    rows = []
    for label in labels:
        number = aliases.index(label.alias) + 1 if label.alias in aliases else None
        candidate = candidate_of.get((label.dialogue_id, label.round, number))
        if candidate is not None:
            labelled = of_label(candidate, turn_of[label.dialogue_id, label.round]).hash
            rows.append({**label.model_dump(exclude={"alias", "why"}), "candidate": number, "labelled": labelled})
    return CerLabels.validate(pl.DataFrame(rows, schema=CerLabels.polars_schema()))


def read_labels(path: Path = LABELS) -> list[InventedLabel]:
    """The labels of a file. Raises UnreadableFile, with the line, for a wrong label or a second of a candidate."""
    labels: dict[tuple[str, int, str], InventedLabel] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            label = InventedLabel.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            problem = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
            raise _unreadable(problem, path, number) from error
        key = label.dialogue_id, label.round, label.alias
        if key in labels:
            raise _unreadable("the candidate has a label already", path, number)
        labels[key] = label
    return list(labels.values())


def _unreadable(problem: str, path: Path, number: int) -> UnreadableFile:
    return UnreadableFile(
        f"no label: {problem}",
        where=f"{path}, line {number}",
        hint=f"each line has {', '.join(InventedLabel.model_fields)}",
    )
