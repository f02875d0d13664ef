"""Where released rows come from: under what licence and consent, what was lost with clips, which rows rest on what no
model made (`not_from_a_model`), and which prompts none judged (`unjudged`).
"""

import re
from collections.abc import Collection, Iterator

import polars as pl

from pipelines.release.checks.released import Released, finding, origin
from pipelines.store.release_manifest import MEDIA, Finding, Source
from pipelines.text.keys import key_of
from schemas.ids import round_id
from schemas.table import NO_MODEL
from schemas.tables import PARTITIONED, TABLES

# The consent of a source is the first of these that any of its rows has: one that nobody asked is not outweighed.
_WEAKEST_FIRST = ("not_asked", "agreement", "public_licence", "given", "synthetic", "invented")
_WITHHELD = ("not_asked", "agreement")
# What stands where a licence should, and is none, without the word for a licence and without marks; a file whose reader
# knows of no licence says "find out before use".
_NONE = (
    *("", "x", "no", "none", "null", "nil", "nan", "na", "unknown", "missing", "empty", "other", "todo", "tbd", "tba"),
    *("notstated", "nonestated", "notgiven", "notspecified", "unspecified", "notknown", "notavailable", "notfound"),
    *("unlicensed", "undefined", "noassertion", "unclear", "findout"),
    *("无", "没有", "未知", "不明", "不详", "不清楚", "未注明", "未说明", "未声明", "待定", "待查", "待补"),
)
_LICENCE = re.compile(r"licen[cs]e|许可证|许可协议|许可|协议|授权|[\W_]+")
_FIND_OUT = "find out before use"


def sources(released: Released) -> list[Source]:
    """The sources of the released rows, by name."""
    rows = released.rows.join(released.sources, on="origin", how="inner")
    imported = _imported(released)
    listed = []
    for (name,), part in rows.sort("source").group_by("source", maintain_order=True):
        consents, licences = set(part["consent"]), sorted(set(part["licence"]))
        listed.append(
            Source(
                name=str(name),
                licence="" if any(map(_is_none, licences)) else "; ".join(licences),
                consent=next(one for one in _WEAKEST_FIRST if one in consents),
                lineage=list(dict.fromkeys(part["lineage"].explode().drop_nulls())),
                rows=part.height,
                collected=imported.get(str(name)) or _days(part["fetched_at"]),
            )
        )
    return listed


def licences(released: Released) -> Iterator[Finding]:
    """Sources without a licence; and, as a warning, those whose writers did not consent to be published."""
    known = sources(released)
    bare = [one for one in known if not one.licence]
    if bare:
        what = f"no licence is known of {', '.join(one.name for one in bare)}"
        hint = "find out its licence, and import it with a mapping file that names it (docs/mapping.md)"
        yield finding("licence", what, hint, [one.name for one in bare])
    withheld = [one for one in known if one.consent in _WITHHELD]
    if withheld:
        named = ", ".join(f"{one.name} ({one.consent})" for one in withheld)
        what = f"rows of writers who did not consent to be published: {named}"
        hint = "nothing to do: an export holds ids, labels and annotations of these alone, no text"
        count, names = sum(one.rows for one in withheld), [one.name for one in withheld]
        yield finding("consent", what, hint, names, severity="warn", count=count)


def _is_none(licence: str) -> bool:
    text = key_of(licence, "form")
    return _LICENCE.sub("", text) in _NONE or _FIND_OUT in text


def _imported(released: Released) -> dict[str, str]:
    """The days (UTC) on which each set was imported; no name of a file: it may be somebody's."""
    days: dict[str, set[str]] = {}
    for one in released.pins.values():
        run = one.manifest.runs[-1]
        if one.partition is not None and "file" in run.note:
            days.setdefault(one.partition, set()).add(f"{run.at:%Y-%m-%d}")
    return {source: f"imported {', '.join(sorted(dates))}" for source, dates in days.items()}


def _days(fetched: pl.Series) -> str:
    """The first and the last day (UTC) of a crawl; empty where nobody knows."""
    days = sorted({str(day)[:10] for day in (fetched.min(), fetched.max()) if day is not None})
    return f"crawled {' – '.join(days)}" if days else ""


def media(released: Released) -> Iterator[Finding]:
    """The sampled rounds with clips, out of all of them: those that are left out, and those whose text stands alone."""
    rounds = released.table("sampled_turns")
    drop = released.settings.prompts.media == "drop"
    lacking = pl.col("needs_media") | (pl.col("has_media") & drop)
    parts, ids = [], []
    for which, what in (
        (lacking, "lacked media, and are left out"),
        (pl.col("has_media") & ~lacking, "are read by their text, without their clips"),
    ):
        found = rounds.filter(which).select("dialogue_id", "round")
        if found.height:
            parts.append(f"{found.height:,} of {rounds.height:,} rounds ({found.height / rounds.height:.1%}) {what}")
            ids += [round_id(*row) for row in found.iter_rows()]
    if ids:
        hint = "nothing is lost but these: clips are not read here"
        yield finding(MEDIA, f"text only: {'; '.join(parts)}", hint, ids, severity="warn")


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
