"""The figures of the report: what came and what became of it, what models and people said, and what it cost."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from crawlers.dates import SHANGHAI
from pipelines.core.home import Home
from pipelines.errors import NoVersion
from pipelines.flow.clients import PAID
from pipelines.flow.stages import MAKERS
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.questions import NOT_ASKED_YET
from pipelines.operations.paper_tables import paper_tables
from pipelines.operations.report.section import Reasons, Section, Table
from pipelines.release.changes import changes, sections_of
from pipelines.release.checks.released import CONFIGS
from pipelines.release.publish.making import flow
from pipelines.store.reconciliation import count
from pipelines.store.release_manifest import Release
from pipelines.store.releases import Releases
from pipelines.store.store import Store
from schemas.labels import SPLITS
from schemas.table import LlmMade
from schemas.tables import AFTER_RELEASE, TABLES

# Rows that a table was never meant to have, or that wait for a model or for people: none is lost.
NOT_NEEDED = frozenset({
    *("not_train", "not_sampled", "no_human_answer", "no_answer", "topic_given", "not_labelled", "not_written"),
    *("no_emotion",),
    NOT_ASKED_YET,
})  # fmt: skip
_FLOW = ("source", "of what", "came", "cleaned", "unique", "in the release")
_BY_PEOPLE = {"cer_votes": "cer", "coe_reviews": "coe", "rankings": "rank"}
# What a model says of rows, of which the papers give shares: the column, by its table.
_SAID = {"emotions": ("emotion",), "cer_candidates": ("stage", "sentiment", "strategy")}


def of_release(made: Release) -> Section:
    """Its sets, sources and findings."""
    rows = [(config, *(made.rows(config, split) for split in SPLITS)) for config in made.configs]
    sources = [(one.name, one.rows, one.licence or "none", one.consent, one.collected) for one in made.sources]
    tables = [
        Table("", ("release", "content", "made"), [(made.name, made.content, f"{made.made_at:%Y-%m-%d %H:%M}")]),
        Table("", ("set", *SPLITS), rows),
        Table("", ("source", "rows", "licence", "consent", "collected"), sources),
        Table("", ("check", "", "found", "what"), [(f.check, f.severity, f.count, f.what) for f in made.findings]),
    ]
    return Section("release", tables=tables)


def since(home: Path, before: str, name: str) -> Section:
    """What changed between two releases."""
    tables = [Table(title, head, rows) for title, head, rows in sections_of(changes(home, before, name))]
    return Section("changes", f"gongqing diff {before} {name}", tables)


def funnel(home: Path, made: Release | None) -> Section:
    """Of each source how many came, and stand behind a release; of each table, source and unit how many were kept,
    dropped, and not needed.
    """
    store = Store(Home(home).data)
    through = list(flow(store, made, Releases(home).folder(made.name))) if made else []
    lines: list[tuple[Any, ...]] = []
    for table in TABLES:
        stage = MAKERS.get(table)
        units = tuple(stage.units.get(table, ())) if stage else ("record",)
        key = _key_of(table)  # none of figures about rules and judges
        if units and key and table not in AFTER_RELEASE and store.current(table):
            lines += _of_table(store, table, key, units)
    columns = ("table", "source", "of what", "kept", "dropped", "not needed, or not yet", "reasons")
    return Section("funnel", "gongqing tables", [Table("", _FLOW, through), Table("", columns, lines)])


def _of_table(store: Store, table: str, key: str, units: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    kept, lost = Counter[tuple[str, str]](), dict[tuple[str, str], Counter[str]]()
    for version in store.current(table):
        where = (table, version.version, version.partition)
        rows = store.read(*where).select(pl.exclude("reasoning", "prompt")).collect()
        source = pl.col(key).str.extract(r"^([^:]+)")
        for (name,), part in rows.with_columns(_source=source).partition_by("_source", as_dict=True).items():
            kept.update({(unit, str(name)): count(part, unit) for unit in units})
        source = pl.col("row_id").str.extract(r"^([^:]+)")
        for name, unit, reason, n in (
            store.read_dropped(*where).group_by(source, "unit", "reason").len().collect().rows()
        ):
            lost.setdefault((unit, name), Counter())[reason] += n
    for unit, name in sorted({*kept, *lost}, key=lambda one: (units.index(one[0]) if one[0] in units else 99, one)):
        reasons = lost.get((unit, name), Counter())
        needless = sum(n for reason, n in reasons.items() if reason in NOT_NEEDED)
        there = kept[unit, name] if unit in units else None  # of what a table holds only a part of
        yield table, name, unit, there, reasons.total() - needless, needless, Reasons(reasons.most_common())


def _key_of(table: str) -> str | None:
    """The column by which rows say where they are from."""
    keys = ("post_id", "dialogue_id", "source_dialogue_id", "made_from", "row_id", "item_id", "persona_id")
    return next((name for name in keys if name in TABLES[table].columns()), None)


def sets(store: Store) -> Section:
    """Rows of each set that something trains on, by rewriting, by who wrote or judged them, and by split."""
    lines: list[tuple[Any, ...]] = []
    for config in filter(store.current, CONFIGS):
        rows = store.read(config)
        named = "providers" in TABLES[config].columns()  # a prompt's texts are of their sources
        made_by = pl.col("providers").list.sort().list.join(", ") if named else pl.lit(None, pl.String)
        counts = (pl.col("split").eq(split).sum().alias(split) for split in SPLITS)
        counted = rows.group_by("variant", made_by=made_by).agg(*counts).sort("variant", "made_by")
        lines += [(config, *row) for row in counted.collect().iter_rows()]
    return Section("sets", tables=[Table("", ("set", "rewriting", "written or judged by", *SPLITS), lines)])


def days(store: Store) -> Section:
    """Posts by month of posting, in Shanghai."""
    if not store.current("unique_posts"):
        return Section("days")
    there = pl.col("posted_at").dt.convert_time_zone(SHANGHAI.key)
    months = store.read("unique_posts").group_by(month=there.dt.strftime("%Y-%m")).len().sort("month")
    rows = [(month or "unknown", n) for month, n in months.collect().iter_rows()]
    return Section("days", tables=[Table("", ("month", "posts"), rows)])


def personal(store: Store) -> Section:
    """Placeholders by kind, rows with signs of risk or of somebody under 18, and how right rules were found to be."""
    tables = []
    for table in ("clean_posts", "clean_dialogues"):
        if store.current(table):
            rows = store.read(table).select("pii", "risk", "under_18").collect()
            kinds = rows["pii"].explode().struct.unnest().drop_nulls() if len(rows) else pl.DataFrame()
            counts = sorted(kinds.group_by("kind").agg(pl.col("count").sum()).iter_rows()) if len(kinds) else []
            signs = Counter(sign["kind"] for signs in rows["risk"] for sign in {s["kind"]: s for s in signs}.values())
            lines = [*counts, *((f"rows with signs of {kind}", n) for kind, n in sorted(signs.items()))]
            lines.append(("rows of somebody under 18", int(rows["under_18"].sum())))
            tables.append(Table(table, ("what", "how many"), lines))
    if store.current("calibrations"):
        measures = (f"{name}{bound}" for name in ("precision", "recall") for bound in ("", "_low", "_high"))
        columns = ("stage", "kind", "gold", "posts", *measures)
        tables.append(Table("calibrations", columns, store.read("calibrations").select(columns).collect().rows()))
    return Section("personal", "gongqing show calibrations", tables)


def papers(store: Store, made: Release | None) -> Section:
    """The papers' tables over the rows that a release pins, else over ours, of those that there are; and what models
    say of them.
    """
    tables = []
    with suppress(NoVersion):
        ours = paper_tables(store, pins=made.pins if made else None)
        for one in ours.values():
            cells = [
                [f"{cell} (impossible)" if (r, c) in one.impossible else cell for c, cell in enumerate(row)]
                for r, row in enumerate(one.rows)
            ]
            tables.append(Table(one.title, one.columns, cells))
    for table, columns in _SAID.items():
        version = made.pins.get(table) if made else None
        if version or (made is None and store.current(table)):
            rows = store.read(table, version).select(columns).collect()
            for column in columns:
                shares = [(value, n, f"{n / len(rows):.1%}") for value, n in _counted(rows[column])]
                tables.append(Table(f"{table}: {column}", (column, "rows", "share"), shares))
    return Section("papers", "gongqing stats", tables)


def _counted(values: pl.Series) -> list[tuple[Any, int]]:
    return sorted(Counter(values.to_list()).items(), key=lambda one: (-one[1], str(one[0])))


def models(home: Path) -> Section:
    """What models were asked for each stage, how many of the answers were repairs, how many rows rest on them, what it
    cost, and what a thousand rows cost; and who made the rows, by which prompt.
    """
    made_by = list(_made_by(Store(Home(home).data)))
    resting = Counter[tuple[str, str]]()
    for table, provider, model, _, n in made_by:
        if provider in PAID:
            resting[MAKERS[table].name, model] += n
    asked: dict[tuple[str, str, str], list[Any]] = {}
    if Home(home).ledger.exists():
        with Ledger(Home(home).ledger) as ledger:
            for one in ledger.spend():
                of_model = asked.setdefault((one.stage, one.model_asked, one.currency), [0, 0, 0, Decimal(0)])
                for place, value in enumerate((one.calls, one.repairs, one.failed, one.cost)):
                    of_model[place] += value
    rows: list[tuple[Any, ...]] = []
    for (stage, model, unit), (calls, repairs, failed, cost) in sorted(asked.items()):
        n = resting[stage, model]
        a_thousand = f"{1000 * cost / n:.2f} {unit}" if n else ""
        rows.append((stage, model, calls, repairs, n, failed, f"{cost} {unit}", a_thousand))
    columns = ("stage", "model", "answers", "repairs", "rows", "failed", "cost", "a thousand rows")
    paid = Table("", columns, rows or [("nothing was asked for money", "", 0, 0, 0, 0, "0", "")])
    return Section("models", "gongqing ledger", [paid, Table("", _MADE_BY, made_by)])


_MADE_BY = ("table", "provider", "model", "prompt", "rows")


def _made_by(store: Store) -> Iterator[tuple[Any, ...]]:
    """Who made the rows of each table that models make, and by which prompt."""
    for table, schema in TABLES.items():
        if issubclass(schema, LlmMade) and store.current(table):
            who = ("provider", "model_asked", "prompt_version")
            counted = store.read(table).group_by(who).len().sort(who).collect()
            yield from ((table, *row) for row in counted.iter_rows())


def people(store: Store) -> Section:
    """Who labelled how much, by pseudonym, and how far they agree."""
    tables = []
    labelled: list[tuple[Any, ...]] = []
    for table, kind in _BY_PEOPLE.items():
        if store.current(table):
            counts = store.read(table).group_by("annotator", "role").len().sort("annotator", "role").collect()
            labelled += [(kind, *row) for row in counts.iter_rows()]
    tables.append(Table("", ("kind", "annotator", "role", "labels"), labelled))
    if store.current("agreements"):
        columns = ("kind", "question", "measure", "value", "low", "high", "n_items", "n_raters")
        rows = store.read("agreements").filter(annotator="all").select(columns).collect().rows()
        tables.append(Table("", columns, rows))
    return Section("people", "gongqing review agreement cer", tables)
