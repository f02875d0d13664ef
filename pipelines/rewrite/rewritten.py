"""`rewritten_dialogues` and `rewritten_rounds`: drafts that a second look found good, as dialogues and rounds again.

All or nothing: a dialogue or label of which one variant is lost is lost to all, so each has the same number of rows,
and an ablation compares like with like (C's D, R and P).
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import polars as pl

from pipelines.core.stage import stage
from pipelines.llm.tasks import rows
from pipelines.rewrite.material import material
from pipelines.rewrite.scripts import CLOSED, STEPS, Scripts, hash_of, label_id, stands
from schemas.dropped import Lost, dropped
from schemas.personas import RewrittenDialogues, RewrittenRounds

Row = dict[str, Any]
Result = tuple[pl.DataFrame, pl.DataFrame]

# What both tables take over from a draft as it is.
_CARRIED = (
    *("variant", "persona_id", "supporter_persona_id", "lang", "group_id"),
    *("provider", "model_asked", "model_served", "prompt_version", "request_key"),
)
_VERDICTS = ("step1", "step2", "step3", "preference")


def rewritten_dialogues(
    drafts: pl.DataFrame, judgements: pl.DataFrame, dialogues: pl.DataFrame, scripts: Scripts
) -> Result:
    """Whole dialogues, one a variant.

    Args:
        drafts: Rows of `rewrite_drafts`.
        judgements: Rows of `rewrite_judgements`.
        dialogues: Rows of `coherent_dialogues`, which the drafts were made from.
        scripts: What may be rewritten today, by unit and id.

    Returns:
        `(kept, dropped)`. Drops are in the unit `dialogue`: source_changed, not_judged, judged_different,
        strategies_lost; the variant that was lost is in the detail. Turns keep what the source says of them; a clip
        does not fit new words, so rewritten turns have none, and a rewritten turn was written by a model, whoever said
        the source's.
    """
    by_id = {row["dialogue_id"]: row for row in dialogues.iter_rows(named=True)}
    kept: list[Row] = []
    lost: list[Lost] = []
    for variants, loss in _judged("dialogue", drafts, judgements, scripts):
        if loss is not None:
            lost.append(loss)
            continue
        for draft in variants:
            turns = by_id[draft["dialogue_id"]]["turns"]
            kept.append(_carried(draft) | {"turns": _turns(draft, turns)})
    return rows(RewrittenDialogues, kept), dropped("rewritten_dialogues", lost)


def rewritten_rounds(
    drafts: pl.DataFrame, judgements: pl.DataFrame, candidates: pl.DataFrame, labels: pl.DataFrame, scripts: Scripts
) -> Result:
    """Labelled rounds, one a variant, with the verdicts of their labels carried.

    Args:
        drafts: Rows of `rewrite_drafts`.
        judgements: Rows of `rewrite_judgements`.
        candidates: Rows of `cer_candidates`, with what the steps say in closed sets: that is not rewritten.
        labels: Rows of `cer_labels`.
        scripts: What may be rewritten today, by unit and id.

    Returns:
        `(kept, dropped)`. Drops are in the unit `label`, for the reasons of `rewritten_dialogues`.
    """
    steps, verdicts = ({label_id(row): row for row in frame.iter_rows(named=True)} for frame in (candidates, labels))
    kept: list[Row] = []
    lost: list[Lost] = []
    for variants, loss in _judged("label", drafts, judgements, scripts):
        if loss is not None:
            lost.append(loss)
            continue
        for draft in variants:
            step, verdict = steps[draft["row_id"]], verdicts[draft["row_id"]]
            kept.append(
                _carried(draft)
                | {name: verdict[name] for name in ("round", "candidate", *_VERDICTS)}
                | {name: step[name] for name in CLOSED}
                | _texts(draft["lines"])
            )
    return rows(RewrittenRounds, kept), dropped("rewritten_rounds", lost)


def _judged(
    unit: str, drafts: pl.DataFrame, judgements: pl.DataFrame, scripts: Scripts
) -> Iterator[tuple[list[Row], Lost | None]]:
    """The drafts of each dialogue or label together, and why they are lost, None where they are not."""
    said = {(row["unit"], row["row_id"], row["variant"]): row for row in judgements.iter_rows(named=True)}
    of_unit = drafts.filter(pl.col("unit") == unit).sort("row_id", "variant")
    for row_id, variants in groupby(of_unit.iter_rows(named=True), key=lambda row: str(row["row_id"])):
        found = list(variants)
        if not all(stands(row, scripts) for row in found):
            yield found, Lost(unit, row_id, "source_changed", "since it was drafted")
            continue
        losses = (_loss(row, said.get((unit, row_id, row["variant"]))) for row in found)
        loss = next((one for one in losses if one is not None), None)
        yield found, loss and Lost(unit, row_id, *loss)


def _loss(draft: Row, judgement: Row | None) -> tuple[str, str] | None:
    """Reason and detail for a draft that may not stay."""
    variant = draft["variant"]
    if variant == "D":
        return None
    if judgement is None or judgement["judged"] != hash_of(draft["lines"]):
        return "not_judged", variant
    if not judgement["same_meaning"]:
        return "judged_different", variant
    if judgement["strategies_lost"]:
        return "strategies_lost", f"{variant}: {len(judgement['strategies_lost'])} lines"
    return None


def _carried(draft: Row) -> Row:
    source = draft["dialogue_id"]
    return {
        **{name: draft[name] for name in _CARRIED},
        "dialogue_id": f"{source}~{draft['variant']}",
        "source_dialogue_id": source,
    }


def _turns(draft: Row, source: list[Row]) -> list[Row]:
    if draft["variant"] == "D":
        return source
    return [
        turn | {"text": line["text"], "origin": "model", "media": []}
        for turn, line in zip(source, draft["lines"], strict=True)
    ]


def _texts(lines: list[Row]) -> Row:
    """What a draft of a label says, by column: the history, then reference, response and the three reasonings."""
    *history, reference, response, _, _, _ = lines
    spoken = [{"role": line["who"], "text": line["text"]} for line in history]
    reasonings = {name: line["text"] for name, line in zip(STEPS, lines[-len(STEPS) :], strict=True)}
    return {"history": spoken, "reference": reference["text"], "response": response["text"], **reasonings}


@stage(
    "rewritten",
    group="rewrite",
    tables=("rewritten_dialogues", "rewritten_rounds"),
    units={
        "rewritten_dialogues": {"dialogue": ("rewrite_drafts",)},
        "rewritten_rounds": {"label": ("rewrite_drafts",)},
    },
    optional_parents=("cer_labels",),
)
def make_rewritten(
    rewrite_drafts: pl.DataFrame,
    rewrite_judgements: pl.DataFrame,
    coherent_dialogues: pl.DataFrame,
    splits: pl.DataFrame,
    sampled_turns: pl.DataFrame,
    cer_candidates: pl.DataFrame,
    cer_labels: pl.DataFrame,
) -> dict[str, tuple[pl.DataFrame, pl.DataFrame]]:
    """`rewritten_dialogues` and `rewritten_rounds`: the drafts that were judged good."""
    scripts = material(coherent_dialogues, splits, sampled_turns, cer_candidates, cer_labels).by_id()
    drafts, judgements = rewrite_drafts, rewrite_judgements
    return {
        "rewritten_dialogues": rewritten_dialogues(drafts, judgements, coherent_dialogues, scripts),
        "rewritten_rounds": rewritten_rounds(drafts, judgements, cer_candidates, cer_labels, scripts),
    }
