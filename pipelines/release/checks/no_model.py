"""Rows that no model made (`not_from_a_model`), and prompts that none judged (`unjudged`)."""

from collections.abc import Collection, Iterator

import polars as pl

from pipelines.release.checks.released import Released, finding, origin
from pipelines.store.release_manifest import Finding
from schemas.table import NO_MODEL
from schemas.tables import PARTITIONED, TABLES

NOT_FROM_A_MODEL = "not_from_a_model"
UNJUDGED = "unjudged"

# What leads from a row that has a provider to the post or dialogue that it speaks of.
_LEADS = ("source_dialogue_id", "post_id", "dialogue_id", "row_id")
_PERSONAS = ("persona_id", "supporter_persona_id")
_REWRITINGS = frozenset(name for name, table in TABLES.items() if "source_dialogue_id" in table.column_names())


def not_from_a_model(released: Released) -> Iterator[Finding]:
    """Rows whose provider, or the provider of what they were made from, is no model (DESIGN §2.5).

    Written replies of the samples, a filter by form alone, the rules of older versions. A row counts where it says so
    itself, as a triplet does whose negative they judged, and where a table before its own, however far, holds such a
    row on the same post or dialogue; a rewriting, also where the profile of a persona that it was written to is theirs.
    A row that is no rewriting rests on no table that leads to its set through rewritings alone.
    """
    known = set(released.sources["origin"])
    profiles = _origins(released.table("disc_profiles"), known)
    pinned = {version.table for version in released.pins.values()}
    with_provider = [name for name in TABLES if name in pinned and "provider" in TABLES[name].column_names()]
    of_no_model = {table: _origins(released.table(table), known, profiles) for table in with_provider}
    ids: dict[str, set[str]] = {}
    tables: set[str] = set()
    for config, held in released.configs.items():
        rewritten = held.filter(pl.col("variant").fill_null("none") != "none")["row_id"].implode()
        as_written = ~pl.col("row_id").is_in(rewritten)
        own = set(_own(held))
        found = set(own)
        for rows, above in (
            (released.rows.filter(as_written, config=config), ancestors(released, config, without=_REWRITINGS)),
            (released.rows.filter(~as_written, config=config), ancestors(released, config)),
        ):
            before = {table: origins for table, origins in of_no_model.items() if table in above}
            inherited = rows.filter(pl.col("origin").is_in(list(set().union(*before.values()))))
            found |= set(inherited["row_id"])
            tables |= {table for table, origins in before.items() if not origins.isdisjoint(inherited["origin"])}
        if found:
            ids[config] = found
            tables |= {config} if own else set()
    if ids:
        counts = ", ".join(f"{config} {len(rows):,}" for config, rows in ids.items())
        what = f"rows rest on what no model made or judged ({', '.join(sorted(tables))}): {counts}"
        hint = (
            "have a model make them (gongqing refresh --provider openai --budget USD), or release them marked "
            "as such (--allow not_from_a_model)"
        )
        yield finding(NOT_FROM_A_MODEL, what, hint, [row_id for rows in ids.values() for row_id in rows])


def unjudged(released: Released) -> Iterator[Finding]:
    """Prompts of posts that the rules doubted, and that no model has judged (`--strict` refuses them)."""
    ids = [
        row_id
        for rows in released.configs.values()
        if "extra_info" in rows.columns
        for row_id in rows.filter(pl.col("extra_info").struct.field("unjudged"))["row_id"]
    ]
    if ids:
        what = f"{len(ids):,} prompts are of posts that may not ask for help: no model has judged them"
        hint = "gongqing refresh --select topics --provider openai --budget USD"
        yield finding(UNJUDGED, what, hint, ids, severity="warn")


def ancestors(released: Released, table: str, *, without: frozenset[str] = frozenset()) -> set[str]:
    """The tables that the pinned version of a table was made from, however far back; not the table itself, and none
    that leads to it through those of `without` alone.
    """
    above: set[str] = set()
    waiting = {table}
    while waiting:
        versions = [version for version in released.pins.values() if version.table in waiting]
        parents = {name.partition("/")[0] for version in versions for name in version.manifest.runs[-1].parents}
        waiting = parents - above - PARTITIONED - without
        above |= waiting
    return above


def _own(rows: pl.DataFrame) -> pl.Series:
    """The ids of the rows that name no model among their providers."""
    if "providers" not in rows.columns:
        return pl.Series(dtype=pl.String)
    return rows.filter(pl.col("providers").list.eval(pl.element().is_in(NO_MODEL)).list.any())["row_id"]


def _origins(rows: pl.DataFrame, known: set[str], profiles: Collection[str] = ()) -> set[str]:
    """The posts and dialogues that rows of no model speak of, or that were rewritten to a persona out of `profiles`."""
    lead = next(name for name in _LEADS if name in rows.columns)
    origins = set()
    for row in rows.select(lead, "provider", *(name for name in _PERSONAS if name in rows.columns)).iter_rows():
        row_id, provider, *personas = row
        of_personas = (origin(one, known) for one in personas if one is not None)
        if provider in NO_MODEL or any(one in profiles for one in of_personas):
            origins.add(origin(row_id, known))
    return {one for one in origins if one is not None}
