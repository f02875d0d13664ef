"""What is rewritten at one go: a dialogue, or a labelled round with its two replies and the steps behind one of them.

A script is flat, line by line, so that writer, filter and judge need not know which of the two they have before them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from pipelines.llm.language import Lang
from pipelines.split.eligible import Eligibility
from schemas.dropped import Lost
from schemas.ids import candidate_id, digest, round_id

Unit = Literal["dialogue", "label"]
Speaker = Literal["seeker", "supporter", "reference", "response", "analysis"]

# The free texts of a candidate's three steps, in their order, and what the steps say in closed sets: the verdicts of a
# label are about both, and the former alone are rewritten.
STEPS = ("history_reasoning", "emotion_reasoning", "strategy_reasoning")
CLOSED = ("stage", "sentiment", "emotion", "intensity", "strategy")


@dataclass(frozen=True, slots=True)
class Line:
    """One line. `strategies` are labels of schemas.labels; only turns of the supporter and the two replies have any."""

    who: Speaker
    text: str
    strategies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """The lines of a dialogue, or of a label (`dialogue_id#round/candidate`) with what its steps say in closed sets."""

    unit: Unit
    row_id: str
    dialogue_id: str
    lang: Lang
    group_id: str
    lines: tuple[Line, ...]
    closed: tuple[str | int, ...] = ()

    @property
    def texts(self) -> list[str]:
        """The texts of its lines."""
        return [line.text for line in self.lines]

    @property
    def hash(self) -> str:
        """16 hex digits that tell it from any other of its id: what people labelled, and what a draft was made from."""
        lines = [[line.who, line.text, *line.strategies] for line in self.lines]
        return digest(json.dumps([self.lang, self.group_id, lines, self.closed], ensure_ascii=False))


Scripts = Mapping[tuple[str, str], Script]  # by unit and id


def is_current(draft: Mapping[str, Any], scripts: Scripts) -> bool:
    """Whether the source of a draft, a row of `rewrite_drafts`, is unchanged."""
    script = scripts.get((draft["unit"], draft["row_id"]))
    return script is not None and script.hash == draft["source"]


def hash_of(lines: Sequence[Mapping[str, str]]) -> str:
    """16 hex digits that tell a draft's lines (`who`, `text`) from any others."""
    return digest("\x1e".join(f"{line['who']}\x1f{line['text']}" for line in lines))


def of_dialogue(row: Mapping[str, Any]) -> Script:
    """The script of a row of `coherent_dialogues`: its turns.

    Labels of a seeker's turn, which a source may have by mistake, are left out: nobody helps there.
    """
    return Script(
        unit="dialogue",
        row_id=row["dialogue_id"],
        dialogue_id=row["dialogue_id"],
        lang=row["lang"],
        group_id=row["group_id"],
        lines=tuple(
            Line(turn["role"], turn["text"], tuple(turn["strategies"]) if turn["role"] == "supporter" else ())
            for turn in row["turns"]
        ),
    )


def label_id(row: Mapping[str, Any]) -> str:
    """The id of a labelled candidate, from its row in `cer_candidates` or `cer_labels`."""
    return candidate_id(row["dialogue_id"], row["round"], row["candidate"])


def of_label(candidate: Mapping[str, Any], turn: Mapping[str, Any]) -> Script:
    """The script of a candidate: the history, the reply of the source, the candidate's reply, its three reasonings.

    `turn` is the row of `sampled_turns` of the same round; its history has no labels, the reference has.

    Raises ValueError where the two are of different rounds.
    """
    of_candidate, of_turn = (round_id(row["dialogue_id"], row["round"]) for row in (candidate, turn))
    if of_candidate != of_turn:
        raise ValueError(f"a candidate of {of_candidate} was put beside the round {of_turn}")
    return Script(
        unit="label",
        row_id=label_id(candidate),
        dialogue_id=candidate["dialogue_id"],
        lang=candidate["lang"],
        group_id=candidate["group_id"],
        lines=(
            *(Line(previous["role"], previous["text"]) for previous in turn["history"]),
            Line("reference", turn["reference"], tuple(turn["strategies"])),
            Line("response", candidate["response"], (candidate["strategy"],)),
            *(Line("analysis", candidate[step]) for step in STEPS),
        ),
        closed=tuple(candidate[name] for name in CLOSED),
    )


def scripts(
    dialogues: pl.DataFrame,
    splits: pl.DataFrame,
    turns: pl.DataFrame,
    candidates: pl.DataFrame,
    labels: pl.DataFrame,
    *,
    held_out: bool = False,
) -> tuple[Scripts, list[Lost]]:
    """The dialogues and labelled rounds that may teach, by unit and id, and what is left out.

    Args:
        dialogues: Rows of `coherent_dialogues`; `splits`: the split of every group.
        turns: Rows of `sampled_turns`; `candidates`: of `cer_candidates`; `labels`: of `cer_labels`.
        held_out: Whether rows of validation and test are there as well, which nothing may learn from.

    Returns a script for each dialogue and each label, or its loss: not_train, under_18, risk; and for a label
    no_candidate, where what was labelled is gone, or candidate_changed, where something else has its id.

    Raises RequestError for a group without a split.
    """
    eligibility = Eligibility(splits)
    excluded = eligibility.unfit if held_out else eligibility.exclusion_reason
    kept: list[Script] = []
    lost: list[Lost] = []
    for row in dialogues.iter_rows(named=True):
        if (exclusion := excluded(row["dialogue_id"], row)) is not None:
            lost.append(Lost("dialogue", row["dialogue_id"], *exclusion))
        else:
            kept.append(of_dialogue(row))
    turn_of = {(row["dialogue_id"], row["round"]): row for row in turns.iter_rows(named=True)}
    candidate_of = {label_id(row): row for row in candidates.iter_rows(named=True)}
    for label in labels.iter_rows(named=True):
        row_id = label_id(label)
        turn, candidate = turn_of.get((label["dialogue_id"], label["round"])), candidate_of.get(row_id)
        if turn is None or candidate is None:
            lost.append(Lost("label", row_id, "no_candidate", "the candidate that was labelled is there no more"))
        elif (exclusion := excluded(row_id, turn)) is not None:
            lost.append(Lost("label", row_id, *exclusion))
        elif (script := of_label(candidate, turn)).hash != label["labelled"]:
            lost.append(Lost("label", row_id, "candidate_changed", "since it was labelled"))
        else:
            kept.append(script)
    return {(script.unit, script.row_id): script for script in kept}, lost
