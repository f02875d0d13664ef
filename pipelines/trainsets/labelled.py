"""Candidates that people labelled, of every split, and the training rounds that were rewritten from them (C)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from pydantic import ValidationError

from pipelines.rewrite.scripts import label_id, scripts
from pipelines.split.eligible import Eligibility
from schemas.dialogues import CoherentDialogues
from schemas.dropped import Lost
from schemas.ids import candidate_id
from schemas.labels import Preference
from schemas.reasoning import Cer

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A candidate, or a rewritten one, with its labels. `providers` wrote it."""

    row_id: str
    variant: str
    group_id: str
    split: str
    history: Sequence[Mapping[str, str]]
    reference: str
    candidate: Cer
    right: tuple[bool, bool, bool]
    preference: Preference
    providers: tuple[str, ...]

    def columns(self) -> dict[str, Any]:
        """The columns of every sample made from it."""
        return {
            "made_from": self.row_id,
            "group_id": self.group_id,
            "split": self.split,
            "variant": self.variant,
            "providers": sorted(set(self.providers)),
        }


def labelled(
    turns: pl.DataFrame, splits: pl.DataFrame, candidates: pl.DataFrame, labels: pl.DataFrame, rewritten: pl.DataFrame
) -> tuple[list[Labelled], list[Lost]]:
    """Every label with what it is about and the split of its round, and every rewritten round.

    Takes rows of `sampled_turns`, `splits`, `cer_candidates`, `cer_labels` and `rewritten_rounds`. The split is that of
    the group in `splits` today: neither candidates nor labels have a column for it.

    Returns:
        The labelled, and the losses in the unit `candidate`: those of `rewrite.scripts` (no_candidate,
        candidate_changed, under_18, risk), of a rewritten one source_lost, where its source is among them, not_train,
        where its source is held out, and unwritable, where its texts hold a tag of CER's own format.

    Raises RequestError for a group without a split.
    """
    eligibility = Eligibility(splits)
    sources, unfit = scripts(CoherentDialogues.create_empty(), splits, turns, candidates, labels, held_out=True)
    lost = [Lost("candidate", one.row_id, one.reason, one.detail) for one in unfit]
    turn_of = {(row["dialogue_id"], row["round"]): row for row in turns.iter_rows(named=True)}
    candidate_of = {label_id(row): row for row in candidates.iter_rows(named=True)}
    kept: list[Labelled] = []
    for label in labels.iter_rows(named=True):
        if ("label", row_id := label_id(label)) in sources:
            turn, candidate = turn_of[label["dialogue_id"], label["round"]], candidate_of[row_id]
            texts = candidate | {name: turn[name] for name in ("history", "reference")}
            split = eligibility.split(row_id, turn)
            kept.append(_labelled(row_id, "none", split, texts, label, (candidate["provider"],)))
    split_of = {one.row_id: one.split for one in kept}
    for row in rewritten.iter_rows(named=True):
        row_id, source = label_id(row), candidate_id(row["source_dialogue_id"], row["round"], row["candidate"])
        if split_of.get(source) != "train":
            lost.append(Lost("candidate", row_id, "not_train" if source in split_of else "source_lost", source))
            continue
        providers = (candidate_of[source]["provider"], *([] if row["provider"] == "none" else [row["provider"]]))
        try:
            kept.append(_labelled(row_id, row["variant"], "train", row, row, providers))
        except ValidationError as error:
            lost.append(Lost("candidate", row_id, "unwritable", f"{error.error_count()} texts"))
    return kept, lost


def _labelled(row_id: str, variant: str, split: str, texts: Row, label: Row, providers: tuple[str, ...]) -> Labelled:
    return Labelled(
        row_id=row_id,
        variant=variant,
        group_id=texts["group_id"],
        split=split,
        history=texts["history"],
        reference=texts["reference"],
        candidate=Cer(**{name: texts[name] for name in Cer.model_fields}),
        right=(label["step1"], label["step2"], label["step3"]),
        preference=label["preference"],
        providers=providers,
    )
