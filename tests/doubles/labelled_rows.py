"""Candidates, labels and variants of the round `s:1#2`, written short."""

from typing import Any

import polars as pl
from table_rows import frame, row_of
from unique_rows import rounds, sampled_round, splits

from pipelines.rewrite.scripts import of_label
from schemas.annotations import CerCandidates, CerLabels
from schemas.personas import RewrittenRounds

HISTORY = ["supporter: 你好", "seeker: 我睡不着", "supporter: 多久了？", "seeker: 一个月"]
REFERENCE, RESPONSE = "辛苦了。", "听起来很累。"
TURN = sampled_round(1, 2, HISTORY, REFERENCE)
PROVENANCE = {"provider": "openai", "model_asked": "m", "prompt_version": "p", "request_key": "k"}
STEPS = {
    **{"stage": "exploration", "history_reasoning": "他睡不好", "sentiment": "negative", "emotion": "疲惫"},
    **{"intensity": 3, "emotion_reasoning": "说了一个月", "strategy": "Reflection of feelings"},
    **{"strategy_reasoning": "先被听见", "response": RESPONSE},
}
PLACE = {"dialogue_id": "s:1", "round": 2, "candidate": 1, "group_id": "g1", "lang": "zh"}


def candidate(**more: Any) -> dict[str, Any]:
    return row_of(CerCandidates, **{**PLACE, **STEPS, **PROVENANCE, **more})


def label(of: dict[str, Any], turn: dict[str, Any] = TURN, right: str = "TTT", **more: Any) -> dict[str, Any]:
    """What people said of a candidate: `right` is a letter a step, T or F."""
    steps = {f"step{number}": letter == "T" for number, letter in enumerate(right, 1)}
    known = {name: of[name] for name in ("dialogue_id", "round", "candidate")} | {"labelled": of_label(of, turn).hash}
    return {**known, **steps, "preference": "second", "annotators": ["a1", "a2"], "consensus": "agreed", **more}


def variant(of: dict[str, Any], said: dict[str, Any], kind: str = "P", **more: Any) -> dict[str, Any]:
    known = {name: of[name] for name in (*PLACE, *STEPS)} | {"source_dialogue_id": of["dialogue_id"]}
    known |= {name: said[name] for name in ("step1", "step2", "step3", "preference")} | PROVENANCE
    known |= {"provider": "none" if kind == "D" else "replay", "variant": kind, "history": TURN["history"]}
    return row_of(
        RewrittenRounds, **known | {"dialogue_id": f"{of['dialogue_id']}~{kind}", "reference": REFERENCE} | more
    )


def tables(
    candidates: list[dict[str, Any]],
    labels: list[dict[str, Any]],
    variants: tuple[dict[str, Any], ...] = (),
    turns: tuple[dict[str, Any], ...] = (TURN,),
    **split_of: str,
) -> dict[str, pl.DataFrame]:
    """What `labelled` takes, by the names of its parameters."""
    return {
        "turns": rounds(*turns),
        "splits": splits(**(split_of or {"g1": "train"})),
        "candidates": frame(CerCandidates, *candidates),
        "labels": frame(CerLabels, *labels),
        "rewritten": frame(RewrittenRounds, *variants),
    }
