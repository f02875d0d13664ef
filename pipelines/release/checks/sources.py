"""Where released rows come from, under what licence and consent, and what was lost with clips."""

import re
from collections.abc import Iterator

import polars as pl

from pipelines.release.checks.released import Released, finding
from pipelines.store.release_manifest import MEDIA, Finding, Source
from pipelines.text.keys import key_of
from schemas.ids import round_id

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
    days = sorted({str(day) for day in (fetched.min(), fetched.max()) if day is not None})
    return f"crawled {' – '.join(day[:10] for day in days)}" if days else ""


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
