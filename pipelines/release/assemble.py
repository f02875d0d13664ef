"""A release from the tables of a home as they stand: pinned, checked, written."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, get_args

import polars as pl

from pipelines.core.code_version import code_version
from pipelines.core.home import Home
from pipelines.errors import ReleaseRefused, UnknownName
from pipelines.judge.turns import system_prompt
from pipelines.llm.ledger.ledger import Ledger
from pipelines.release.checks.calibrated import (
    agreement,
    calibrations,
    demanded_judges,
    earlier_calibrations,
    floors,
    judges,
)
from pipelines.release.checks.leaks import LEAKS, descendants, groups, near_duplicates, shared_passages, text_reuse
from pipelines.release.checks.people import erased, k_anonymity, minors, personal_data, risks
from pipelines.release.checks.released import Leak, Released, empty, pinned
from pipelines.release.checks.sources import (
    NOT_FROM_A_MODEL,
    UNJUDGED,
    licences,
    media,
    not_from_a_model,
    sources,
    unjudged,
)
from pipelines.release.publish.public import read_names
from pipelines.release.readings import Readings
from pipelines.settings import Settings
from pipelines.store.parquet import write_shards
from pipelines.store.release_manifest import Finding, LeftOut, Release, Spend
from pipelines.store.releases import Releases, name_is_taken, require_name
from pipelines.store.store import Store, Version
from pipelines.trainsets.prompt_sets import cer_system_prompt, coe_system_prompt
from schemas.ids import digest
from schemas.reasoning import Lang
from schemas.tables import TABLES

Check = Callable[[Released], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    *(near_duplicates, text_reuse, shared_passages, descendants, groups),
    *(personal_data, not_from_a_model, unjudged, risks, minors, licences, erased),
    *(floors, demanded_judges, earlier_calibrations, k_anonymity, media, empty),
)

# What may be allowed by its name: it harms nobody, and the release is marked. The rest has to be mended.
ALLOWABLE = (NOT_FROM_A_MODEL,)
# What refuses under `--strict` alone: else a warning, or mended by leaving rows out.
STRICT = (UNJUDGED, *LEAKS)
# So many posts and dialogues may be left out of any release, however small: ours.
FEW = 5


def findings(released: Released, *, strict: bool = False) -> list[Finding]:
    """What all checks find: those that refuse first, each kind in the order of the checks."""
    listed = [finding for check in CHECKS for finding in check(released)]
    refused = {"severity": "refuse"}
    if strict:
        listed = [one.model_copy(update=refused) if one.check in STRICT else one for one in listed]
    return sorted(listed, key=lambda finding: finding.severity != "refuse")


# Of the settings these say where something lies on this machine, or who runs it.
_PRIVATE: dict[str, Any] = {"crawl": {"contact"}, "llm": {"profiles", "recordings"}, "storage": True}
_PATHS = (("prompts", "tokenizer"), ("rewrite", "encoder"), ("cleaning", "ner"))


def assemble(
    home: Path,
    name: str,
    *,
    allow: Collection[str] = (),
    strict: bool = False,
    settings: Settings,
    stale: Sequence[Finding] = (),
) -> Release:
    """Make the release `name` of the current version of every table, and make it the current one.

    A release that is there already never changes: where the same versions are current it is returned as it is. `allow`:
    checks out of ALLOWABLE whose findings are allowed. `strict`: findings of the checks in STRICT refuse; else rows by
    which two splits tell the same are left out, with all that was made from them. `stale`:
    findings of `pipelines.operations.release`.

    Raises ReleaseRefused where the checks found something to mend (nothing was written); RequestError for a name that
    cannot be one, or that another release has; UnknownName for what nobody may allow.
    """
    require_request(name, allow)
    releases = Releases(home)
    store = Store(Home(home).data)
    pins, damaged = pinned(store)
    if damaged:
        raise ReleaseRefused(name, [*damaged, *stale])
    if name not in releases:
        made = _made(releases, Released(home, store, pins, settings), name, allow, strict, stale)
        return releases.promote(made.name)
    there = releases.read(name)
    if there.pins != _versions(pins) or (strict and there.left_out):
        raise name_is_taken(name)
    current = releases.current()
    # The process that made it may have been killed before it became the current one.
    return releases.promote(name) if current is None or current.made_at < there.made_at else there


def require_request(name: str, allow: Collection[str]) -> None:
    """Raises RequestError for what cannot name a release, UnknownName for a check that nobody may allow."""
    require_name(name)
    for check in sorted(set(allow) - set(ALLOWABLE)):
        raise UnknownName("check that may be allowed", check, ALLOWABLE)


def _made(
    releases: Releases, released: Released, name: str, allow: Collection[str], strict: bool, stale: Sequence[Finding]
) -> Release:
    released, listed, gone = _checked(released, name, allow, strict, stale)
    refused = {finding.check for finding in listed if finding.severity == "refuse"}
    with releases.staging() as folder:
        release = Release(
            name=name,
            made_at=dt.datetime.now(dt.UTC),
            code=code_version(__name__),
            pins=_versions(released.pins),
            configs={
                config: write_shards(folder, config, TABLES[config], rows) for config, rows in released.configs.items()
            },
            settings=_settings(released.settings),
            prompts=used_prompts(released),
            spend=_spend(Home(released.home).ledger),
            sources=sources(released),
            findings=listed,
            allowed=sorted(refused),
            left_out=gone,
            calibrations=calibrations(released),
            agreement=agreement(released),
            judges=judges(released),
        )
        readings = Readings(released.home)
        read_names(release, folder, readings)
        readings.save()
        return releases.publish(folder, release)


def _checked(
    whole: Released, name: str, allow: Collection[str], strict: bool, stale: Sequence[Finding]
) -> tuple[Released, list[Finding], list[LeftOut]]:
    """What passes all checks, what they found, and the rows that are left out for it.

    Raises ReleaseRefused where something refuses, or where too much would have to be left out.
    """
    released, mended, gone, origins = whole, list[Finding](), list[LeftOut](), set[str]()
    listed = [*stale, *findings(whole, strict=strict)]
    while True:
        if any(one.severity == "refuse" and one.check not in allow for one in listed):
            raise ReleaseRefused(name, [one for one in (*listed, *mended) if one.check not in allow])
        leaks = [one for one in listed if isinstance(one, Leak)]
        if not leaks:
            return released, [*mended, *listed], gone
        for leak in leaks:
            left = released.without(leak.origins)
            rows = left_out(released, left, leak.check)
            mended.append(_mended(leak, sum(one.count for one in rows), len(set(leak.origins) - origins)))
            released, gone, origins = left, [*gone, *rows], origins.union(leak.origins)
        require_few(name, whole, origins, mended)
        listed = findings(released)


def _mended(leak: Leak, rows: int, origins: int) -> Finding:
    """The finding of a leak once so many rows, of so many more posts and dialogues, are left out for it."""
    return Finding(
        check=leak.check,
        severity=leak.severity,
        count=leak.count,
        what=f"{leak.what}: {rows:,} rows are left out (posts or dialogues: {origins:,})",
        hint="nothing to do: manifest.json names the rows; --strict refuses",
        examples=leak.examples,
    )


def left_out(whole: Released, left: Released, check: str) -> list[LeftOut]:
    """The rows of each config that `whole` has and `left` has not."""
    ids = {config: set(rows["row_id"]) for config, rows in whole.configs.items()}
    kept = {config: set(rows["row_id"]) for config, rows in left.configs.items()}
    gone = {config: sorted(rows - kept.get(config, set())) for config, rows in ids.items()}
    return [LeftOut(config=config, check=check, count=len(rows), row_ids=rows) for config, rows in gone.items() if rows]


def require_few(name: str, whole: Released, origins: Collection[str], mended: Sequence[Finding]) -> None:
    """Raises ReleaseRefused where more posts and dialogues would be left out than the settings allow, and than FEW."""
    share, total = whole.settings.release.left_out, whole.rows["origin"].n_unique()
    if len(origins) > max(FEW, share * total):
        hint = (
            f"these are {len(origins):,} of {total:,} posts and dialogues, more than the setting release.left_out "
            f"({share}): was an older version promoted (gongqing refresh), or a set made from another?"
        )
        raise ReleaseRefused(name, [one.model_copy(update={"severity": "refuse", "hint": hint}) for one in mended])


def _versions(pins: Mapping[str, Version]) -> dict[str, str]:
    return {name: version.version for name, version in sorted(pins.items())}


def _settings(settings: Settings) -> dict[str, Any]:
    """The settings, without those about the machine or its user; of paths their last part."""
    public: dict[str, Any] = settings.model_dump(mode="json", exclude=_PRIVATE)
    for section, key in _PATHS:
        if public[section][key] is not None:
            public[section][key] = Path(public[section][key]).name
    return public


def _spend(path: Path) -> list[Spend]:
    """What every stage has asked of every model so far; amounts in another currency than the dollar name it."""
    if not path.exists():
        return []
    calls: Counter[tuple[str, str, str]] = Counter()
    cost: defaultdict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
    with Ledger(path) as ledger:
        for day in ledger.spend():
            key = (day.stage, day.model_asked, day.currency)
            calls[key] += day.calls
            cost[key] += day.cost
    return [
        Spend(stage=key[0], model=key[1], calls=count, usd=f"{cost[key]:f} {key[2]}".removesuffix(" USD"))
        for key, count in sorted(calls.items())
    ]


_NO_PROMPT = "none"  # of a row that is as it was written: nothing was asked
_JUDGES = ("rm_process", "rm_outcome", "rm_unified")


def used_prompts(released: Released) -> dict[str, str]:
    """Every prompt by which something was made, or is taught: id → `id@version`, several versions side by side."""
    used: set[str] = set()
    for table in {version.table for version in released.pins.values()}:
        columns = TABLES[table].column_names()
        if "prompt_version" in columns:
            used |= set(released.table(table)["prompt_version"])
        elif "extra_info" in columns:
            used |= set(released.table(table)["extra_info"].struct.field("prompt_version"))
        elif "messages" in columns:
            # A chat holds the text alone, and a version follows its text.
            messages = released.table(table)["messages"].explode(empty_as_null=False).struct.unnest()
            texts = messages.filter(pl.col("role") == "system")["content"].unique()
            used |= {_names().get(text, f"{table}@{digest(text, 8)}") for text in texts}
    versions: dict[str, list[str]] = {}
    for name in sorted(used - {_NO_PROMPT}):
        versions.setdefault(name.partition("@")[0], []).append(name)
    return {prompt: ", ".join(names) for prompt, names in versions.items()}


@cache
def _names() -> dict[str, str]:
    langs: tuple[Lang, ...] = get_args(Lang)
    judges = [system_prompt(judge, lang) for judge in _JUDGES for lang in langs]
    return {prompt.text: prompt.name for prompt in (coe_system_prompt(), *map(cer_system_prompt, langs), *judges)}
