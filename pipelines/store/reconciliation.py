"""Nothing vanishes: rows in = rows kept + rows dropped, in every unit that a step names (DESIGN §2.2)."""

from dataclasses import dataclass

import polars as pl

from pipelines.errors import Unaccounted


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """How many of a unit came in, were kept and were dropped."""

    unit: str
    taken: int
    kept: int
    dropped: int

    @property
    def balanced(self) -> bool:
        """Whether nothing was lost and nothing came from nowhere."""
        return self.taken == self.kept + self.dropped

    def __str__(self) -> str:
        return f"{self.unit}: {self.taken} in, {self.kept} kept, {self.dropped} dropped"


# Of tables that hold a unit several times, the columns that tell it from others.
_TELLING = {
    "round": (("dialogue_id", "round"), "candidate"),
    "dialogue": (("source_dialogue_id",), "variant"),
    "label": (("source_dialogue_id", "round", "candidate"), "variant"),
    "post": (("made_from",), "negative"),
    "candidate": (("made_from",), "messages"),
}


def count(frame: pl.DataFrame, unit: str) -> int:
    """How many of `unit` a table holds: its rows, the two speakers of its dialogues, answers of its posts, or rounds,
    dialogues, labels, posts and candidates of which it has candidates, variants or samples, each once.
    """
    if "unit" in frame.columns:
        return frame.filter(pl.col("unit") == unit)["row_id"].n_unique()
    columns, several = _TELLING.get(unit, ((), ""))
    if several in frame.columns and set(columns) <= set(frame.columns):
        return frame.select(columns).n_unique()
    if unit == "speaker" and "turns" in frame.columns:
        return 2 * frame.height
    if unit == "answer":
        return int(frame["answers"].list.len().sum())
    if unit == "round" and "turns" in frame.columns:
        return _rounds(frame)
    return frame.height


def _rounds(dialogues: pl.DataFrame) -> int:
    """The seeker turns that a supporter turn answers; of rewritten dialogues no column says how many."""
    role = pl.element().struct.field("role")
    answered = (role == "seeker") & (role.shift(-1) == "supporter")
    return int(dialogues["turns"].list.eval(answered).list.sum().sum())


def reconcile(unit: str, taken: list[pl.DataFrame], kept: pl.DataFrame, dropped: pl.DataFrame) -> Reconciliation:
    """The reconciliation of one unit over a step."""
    return Reconciliation(
        unit,
        sum(count(frame, unit) for frame in taken),
        count(kept, unit),
        dropped.filter(pl.col("unit") == unit).height,
    )


def require_balance(table: str, reconciliations: list[Reconciliation]) -> None:
    """Raises Unaccounted where rows were lost or came from nowhere."""
    wrong = [reconciliation for reconciliation in reconciliations if not reconciliation.balanced]
    if wrong:
        raise Unaccounted(
            f"the rows of {table} do not add up: {'; '.join(map(str, wrong))}",
            where=table,
            hint="a step lost rows without a reason, or made some: mend it; nothing was written",
        )
