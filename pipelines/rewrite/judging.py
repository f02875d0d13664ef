"""`rewrite_judgements`: a second look at each draft, by a model that has its own setting.

With the same facts a rewrite may say the contrary: each is judged as a whole, and its labelled lines one by one.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import polars as pl

from pipelines.core.stage import stage
from pipelines.llm.language import require_language
from pipelines.llm.prompts import prompt
from pipelines.llm.questions import InvalidReply, Question
from pipelines.llm.replies import Reason, Verdict, read_json
from pipelines.llm.tasks import Plan, Replies, Result, in_order, planned
from pipelines.rewrite.scripts import Script, Scripts, hash_of, is_current, scripts
from pipelines.text.pii.invented import personal_data
from schemas.dropped import Lost, Row, dropped, gather
from schemas.personas import RewriteJudgements

STAGE = "rewrite_judgements"

_KEY = ("unit", "row_id", "variant")


class Judgement(Verdict):
    """What the second look says of a draft."""

    same_meaning: bool
    strategies_lost: list[int]
    why: Reason


def plan(drafts: pl.DataFrame, scripts: Scripts, models: Sequence[str]) -> Plan:
    """One question a draft (`drafts`: rows of `rewrite_drafts`) that is no copy.

    Rows are judgements, good and bad: `rewritten` drops by them. Drops are in the units `dialogue` and `label`: before
    asking, source_changed (the source is gone or another, and the draft will be made again) and copy (all variants are
    copies); after, the reason of the first reply without a judgement, with its variant in the detail: the judgements of
    the other variants go with it.
    """
    [model] = models
    lost: dict[tuple[str, str], Lost] = {}
    drafted = list(drafts.iter_rows(named=True))
    for unit, row_id in sorted({_subject(row) for row in drafted if not is_current(row, scripts)}):
        lost[unit, row_id] = Lost(unit, row_id, "source_changed", "since it was drafted")
    current = [row for row in drafted if _subject(row) not in lost]
    asked = [row for row in current if row["variant"] != "D"]
    reworded = set(map(_subject, asked))
    for unit, row_id in dict.fromkeys(map(_subject, current)):
        if (unit, row_id) not in reworded:
            lost[unit, row_id] = Lost(unit, row_id, "copy", "a copy needs no judge")
    questions = [_question(row, scripts[_subject(row)], model) for row in asked]
    row_of = {question.row_id: row for question, row in zip(questions, asked, strict=True)}

    def keep(row_id: str, value: Judgement) -> Row:
        row = row_of[row_id]
        return {name: row[name] for name in _KEY} | {"judged": hash_of(row["lines"])} | value.model_dump()

    judged = planned(
        RewriteJudgements, STAGE, questions, list(lost.values()), keep, "draft", grounds="why", guard=personal_data
    )

    def finish(replies: Replies) -> Result:
        losses: dict[tuple[str, str], Lost] = {}
        for question, reply in in_order(questions, replies):
            if reply.reason is not None:
                row = row_of[question.row_id]
                detail = f"{row['variant']}: {reply.detail}" if reply.detail else row["variant"]
                losses.setdefault(_subject(row), Lost(*_subject(row), reply.reason, detail))
        out = dropped(STAGE, list(losses.values()))
        kept, _ = judged.finish(replies)
        kept = kept.join(out, on=("unit", "row_id"), how="anti", maintain_order="left")
        return kept, gather(judged.dropped, out)

    return Plan(questions, judged.dropped, finish)


def _subject(draft: Row) -> tuple[str, str]:
    return draft["unit"], draft["row_id"]


def parse(text: str, script: Script) -> Judgement:
    """The judgement that a reply gives, with lines that lost their strategies each once and in order.

    Raises InvalidReply, and ValidationError for an object of another form.
    """
    read = read_json(text, Judgement)
    labelled = {number for number, line in enumerate(script.lines, 1) if line.strategies}
    if not labelled.issuperset(read.strategies_lost):
        allowed = f"strategies_lost may name lines that have strategies, and no others: {sorted(labelled)}"
        raise InvalidReply("strategies_lost", allowed)
    require_language(script.lang, why=read.why)
    return read.model_copy(update={"strategies_lost": sorted(set(read.strategies_lost))})


def _question(draft: Row, script: Script, model: str) -> Question[Judgement]:
    lines: list[dict[str, Any]] = [
        {
            "n": number,
            "who": line.who,
            "before": line.text,
            "after": written["text"],
            "strategies": list(line.strategies),
        }
        for number, (line, written) in enumerate(zip(script.lines, draft["lines"], strict=True), 1)
    ]
    return Question(
        task="rewrite_judge",
        row_id=f"{draft['row_id']}~{draft['variant']}",
        prompt=prompt(f"judge.{script.lang}", __file__),
        inputs={"lang": script.lang, "lines": lines},
        parse=partial(parse, script=script),
        model=model,
        schema=Judgement,
        about=draft["row_id"],
    )


@stage(
    "rewrite_judgements",
    group="rewrite",
    asks="rewrite.judging",
    units={"rewrite_judgements": dict.fromkeys(("dialogue", "label"), ("rewrite_drafts",))},
    optional_parents=("cer_labels",),
)
def plan_rewrite_judgements(
    rewrite_drafts: pl.DataFrame,
    coherent_dialogues: pl.DataFrame,
    splits: pl.DataFrame,
    sampled_turns: pl.DataFrame,
    cer_candidates: pl.DataFrame,
    cer_labels: pl.DataFrame,
    models: tuple[str, ...],
) -> Plan:
    """The questions of `rewrite_judgements`."""
    sources, _ = scripts(coherent_dialogues, splits, sampled_turns, cer_candidates, cer_labels)
    return plan(rewrite_drafts, sources, models)
