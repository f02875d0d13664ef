"""`rewritten_dialogues` and `rewritten_rounds`: drafts that the second look found good, as dialogues and rounds again.

All or nothing: a dialogue or label of which one variant is lost is lost to all, so each has the same number of rows,
and an ablation compares like with like (C's D, R and P).
"""

from itertools import groupby

import polars as pl

from pipelines.core.stage import stage
from pipelines.llm.tasks import Result, rows
from pipelines.rewrite.scripts import CLOSED, STEPS, Scripts, hash_of, is_current, label_id, scripts
from schemas.dropped import Lost, Row, dropped
from schemas.personas import RewrittenDialogues, RewrittenRounds

# What both tables take over from a draft as it is.
_CARRIED = (
    *("variant", "persona_id", "supporter_persona_id", "lang", "group_id"),
    *("provider", "model_asked", "model_served", "prompt_version", "request_key", "temperature"),
)
_VERDICTS = ("step1", "step2", "step3", "preference")


def rewritten_dialogues(
    drafts: pl.DataFrame, judgements: pl.DataFrame, dialogues: pl.DataFrame, scripts: Scripts
) -> Result:
    """Whole dialogues, one a variant.

    Args:
        drafts: Rows of `rewrite_drafts`; `judgements`: of `rewrite_judgements`; `dialogues`: of `coherent_dialogues`.
        scripts: What may be rewritten today, by unit and id.

    Returns `(kept, dropped)`. Drops are in the unit `dialogue`: source_changed, not_judged, judged_different,
    strategies_lost, with the variant that was lost in the detail. Turns keep the source's labels; rewritten ones have
    no clip, and a model wrote them.
    """
    source_of = {row["dialogue_id"]: row["turns"] for row in dialogues.iter_rows(named=True)}
    good, lost = _good("dialogue", drafts, judgements, scripts)
    kept = [_carried(draft) | {"turns": _turns(draft, source_of[draft["dialogue_id"]])} for draft in good]
    return rows(RewrittenDialogues, kept), dropped("rewritten_dialogues", lost)


def rewritten_rounds(
    drafts: pl.DataFrame, judgements: pl.DataFrame, candidates: pl.DataFrame, labels: pl.DataFrame, scripts: Scripts
) -> Result:
    """Labelled rounds, one a variant, with the verdicts of their labels carried.

    Args:
        drafts: Rows of `rewrite_drafts`; `judgements`: of `rewrite_judgements`; `labels`: of `cer_labels`.
        candidates: Rows of `cer_candidates`, with what the steps say in closed sets: that is not rewritten.
        scripts: What may be rewritten today, by unit and id.

    Returns `(kept, dropped)`; drops as of `rewritten_dialogues`, in the unit `label`.
    """
    candidate_of, label_of = (
        {label_id(row): row for row in frame.iter_rows(named=True)} for frame in (candidates, labels)
    )
    good, lost = _good("label", drafts, judgements, scripts)
    kept = [
        _carried(draft)
        | {name: label_of[draft["row_id"]][name] for name in ("round", "candidate", *_VERDICTS)}
        | {name: candidate_of[draft["row_id"]][name] for name in CLOSED}
        | _texts(draft["lines"])
        for draft in good
    ]
    return rows(RewrittenRounds, kept), dropped("rewritten_rounds", lost)


def _good(unit: str, drafts: pl.DataFrame, judgements: pl.DataFrame, scripts: Scripts) -> tuple[list[Row], list[Lost]]:
    """The drafts of the dialogues or labels of which no variant is lost, and the others, each once."""
    judgement_of = {(row["unit"], row["row_id"], row["variant"]): row for row in judgements.iter_rows(named=True)}
    good: list[Row] = []
    lost: list[Lost] = []
    of_unit = drafts.filter(pl.col("unit") == unit).sort("row_id", "variant").iter_rows(named=True)
    for row_id, group in groupby(of_unit, key=lambda row: str(row["row_id"])):
        variants = list(group)
        if not all(is_current(draft, scripts) for draft in variants):
            lost.append(Lost(unit, row_id, "source_changed", "since it was drafted"))
            continue
        losses = (_loss(draft, judgement_of.get((unit, row_id, draft["variant"]))) for draft in variants)
        if loss := next(filter(None, losses), None):
            lost.append(Lost(unit, row_id, *loss))
        else:
            good += variants
    return good, lost


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
    ids = {"dialogue_id": f"{source}~{draft['variant']}", "source_dialogue_id": source}
    return {name: draft[name] for name in _CARRIED} | ids


def _turns(draft: Row, source: list[Row]) -> list[Row]:
    if draft["variant"] == "D":
        return source
    pairs = zip(source, draft["lines"], strict=True)
    return [turn | {"text": line["text"], "origin": "model", "media": []} for turn, line in pairs]


def _texts(lines: list[Row]) -> Row:
    """The texts of a draft of a label, by column: the history, then reference, response and the three reasonings."""
    *history, reference, response, first, second, third = lines
    turns = [{"role": line["who"], "text": line["text"]} for line in history]
    reasonings = {name: line["text"] for name, line in zip(STEPS, (first, second, third), strict=True)}
    return {"history": turns, "reference": reference["text"], "response": response["text"], **reasonings}


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
) -> dict[str, Result]:
    """`rewritten_dialogues` and `rewritten_rounds`: the drafts that were judged good."""
    sources, _ = scripts(coherent_dialogues, splits, sampled_turns, cer_candidates, cer_labels)
    drafts, judgements = rewrite_drafts, rewrite_judgements
    return {
        "rewritten_dialogues": rewritten_dialogues(drafts, judgements, coherent_dialogues, sources),
        "rewritten_rounds": rewritten_rounds(drafts, judgements, cer_candidates, cer_labels, sources),
    }
