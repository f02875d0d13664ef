"""What a task is to the rest: questions, what was dropped before asking, and what becomes of the replies.

A plan is pure: it sends nothing and reads no file. The runner of a stage asks its questions and hands the replies back.

    made = ecot.plan(posts, splits, topics, client.models((settings.annotate.ecot,)))
    kept, dropped = made.finish(client.ask("ecot_chains", made.questions))
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import polars as pl
import pyarrow as pa

from pipelines.llm.questions import NOT_SAMPLED, Provenance, Question, Reply
from schemas.dropped import Lost, Row, dropped, gather
from schemas.ids import digest
from schemas.table import Table

Result = tuple[pl.DataFrame, pl.DataFrame]
Replies = Iterable[Reply[Any]]
# Of texts, and of all that their writer had read: the kinds of personal data that only the text holds, None for none.
Guard = Callable[[Sequence[str], Sequence[str]], list[str | None]]


class Questions(Sequence[Question[Any]]):
    """A question a row of a frame, made whenever it is read: those of a million rows are not in memory together."""

    def __init__(self, rows: pl.DataFrame, make: Callable[[Row], Question[Any]]) -> None:
        self._rows, self._make = rows, make

    def __len__(self) -> int:
        return self._rows.height

    def __iter__(self) -> Iterator[Question[Any]]:
        return map(self._make, self._rows.iter_rows(named=True))

    @overload
    def __getitem__(self, place: int) -> Question[Any]: ...
    @overload
    def __getitem__(self, place: slice) -> "Questions": ...
    def __getitem__(self, place: int | slice) -> "Question[Any] | Questions":
        if isinstance(place, slice):
            return Questions(self._rows[place], self._make)
        return self._make(self._rows.row(place, named=True))

    def at(self, places: Sequence[int]) -> "Questions":
        """Those at some places."""
        return Questions(self._rows[places], self._make)


@dataclass(frozen=True, slots=True)
class Plan:
    """A task over its rows.

    `dropped` is what was dropped before asking. `finish` takes one reply a question, in their order, and gives
    `(kept, dropped)` of the whole task; it raises ValueError where the replies are not those of the questions.
    `held_out` are the things asked about that nothing learns from (`sampled`).
    """

    questions: Sequence[Question[Any]]
    dropped: pl.DataFrame
    finish: Callable[[Replies], Result]
    held_out: Collection[str] = ()


def sampled(plan: Plan, size: int | None = None, seed: int = 0, held_out: int | None = None) -> Plan:
    """The plan of at most `size` of the things that it asks about, drawn by the seed; None: of all.

    Held-out things are not counted: the draw takes those that it passes on its way, `held_out` of them at most (None:
    all), so their share is what it is among all, and what trains is drawn as if there were none of them. A greater size
    keeps what a smaller one has drawn. The rest is dropped: not_sampled.
    """

    if size is None and held_out is None:
        return plan

    def subject(question: Question[Any]) -> str:
        return question.about or question.row_id

    subjects = sorted(set(map(subject, plan.questions)), key=lambda one: digest(f"{seed}/{one}", 16))
    learnt = [place for place, one in enumerate(subjects) if one not in plan.held_out]
    end = len(subjects) if size is None or len(learnt) <= size else learnt[size]
    passed = [one for one in subjects[:end] if one in plan.held_out]
    chosen = set(subjects[:end]) - set(passed[len(passed) if held_out is None else held_out :])
    if len(chosen) == len(subjects):
        return plan

    def unasked(question: Question[Any]) -> Reply[Any]:
        nobody = Provenance("none", question.model, None, question.prompt.name, "none")
        limits = {"": size, " held out": held_out if subject(question) in plan.held_out else None}
        detail = ", ".join(f"at most {limit:,}{of}" for of, limit in limits.items() if limit is not None)
        return Reply(question, None, nobody, reason=NOT_SAMPLED, detail=detail)

    def finish(replies: Replies) -> Result:
        received = iter(replies)
        return plan.finish(next(received) if subject(one) in chosen else unasked(one) for one in plan.questions)

    places = [place for place, one in enumerate(plan.questions) if subject(one) in chosen]
    of = plan.questions
    return Plan(of.at(places) if isinstance(of, Questions) else [of[place] for place in places], plan.dropped, finish)


def planned(
    table: type[Table],
    stage: str,
    questions: Sequence[Question[Any]],
    lost: Sequence[Lost],
    keep: Callable[[str, Any], Row | Lost],
    unit: str | Mapping[str, str],
    *,
    guard: Guard,
    written: Sequence[str] = (),
    grounds: str | None = None,
) -> Plan:
    """The plan of a task that makes at most one row of `table` out of each reply.

    Args:
        table, stage, questions: What the rows are, the name for the drops, and what is asked.
        lost: What was dropped before asking.
        keep: The row of a question's row_id and the value of its reply, or why there is none. Provenance is added here,
            and the model's own reasoning where the table has a column for it.
        unit: What a question is about, for the drop of one that gives no row; by row_id where that differs.
        guard: What tells of personal data that a reply holds and its inputs do not (`text.pii.invented`).
        written: The columns that a model wrote freely. A row where they hold such data is dropped: personal_data.
        grounds: The column in which a model says why. Where that holds such data, its kinds stand in its place: the
            verdict is not lost with them.
    """
    before, has_chain = dropped(stage, lost), "reasoning" in table.columns()

    def finish(replies: Replies) -> Result:
        kept: list[tuple[Question[Any], Row]] = []
        unkept: list[Lost] = []
        for question, reply in in_order(questions, replies):
            if reply.reason is None:
                made = keep(question.row_id, reply.value)
            else:
                made = Lost(unit_of(question), question.row_id, reply.reason, reply.detail)
            if isinstance(made, Lost):
                unkept.append(made)
            else:
                chain = {"reasoning": reply.reasoning} if has_chain else {}
                kept.append((question, made | chain | reply.provenance.columns()))
        if written:
            kinds = personal_data(kept, written)
            unkept += [
                Lost(unit_of(question), question.row_id, "personal_data", kind)
                for (question, _), kind in zip(kept, kinds, strict=True)
                if kind
            ]
            kept = [one for one, kind in zip(kept, kinds, strict=True) if not kind]
        if grounds:
            for (_, row), kind in zip(kept, personal_data(kept, [grounds]), strict=True):
                row[grounds] = f"withheld: {kind}" if kind else row[grounds]
        return rows(table, [row for _, row in kept]), gather(before, dropped(stage, unkept))

    def unit_of(question: Question[Any]) -> str:
        return unit if isinstance(unit, str) else unit[question.row_id]

    def personal_data(kept: Sequence[tuple[Question[Any], Row]], columns: Sequence[str]) -> list[str | None]:
        inputs = [json.dumps(question.data, ensure_ascii=False) for question, _ in kept]
        return guard(["\n".join(row[name] for name in columns) for _, row in kept], inputs)

    return Plan(questions, before, finish)


def in_order(questions: Sequence[Question[Any]], replies: Replies) -> Iterator[tuple[Question[Any], Reply[Any]]]:
    """Each question with its reply. Raises ValueError where a reply is missing or stands in another's place."""
    for question, reply in zip(questions, replies, strict=True):
        if (question.task, question.row_id) != (reply.question.task, reply.question.row_id):
            raise ValueError(f"the reply to {reply.question.row_id} stands where that to {question.row_id} should")
        yield question, reply


def rows(table: type[Table], kept: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """`kept` as a frame of exactly the table's columns."""
    # By Arrow: polars makes a series of each list of each row, which takes three times as long.
    columns = table.create_empty().to_arrow(compat_level=pl.CompatLevel.oldest()).schema
    made = pl.from_arrow(pa.Table.from_pylist(list(kept), columns))
    assert isinstance(made, pl.DataFrame)
    return made.cast(table.polars_schema())
