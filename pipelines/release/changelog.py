"""What changed between two releases as Markdown, ready for a changelog; what did not change is left out."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from pipelines.release.changes import Changes, Lengths, Pair
from pipelines.store.release_manifest import Source


def markdown(told: Changes) -> str:
    """A section of a changelog."""
    parts = [f"## {told.b}", f"Compared with {told.a}.", *_sections(told)]
    return "\n\n".join([*parts, "Nothing changed."] if told.empty else parts) + "\n"


def _sections(told: Changes) -> Iterator[str]:
    moved = [one for one in told.rows if not one.empty]
    if moved:
        rows = [(one.config, one.split, one.before, one.added, one.removed, one.changed, one.after) for one in moved]
        yield _table("Rows", ("set", "split", "before", "added", "removed", "changed", "after"), rows)
    yield from _pairs("Columns", "column", told.columns, str)
    yield from _pairs("Sources", "source", told.sources, _source)
    yield from _pairs("Topics", "topic", told.topics, str)
    yield from _pairs("Characters a text (mean, median, 95 %)", "set, part", told.lengths, _length)
    yield from _pairs("Prompts", "prompt", told.prompts, str)
    yield from _pairs("Settings", "setting", told.settings, str)
    if told.spend:
        spent = [(stage, model, *_spent(pair)) for (stage, model), pair in told.spend.items()]
        yield _table("Spend since", ("stage", "model", "calls", "USD"), spent)
    yield from _pairs("Findings", "check", told.findings, "; ".join)
    yield from _pairs("Tables", "table", told.tables, str)


def _pairs(title: str, head: str, pairs: Mapping[Any, Pair], shown: Callable[[Any], str]) -> Iterator[str]:
    if pairs:
        rows = [
            (
                ", ".join(name) if isinstance(name, tuple) else name,
                *("–" if one is None else shown(one) for one in pair),
            )
            for name, pair in pairs.items()
        ]
        yield _table(title, (head, "before", "after"), rows)


def _table(title: str, head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    columns = list(head)
    lines = [columns, ["---"] * len(columns), *([_cell(one) for one in row] for row in rows)]
    return f"### {title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    shown = f"{value:,}" if isinstance(value, int) else str(value)
    return shown.replace("|", "\\|").replace("\n", " ")


def _source(source: Source) -> str:
    return f"{source.rows:,} rows; {source.licence or 'no licence'}; consent: {source.consent}; {source.collected}"


def _length(lengths: Lengths) -> str:
    return f"{lengths.mean:,} {lengths.median:,} {lengths.p95:,} ({lengths.texts:,} texts)"


def _spent(pair: Pair) -> tuple[int, str]:
    """Calls and money since the earlier release; a ledger that was begun again has spent less, and says so."""
    calls = [0 if one is None else one.calls for one in pair]
    amounts = ["0" if one is None else one.usd for one in pair]
    currency = amounts[1].partition(" ")[2] or amounts[0].partition(" ")[2]
    before, after = (Decimal(amount.partition(" ")[0]) for amount in amounts)
    return calls[1] - calls[0], f"{after - before:f} {currency}".strip()
