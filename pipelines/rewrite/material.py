"""What is rewritten: the dialogues and labelled rounds that may teach; and what is not, with the reason."""

from dataclasses import dataclass

import polars as pl

from pipelines.rewrite.scripts import Script, Scripts, label_id, of_dialogue, of_label
from pipelines.split.eligible import Eligibility
from schemas.dropped import Lost
from schemas.labels import TRAITS


@dataclass(frozen=True, slots=True)
class Material:
    """Scripts to rewrite, and the dialogues and labels that are left out."""

    scripts: list[Script]
    lost: list[Lost]

    def by_id(self) -> Scripts:
        """The scripts by unit and id."""
        return {(script.unit, script.row_id): script for script in self.scripts}


def material(
    dialogues: pl.DataFrame, splits: pl.DataFrame, turns: pl.DataFrame, candidates: pl.DataFrame, labels: pl.DataFrame
) -> Material:
    """The material of `rewrite_drafts`.

    Args:
        dialogues: Rows of `coherent_dialogues`.
        splits: The split of every group.
        turns: Rows of `sampled_turns`: what was said before a labelled round, and its reference.
        candidates: Rows of `cer_candidates`: what was labelled.
        labels: Rows of `cer_labels`.

    Returns:
        A script for each dialogue and each label, or its loss: not_train, under_18, risk; and for a label no_candidate,
        where what was labelled is not there any more, or candidate_changed, where something else stands in its place.

    Raises RequestError for a group without a split.
    """
    eligibility = Eligibility(splits)
    scripts: list[Script] = []
    lost: list[Lost] = []
    for row in dialogues.iter_rows(named=True):
        if (exclusion := eligibility.exclusion_reason(row["dialogue_id"], row)) is not None:
            lost.append(Lost("dialogue", row["dialogue_id"], *exclusion))
        else:
            scripts.append(of_dialogue(row))
    said = {(row["dialogue_id"], row["round"]): row for row in turns.iter_rows(named=True)}
    made = {label_id(row): row for row in candidates.iter_rows(named=True)}
    for label in labels.iter_rows(named=True):
        row_id = label_id(label)
        turn, candidate = said.get((label["dialogue_id"], label["round"])), made.get(row_id)
        if turn is None or candidate is None:
            lost.append(Lost("label", row_id, "no_candidate", "the candidate that was labelled is there no more"))
        elif (exclusion := eligibility.exclusion_reason(row_id, turn)) is not None:
            lost.append(Lost("label", row_id, *exclusion))
        elif (script := of_label(candidate, turn)).hash != label["labelled"]:
            lost.append(Lost("label", row_id, "candidate_changed", "since it was labelled"))
        else:
            scripts.append(script)
    return Material(scripts, lost)


def with_scores(personas: pl.DataFrame, profiles: pl.DataFrame) -> pl.DataFrame:
    """Rows of `personas` with the scores of their profiles beside them."""
    scores = profiles.select(pl.format("{}/{}", "dialogue_id", "role").alias("persona_id"), *TRAITS)
    return personas.join(scores, on="persona_id", how="left", validate="1:1")
