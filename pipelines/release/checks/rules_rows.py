"""Rows that no model made: rules, or people for the samples; nothing to train on unless somebody says so."""

from collections.abc import Collection, Iterable, Iterator

import polars as pl

from pipelines.release.checks.released import Released, origin, some
from pipelines.store.release_manifest import Finding
from schemas.table import NO_MODEL
from schemas.tables import PARTITIONED, TABLES

RULES_ROWS = "rules_rows"

# What leads from a row that has a provider to the post or dialogue that it speaks of.
_LEADS = ("source_dialogue_id", "post_id", "dialogue_id", "row_id")
_PERSONAS = ("persona_id", "supporter_persona_id")


def rules_rows(released: Released) -> Iterator[Finding]:
    """Rows whose provider, or the provider of what they were made from, is no model (DESIGN §2.5).

    A row counts where it says so itself, as a triplet does whose negative rules judged, and where a table before its
    own, however far, holds a row of `rules` on the same post or dialogue; a rewriting, also where the profile of a
    persona that it was written to is of `rules`.
    """
    known = set(released.sources["origin"])
    profiles = _origins(released.table("disc_profiles"), known)
    by_rules = {table: _origins(released.table(table), known, profiles) for table in _answered(released)}
    found: dict[str, set[str]] = {}
    tables: set[str] = set()
    for config in released.configs:
        before = {table: origins for table, origins in by_rules.items() if table in ancestors(released, config)}
        of_rules = set().union(*before.values())
        rows = released.rows.filter(config=config)
        of_one = rows.filter(pl.col("origin").is_in(list(of_rules)))
        own = rows.filter(pl.col("row_id").is_in(_own(released.configs[config]).implode()))
        if of_one.height or own.height:
            found[config] = {*of_one["row_id"], *own["row_id"]}
            tables |= {table for table, origins in before.items() if not origins.isdisjoint(of_one["origin"])}
            tables |= {config} if own.height else set()
    if found:
        told = ", ".join(f"{config} {len(ids):,}" for config, ids in found.items())
        yield Finding(
            check=RULES_ROWS,
            severity="refuse",
            count=sum(map(len, found.values())),
            what=f"rows rest on what no model made, but rules or people for the samples ({', '.join(sorted(tables))}): "
            + told,
            remedy="have a model make them (gongqing refresh --provider openai --budget USD), or release them marked "
            "as such (--allow rules_rows)",
            examples=some([row_id for ids in found.values() for row_id in ids]),
        )


def ancestors(released: Released, table: str) -> set[str]:
    """The tables that the pinned version of a table was made from, however far back; not the table itself."""
    found: set[str] = set()
    waiting = [table]
    while waiting:
        for version in (one for one in released.pins.values() if one.table == waiting[-1]):
            parents = {parent.partition("/")[0] for parent in version.manifest.runs[-1].parents}
            new = parents - found - PARTITIONED
            found |= new
            waiting[:0] = sorted(new)
        waiting.pop()
    return found


def _own(rows: pl.DataFrame) -> pl.Series:
    """The ids of the rows that name `rules` among their providers."""
    if "providers" not in rows.columns:
        return pl.Series(dtype=pl.String)
    return rows.filter(pl.col("providers").list.eval(pl.element().is_in(NO_MODEL)).list.any())["row_id"]


def _answered(released: Released) -> Iterable[str]:
    """The pinned tables whose rows say who answered."""
    pinned = {version.table for version in released.pins.values()}
    return (table for table in TABLES if table in pinned and "provider" in TABLES[table].column_names())


def _origins(rows: pl.DataFrame, known: set[str], profiles: Collection[str] = ()) -> set[str]:
    """The posts and dialogues that rows of `rules` speak of, or that were rewritten to a persona out of `profiles`."""
    lead = next(name for name in _LEADS if name in rows.columns)
    found = set()
    for row in rows.select(lead, "provider", *(name for name in _PERSONAS if name in rows.columns)).iter_rows():
        row_id, provider, *personas = row
        drawn = (origin(one, known) for one in personas if one is not None)
        if provider in NO_MODEL or any(one in profiles for one in drawn):
            found.add(origin(row_id, known))
    return {one for one in found if one is not None}
