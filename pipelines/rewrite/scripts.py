"""What is rewritten at one go: a dialogue, or a labelled round with its two replies and the steps behind one of them.

A script is flat, line by line, so that writer, filter and judge need not know which of the two they have before them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pipelines.llm.language import Lang
from schemas.ids import candidate_id, digest, round_id

Unit = Literal["dialogue", "label"]
Who = Literal["seeker", "supporter", "reference", "response", "analysis"]

# The free texts of a candidate's three steps, in their order, and what the steps say in closed sets: the verdicts of a
# label are about both, and the former alone are rewritten.
STEPS = ("history_reasoning", "emotion_reasoning", "strategy_reasoning")
CLOSED = ("stage", "sentiment", "emotion", "intensity", "strategy")


@dataclass(frozen=True, slots=True)
class Line:
    """One line. `strategies` are labels of schemas.labels; only turns of the supporter and the two replies have any."""

    who: Who
    text: str
    strategies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """The lines of one unit. `row_id` is the dialogue's id, or `dialogue_id#round/candidate`; `closed` is what the
    steps of a candidate say in closed sets.
    """

    unit: Unit
    row_id: str
    dialogue_id: str
    lang: Lang
    group_id: str
    lines: tuple[Line, ...]
    closed: tuple[str | int, ...] = ()

    @property
    def hash(self) -> str:
        """16 hex digits that tell it from any other of its id: what people labelled, and what a draft was made from."""
        lines = [[line.who, line.text, *line.strategies] for line in self.lines]
        return digest(json.dumps([self.lang, self.group_id, lines, self.closed], ensure_ascii=False))


Scripts = Mapping[tuple[str, str], Script]  # by unit and id


def stands(draft: Mapping[str, Any], scripts: Scripts) -> bool:
    """Whether what a draft, a row of `rewrite_drafts`, was made from is still there as it was."""
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

    Args:
        candidate: A row of `cer_candidates`.
        turn: The row of `sampled_turns` of the same round. The history knows no labels; the reference has its own.

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
            *(Line(said["role"], said["text"]) for said in turn["history"]),
            Line("reference", turn["reference"], tuple(turn["strategies"])),
            Line("response", candidate["response"], (candidate["strategy"],)),
            *(Line("analysis", candidate[step]) for step in STEPS),
        ),
        closed=tuple(candidate[name] for name in CLOSED),
    )
