"""Candidates that people labelled, and the variants that were rewritten from them (C)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from pydantic import ValidationError

from pipelines.rewrite.material import material
from pipelines.rewrite.scripts import label_id
from schemas.dialogues import CoherentDialogues
from schemas.dropped import Lost
from schemas.ids import candidate_id
from schemas.labels import Preference
from schemas.reasoning import Cer

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A candidate, or a variant of one, with what people said of it. `providers` wrote it."""

    row_id: str
    variant: str
    group_id: str
    history: Sequence[Mapping[str, str]]
    reference: str
    candidate: Cer
    right: tuple[bool, bool, bool]
    preference: Preference
    providers: tuple[str, ...]

    def columns(self) -> dict[str, Any]:
        """What every sample made from it says of where it comes from: a training round, as all that have labels."""
        return {
            "made_from": self.row_id,
            "group_id": self.group_id,
            "split": "train",
            "variant": self.variant,
            "providers": sorted(set(self.providers)),
        }


def labelled(
    turns: pl.DataFrame, splits: pl.DataFrame, candidates: pl.DataFrame, labels: pl.DataFrame, rewritten: pl.DataFrame
) -> tuple[list[Labelled], list[Lost]]:
    """Every label with what it is about, and every variant of one.

    Args:
        turns: Rows of `sampled_turns`: the history and the reference of a round.
        splits: The split of every group.
        candidates: Rows of `cer_candidates`.
        labels: Rows of `cer_labels`.
        rewritten: Rows of `rewritten_rounds`.

    Returns:
        The labelled, and the losses in the unit `candidate`: those of `rewrite.material` (no_candidate,
        candidate_changed, not_train, under_18, risk), of a variant source_lost, where its source is among them, and
        unwritable, where its texts hold a tag of CER's own format.

    Raises RequestError for a group without a split.
    """
    found = material(CoherentDialogues.create_empty(), splits, turns, candidates, labels)
    standing = {script.row_id for script in found.scripts}
    lost = [Lost("candidate", one.row_id, one.reason, one.detail) for one in found.lost]
    turn_of = {(row["dialogue_id"], row["round"]): row for row in turns.iter_rows(named=True)}
    candidate_of = {label_id(row): row for row in candidates.iter_rows(named=True)}
    kept: list[Labelled] = []
    for label in labels.iter_rows(named=True):
        if (row_id := label_id(label)) in standing:
            turn, candidate = turn_of[label["dialogue_id"], label["round"]], candidate_of[row_id]
            made_by = (candidate["provider"],)
            kept.append(_labelled(row_id, "none", candidate, turn["history"], turn["reference"], label, made_by))
    for row in rewritten.iter_rows(named=True):
        row_id, source = label_id(row), candidate_id(row["source_dialogue_id"], row["round"], row["candidate"])
        if source not in standing:
            lost.append(Lost("candidate", row_id, "source_lost", source))
            continue
        made_by = (candidate_of[source]["provider"], *([] if row["provider"] == "none" else [row["provider"]]))
        try:
            kept.append(_labelled(row_id, row["variant"], row, row["history"], row["reference"], row, made_by))
        except ValidationError as error:
            lost.append(Lost("candidate", row_id, "unwritable", f"{error.error_count()} texts"))
    return kept, lost


def _labelled(
    row_id: str,
    variant: str,
    written: Row,
    history: Sequence[Mapping[str, str]],
    reference: str,
    label: Row,
    providers: tuple[str, ...],
) -> Labelled:
    return Labelled(
        row_id=row_id,
        variant=variant,
        group_id=written["group_id"],
        history=history,
        reference=reference,
        candidate=Cer(**{name: written[name] for name in Cer.model_fields}),
        right=(label["step1"], label["step2"], label["step3"]),
        preference=label["preference"],
        providers=providers,
    )
