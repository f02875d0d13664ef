"""What changed between two releases as a section of a changelog; what did not change is left out."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from pipelines.release.changes import Changes, Lengths, Pair
from pipelines.release.markdown import render
from pipelines.store.release_manifest import Source

_Section = tuple[str, list[str], list[tuple[Any, ...]]]  # title, head, rows


def markdown(changes: Changes) -> str:
    """A section of a changelog."""
    return render("changelog", name=changes.b, before=changes.a, sections=list(_sections(changes)))


def _sections(changes: Changes) -> Iterator[_Section]:
    rows = [one for one in changes.rows if not one.empty]
    if rows:
        head = ["set", "split", "before", "added", "removed", "changed", "after"]
        yield "Rows", head, [(r.config, r.split, r.before, r.added, r.removed, r.changed, r.after) for r in rows]
    yield from _pairs("Columns", "column", changes.columns, str)
    yield from _pairs("Sources", "source", changes.sources, _source)
    yield from _pairs("Topics", "topic", changes.topics, str)
    yield from _pairs("Characters a text (mean, median, 95 %)", "set, part", changes.lengths, _length)
    yield from _pairs("Prompts", "prompt", changes.prompts, str)
    yield from _pairs("Settings", "setting", changes.settings, str)
    if changes.spend:
        spent = [(stage, model, *_spent(pair)) for (stage, model), pair in changes.spend.items()]
        yield "Spend since", ["stage", "model", "calls", "USD"], spent
    yield from _pairs("Findings", "check", changes.findings, "; ".join)
    yield from _pairs("Tables", "table", changes.tables, str)


def _pairs(title: str, name: str, pairs: Mapping[Any, Pair], show: Callable[[Any], str]) -> Iterator[_Section]:
    if pairs:
        keys = (", ".join(key) if isinstance(key, tuple) else key for key in pairs)
        cells = ([None if side is None else show(side) for side in pair] for pair in pairs.values())
        yield title, [name, "before", "after"], [(key, *row) for key, row in zip(keys, cells, strict=True)]


def _source(source: Source) -> str:
    return f"{source.rows:,} rows; {source.licence or 'no licence'}; consent: {source.consent}; {source.collected}"


def _length(lengths: Lengths) -> str:
    return f"{lengths.mean:,} {lengths.median:,} {lengths.p95:,} ({lengths.texts:,} texts)"


def _spent(pair: Pair) -> tuple[int, str]:
    """Calls and money since the earlier release; negative where the ledger was begun again."""
    calls = [0 if spend is None else spend.calls for spend in pair]
    amounts = ["0" if spend is None else spend.usd for spend in pair]
    currency = amounts[1].partition(" ")[2] or amounts[0].partition(" ")[2]
    before, after = (Decimal(amount.partition(" ")[0]) for amount in amounts)
    return calls[1] - calls[0], f"{after - before:f} {currency}".strip()
