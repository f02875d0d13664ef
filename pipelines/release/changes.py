"""What changed between two releases: rows, topics, lengths, prompts, settings, spend, sources, findings."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import BaseModel

from pipelines.release.checks.texts import texts_of
from pipelines.release.markdown import render
from pipelines.store.forms import diff, in_schema
from pipelines.store.release_manifest import Release, Source, Spend
from pipelines.store.releases import Releases
from schemas.labels import SPLITS
from schemas.tables import TABLES

Pair = tuple[Any, Any]  # before, after; None where there was none
_KEY = ["row_id"]  # of every set
_Schema = Mapping[str, Any]  # column → polars' type


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a split of a config by key: there before and after (`kept`, of these `changed` in content), or not."""

    config: str
    split: str
    added: int
    removed: int
    kept: int
    changed: int

    @property
    def empty(self) -> bool:
        """Whether the split holds the same rows."""
        return not (self.added or self.removed or self.changed)


@dataclass(frozen=True, slots=True)
class Lengths:
    """Characters of the texts of one part (`pipelines.release.checks.texts.texts_of`) in a config."""

    texts: int
    mean: float
    median: float
    p95: float

    def __str__(self) -> str:
        return f"{self.mean:,} {self.median:,} {self.p95:,} ({self.texts:,} texts)"


@dataclass(frozen=True)
class Changes:
    """What release `b` has that `a` has not. Of `rows` every split is there; of the rest what differs, by name."""

    a: str
    b: str
    rows: list[Rows]
    columns: dict[str, Pair]  # of the sets that both hold: `set.column.field` -> type
    tables: dict[str, Pair]  # versions
    topics: dict[str, Pair]  # rows of the prompt sets
    lengths: dict[tuple[str, str], Pair]  # config and part -> Lengths
    prompts: dict[str, Pair]
    settings: dict[str, Pair]
    spend: dict[tuple[str, str], Pair]  # stage and model -> Spend
    sources: dict[str, Pair]  # Source
    findings: dict[str, Pair]  # check -> what they found

    @property
    def empty(self) -> bool:
        """Whether nothing differs but the names."""
        rest = (self.columns, self.tables, self.topics, self.lengths, self.prompts, self.settings, self.spend)
        return all(one.empty for one in self.rows) and not any((*rest, self.sources, self.findings))

    def as_dict(self) -> dict[str, Any]:
        """For `--json`: pairs are lists, names of several parts joined by a slash."""
        return {key: _plain(value) for key, value in asdict(self).items()}


def changes(home: Path, a: str, b: str) -> Changes:
    """What changed from release `a` to release `b` of a home.

    Rows are compared by what both releases hold of them: one that an older version of the project made may lack
    columns. Topics and lengths are those of sets that can be read as today's; a set that there is no more has none.

    Raises UnknownName for a name that no release has, DamagedRelease.
    """
    releases = Releases(home)
    before, after = releases.read(a), releases.read(b)
    one, other = _Contents(releases, before), _Contents(releases, after)
    return Changes(
        a=a,
        b=b,
        rows=list(_rows(one, other)),
        columns=_columns(one, other),
        tables=_differing(before.pins, after.pins),
        topics=_differing(one.topics(), other.topics()),
        lengths=_differing(one.lengths(), other.lengths()),
        prompts=_differing(before.prompts, after.prompts),
        settings=_differing(_flat(before.settings), _flat(after.settings)),
        spend=_differing(_by_stage(before.spend), _by_stage(after.spend)),
        sources=_differing({one.name: one for one in before.sources}, {one.name: one for one in after.sources}),
        findings=_differing(_findings(before), _findings(after)),
    )


class _Contents:
    """The rows of a release, read config by config."""

    def __init__(self, releases: Releases, release: Release) -> None:
        self.releases, self.release = releases, release

    def rows(self, config: str, split: str | None = None) -> pl.DataFrame:
        if not self.release.rows(config, split):
            return pl.DataFrame(schema=dict.fromkeys(_KEY, pl.String))
        return self.releases.frame(self.release.name, config, split).collect()

    def read(self, config: str) -> pl.DataFrame | None:
        """The rows of a set in today's schema; None where that is impossible."""
        try:
            return in_schema(self.rows(config), TABLES[config].polars_schema()) if config in TABLES else None
        except pl.exceptions.SchemaError:
            return None

    def topics(self) -> dict[str, int]:
        """Posts and rounds of the prompt sets by topic, each once; those of no topic are left out."""
        sets = [pl.DataFrame(schema={"row_id": pl.String, "topic": pl.String})]
        for config in self.release.configs:
            if config.startswith("grpo_") and (rows := self.read(config)) is not None:
                sets.append(rows.select("row_id", topic=pl.col("extra_info").struct.field("topic")))
        return dict(pl.concat(sets).unique("row_id").drop_nulls().group_by("topic").len().sort("topic").iter_rows())

    def lengths(self) -> dict[tuple[str, str], Lengths]:
        lengths = {}
        length = pl.col("text").str.len_chars()
        figures = {"mean": length.mean(), "median": length.median(), "p95": length.quantile(0.95, "linear")}
        for config in self.release.configs:
            if (rows := self.read(config)) is not None:
                measured = texts_of(config, rows).group_by("part").agg(pl.len().alias("texts"), **figures)
                for part, texts, *rest in measured.sort("part").iter_rows():
                    lengths[config, part] = Lengths(texts, *(round(figure, 1) for figure in rest))
        return lengths


def _rows(before: _Contents, after: _Contents) -> Iterator[Rows]:
    for config in dict.fromkeys([*before.release.configs, *after.release.configs]):
        for split in SPLITS:
            one, other = before.rows(config, split), after.rows(config, split)
            if one.height and other.height:
                schema = _common(one.schema, other.schema)
                one, other = (in_schema(rows, schema) for rows in (one, other))
            difference = diff(one, other, _KEY)
            added, removed = difference.added.height, difference.removed.height
            if one.height or other.height:
                yield Rows(config, split, added, removed, one.height - removed, difference.changed.height)


def _columns(before: _Contents, after: _Contents) -> dict[str, Pair]:
    columns: dict[str, Pair] = {}
    for config in before.release.configs:
        one, other = before.rows(config), after.rows(config)
        if one.height and other.height and one.schema != other.schema:
            pairs = _differing(_leaves(one.schema), _leaves(other.schema))
            columns |= {f"{config}.{name}": pair for name, pair in pairs.items()}
    return columns


def _common(one: _Schema, other: _Schema) -> dict[str, Any]:
    """The columns that both have, with the fields that both have; those of two types are left out."""
    common = {name: _common_type(dtype, other[name]) for name, dtype in one.items() if name in other}
    return {name: dtype for name, dtype in common.items() if dtype is not None}


def _common_type(one: Any, other: Any) -> Any:
    if isinstance(one, pl.List) and isinstance(other, pl.List):
        inner = _common_type(one.inner, other.inner)
        return None if inner is None else pl.List(inner)
    if isinstance(one, pl.Struct) and isinstance(other, pl.Struct):
        fields = _common(one.to_schema(), other.to_schema())
        return pl.Struct(fields) if fields else None
    return one if one == other else None


def _leaves(schema: _Schema) -> dict[str, str]:
    """The innermost columns: `column.field` → type; the members of a list are `column[]`."""
    leaves: dict[str, str] = {}
    for name, dtype in schema.items():
        if isinstance(dtype, pl.List):
            leaves |= _leaves({f"{name}[]": dtype.inner})
        elif isinstance(dtype, pl.Struct):
            leaves |= _leaves({f"{name}.{field}": inner for field, inner in dtype.to_schema().items()})
        else:
            leaves[name] = str(dtype)
    return leaves


def _differing(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> dict[Any, Pair]:
    names = dict.fromkeys([*before, *after])
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {"/".join(key) if isinstance(key, tuple) else key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value.model_dump() if isinstance(value, BaseModel) else value


def _flat(settings: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{above}{name}.") if isinstance(value, dict) else {above + name: value}
    return flat


def _by_stage(spend: Iterable[Spend]) -> dict[tuple[str, str], Spend]:
    """By stage and model; what was paid in another currency than the dollar stands apart."""
    return {(one.stage, " ".join([one.model, *one.usd.split()[1:]])): one for one in spend}


def _findings(release: Release) -> dict[str, list[str]]:
    findings: dict[str, list[str]] = {}
    for finding in release.findings:
        allowed = " (allowed)" if finding.check in release.allowed else ""
        findings.setdefault(finding.check, []).append(finding.what + allowed)
    return findings


_Section = tuple[str, list[str], list[tuple[Any, ...]]]  # title, head, rows


def markdown(changes: Changes) -> str:
    """A section of a changelog."""
    return render("changelog", name=changes.b, before=changes.a, sections=list(sections_of(changes)))


def sections_of(changes: Changes) -> Iterator[_Section]:
    """What differs, in parts of a title, the heads of columns, and rows."""
    rows = [one for one in changes.rows if not one.empty]
    if rows:
        head = ["set", "split", "before", "added", "removed", "changed", "after"]
        yield (
            "Rows",
            head,
            [(r.config, r.split, r.kept + r.removed, r.added, r.removed, r.changed, r.kept + r.added) for r in rows],
        )
    yield from _pairs("Columns", "column", changes.columns, str)
    yield from _pairs("Sources", "source", changes.sources, _source)
    yield from _pairs("Topics", "topic", changes.topics, str)
    yield from _pairs("Characters a text (mean, median, 95 %)", "set, part", changes.lengths, str)
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


def _spent(pair: Pair) -> tuple[int, str]:
    """Calls and money since the earlier release; negative where the ledger was begun again."""
    calls = [0 if spend is None else spend.calls for spend in pair]
    amounts = ["0" if spend is None else spend.usd for spend in pair]
    currency = amounts[1].partition(" ")[2] or amounts[0].partition(" ")[2]
    before, after = (Decimal(amount.partition(" ")[0]) for amount in amounts)
    return calls[1] - calls[0], f"{after - before:f} {currency}".strip()
