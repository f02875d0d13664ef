"""The card of a published release: `README.md`, made of the schemas and of the manifest.

The front matter is what the Hub and `datasets` read (`spec/llm.md` §E); the rest is for people.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dataframely as dy
import pyarrow.parquet as pq

from pipelines.release.markdown import render
from pipelines.release.publish.citation import arxiv_ids, bibtex
from pipelines.release.publish.client import set_environment
from pipelines.release.publish.making import Kept, Making, models
from pipelines.release.publish.measures import LENGTHS, TOPICS, Measures
from pipelines.release.publish.private import PUBLISHABLE
from pipelines.release.publish.public import WITHHELD, WITHHELD_MEANS
from pipelines.release.publish.samples import samples
from pipelines.release.publish.words import word, words
from pipelines.settings import ROOT
from pipelines.store.release_manifest import MEDIA, Agreed, Calibration, Judge, Release, Source, text_only
from schemas.labels import CALIBRATED, OMEGA, SPLITS
from schemas.reasoning import Lang
from schemas.tables import TABLES

LICENCES = "LICENSE.md"  # the Hub links to a file of this name, and to no other

_CRISIS = ROOT / "docs" / "crisis.md"
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
# Names that the Hub knows, in the spelling of its cards.
_MEASURES = {"raw": "equal", "alpha": "α", "kappa": "κ (Cohen)", "fleiss": "κ (Fleiss)", "ac1": "AC1"}
_LICENCES = (
    *("cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0", "cc-by-nd-4.0"),
    *("cc-by-3.0", "cc-by-sa-3.0", "mit", "apache-2.0", "odc-by", "odbl", "bsd-3-clause"),
)
_REMARK = re.compile(r"\s*\(.*\)$")
# Checks that were allowed: today's name, and the one of older releases.
_OF_NO_MODEL = frozenset({"not_from_a_model", "rules_rows"})
_OF_ROWS = ("withheld", "left_out", "renamed")  # findings of what became of rows when they were published
_TASKS = {
    **{"sft": ("text-generation",), "grpo": ("text-generation", "reinforcement-learning")},
    **{"rm": ("text-generation", "text-ranking")},
}
_GATE = (
    "These texts tell of people in distress, or are written like them. Access is given by hand, for research that does "
    "not try to find out who anybody is, and not for a service that stands in for professional help."
)
_GATE_FIELDS = {
    "Name": "text",
    "Affiliation": "text",
    "What I want to use it for": "text",
    "I will not try to identify anybody": "checkbox",
    "I will not offer a model trained on this as a crisis service": "checkbox",
}


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper with our figures in it. A figure of the paper that cannot be right is in `impossible`."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    impossible: set[tuple[int, int]]  # (row, column)
    notes: list[str]

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "title": self.title,
            "rows": [dict(zip(self.columns, row, strict=True)) for row in self.rows],
            "impossible": [
                {"row": self.rows[row][0], "column": self.columns[column]} for row, column in sorted(self.impossible)
            ],
            "notes": self.notes,
        }


def is_sensitive(release: Release) -> bool:
    """Whether access is to be given by hand: always, unless everything in it is invented."""
    return any(source.consent != "invented" for source in release.sources)


def licences(release: Release) -> str:
    """The file that a card links to where its sources have not one licence that the Hub knows; empty where they have.

    A row may be used as its source allows; all of them together, as the strictest source allows.
    """
    if _licence(release.sources) != "other":
        return ""
    sources = [(source.name, source.licence or "not stated") for source in release.sources]
    return render("licences", name=release.name, sources=sources)


def card(
    release: Release,
    folder: Path,
    measures: Measures,
    tables: Sequence[PaperTable],
    pictures: Iterable[str],
    repo: str,
    made: Making | None = None,
) -> str:
    """The card of what is published of a release, whose shards lie in `folder`.

    `tables` are the papers' over its home, `pictures` paths beside the card, `made` how its rows came about; `repo` is
    its name on the Hub, without which the card speaks of a folder.
    """
    first = _main(release)
    creators = (release.settings.get("publish") or {}).get("creators") or []
    titles = {LENGTHS: "Lengths of rows by config", TOPICS: "Prompts by primary category"}
    private = any(source.consent not in PUBLISHABLE for source in release.sources)
    body = render(
        "card",
        release=release,
        repo=repo,
        total=_total(release),
        languages=", ".join(f"{name} {rows:,}" for name, rows in measures.languages.most_common()),
        media=text_only(release).partition(": ")[2],
        of_no_model=_of_no_model(release, measures),
        unreviewed=measures.unreviewed,
        first={"config": first, "split": _splits(release, first)[0]},
        en=_half(release, made or Making(), "en"),
        zh=_half(release, made or Making(), "zh"),
        models=models(release),
        prompts=[version for versions in release.prompts.values() for version in versions.split(", ")],
        samples=samples(release, folder),
        creators=", ".join(creators),
        citation=bibtex(release, repo, creators),
        schemas=_schemas(release),
        withholds=private,
        restores=bool(repo) and (private or any(one.check == "withheld" for one in release.findings)),
        calibrations=[_calibrated(one) for one in release.calibrations if one.precision or one.recall],
        measures=list(_MEASURES.values()),
        agreement=[_agreed(one) for one in release.agreement],
        judges=[_judged(one) for one in release.judges],
        papers=tables,
        pictures=[(titles[path], path) for path in pictures],
        allows_risk=(release.settings.get("prompts") or {}).get("allow_risk"),
        # Whom to call: the first part.
        crisis=_CRISIS.read_text(encoding="utf-8").partition("\n## ")[0].rstrip().replace("# ", "## ", 1),
    )
    return f"---\n{_front(release, folder, measures)}\n---\n\n{body}"


def _half(release: Release, made: Making, lang: Lang) -> dict[str, Any]:
    """What both halves of a card say in their own words."""
    of_configs = {config: _description(config) for config in release.configs} if lang == "en" else words()["configs"]
    return {
        "configs": [
            (f"`{config}`", *(release.rows(config, split) for split in SPLITS), of_configs[config])
            for config in release.configs
        ],
        "sources": [_source(source, lang) for source in release.sources],
        "flow": [(one.source, word("units", one.unit, lang), *one[2:]) for one in made.flow],
        "made": [_made(one, lang) for one in made.tables],
        "lacking": _lacking(release, lang),
        "findings": [
            _found(one.check, one.what if f"{one.count:,}" in one.what.split() else f"{one.what} ({one.count:,})", lang)
            for one in release.findings
            if one.check not in {*_OF_ROWS, *_OF_NO_MODEL, "consent", MEDIA}
        ],
    }


def _source(source: Source, lang: Lang) -> tuple[Any, ...]:
    collected, unknown = source.collected, "not stated"
    if lang == "zh":
        unknown = "未注明"
        for english, chinese in (("crawled ", "抓取于 "), ("imported ", "导入于 "), ("imported", "导入")):
            collected = collected.replace(english, chinese)
    consent, lineage = word("consents", source.consent, lang), " ← ".join(source.lineage)
    return source.name, source.rows, source.licence or unknown, consent, collected, lineage


def _made(one: Kept, lang: Lang) -> tuple[Any, ...]:
    """What a table kept and dropped: "posts, cleaned (`clean_posts`)", 136, 44, "answers 13 (too short), …"."""
    name = f"`{one.table}`"
    if one.table in words()["tables"]:
        name = _apart(word("tables", one.table, lang), name, lang)
    reasons = (
        _apart(f"{word('units', unit, lang)} {n:,}", word("reasons", why, lang), lang) for unit, why, n in one.reasons
    )
    return name, one.kept, one.dropped, ("、" if lang == "zh" else ", ").join(reasons)


def _found(check: str, what: str, lang: Lang) -> str:
    """A finding, which is in English: in Chinese behind what the check looks for."""
    return what if lang == "en" else _apart(words()["findings"].get(check, check), what, lang)


def _apart(text: str, remark: str, lang: Lang) -> str:
    return f"{text}（{remark}）" if lang == "zh" else f"{text} ({remark})"


def _front(release: Release, folder: Path, measures: Measures) -> str:
    set_environment()
    from huggingface_hub import DatasetCardData

    total = _total(release)
    tasks = dict.fromkeys(task for config in release.configs for task in _TASKS[config.partition("_")[0]])
    licence = _licence(release.sources)
    extra: dict[str, Any] = {"license_name": "by-source", "license_link": LICENCES} if licence == "other" else {}
    if is_sensitive(release):
        extra |= {"extra_gated_prompt": _GATE, "extra_gated_fields": _GATE_FIELDS}
    papers = [f"arxiv:{paper}" for paper in arxiv_ids()]
    data = DatasetCardData(
        pretty_name=f"gongqing 共情 ({release.name})",
        language=sorted(measures.languages, reverse=True),
        license=licence,
        task_categories=list(tasks),
        size_categories=[next((name for most, name in _SIZES if total < most), "10M<n<100M")],
        tags=["empathy", "emotional-support", "mental-health", "chain-of-empathy", "gongqing", *papers],
        configs=[
            {
                "config_name": config,
                "data_files": [
                    {"split": split, "path": f"{config}/{split}-*.parquet"} for split in _splits(release, config)
                ],
            }
            | ({"default": True} if config == _main(release) else {})
            for config in release.configs
        ],
        dataset_info=[_info(release, folder, config) for config in release.configs],
        **extra,
    )
    return str(data.to_yaml())


def _info(release: Release, folder: Path, config: str) -> dict[str, Any]:
    sizes: Counter[str] = Counter()
    for shard in release.configs[config]:
        with pq.ParquetFile(folder / shard.path) as file:  # `datasets` counts the bytes of rows in Arrow
            sizes[shard.split] += sum(batch.nbytes for batch in file.iter_batches())
    return {
        "config_name": config,
        "splits": [
            {"name": split, "num_bytes": sizes[split], "num_examples": release.rows(config, split)}
            for split in _splits(release, config)
        ],
        "download_size": sum(shard.bytes for shard in release.configs[config]),
        "dataset_size": sizes.total(),
    }


def _main(release: Release) -> str:
    """The config that is loaded where none is named: the first, for the sets to imitate come first."""
    return next(iter(release.configs))


def _total(release: Release) -> int:
    return sum(release.rows(config) for config in release.configs)


def _splits(release: Release, config: str) -> list[str]:
    there = {shard.split for shard in release.configs[config]}
    return [split for split in SPLITS if split in there]


def _licence(sources: Sequence[Source]) -> str:
    names = {_REMARK.sub("", source.licence).casefold().replace(" ", "-") for source in sources}
    return names.pop() if len(names) == 1 and names <= set(_LICENCES) else "other"


def _of_no_model(release: Release, measures: Measures) -> list[tuple[str, int, int]] | None:
    """Configs with how many of their rows no model made, of how many; None where the release was not allowed any."""
    if _OF_NO_MODEL.isdisjoint(release.allowed):
        return None
    return [(config, rows, release.rows(config)) for config, rows in measures.of_no_model.items() if rows]


def _description(config: str) -> str:
    return (TABLES[config].__doc__ or "").split("\n\n")[0].replace("\n", " ")


def _schemas(release: Release) -> list[tuple[list[str], list[tuple[str, str, str]]]]:
    """The columns of the configs, with those that have the same together."""
    configs: dict[tuple[tuple[str, str, str], ...], list[str]] = {}
    for config in release.configs:
        columns = [one for name, column in TABLES[config].columns().items() for one in _described(name, column)]
        described = [("`" + name + "`", *rest) for name, *rest in [*columns, (WITHHELD, "bool", WITHHELD_MEANS)]]
        configs.setdefault(tuple((name, kind, text) for name, kind, text in described if text), []).append(config)
    return [(alike, list(columns)) for columns, alike in configs.items()]


def _described(name: str, column: dy.Column) -> Iterator[tuple[str, str, str]]:
    """Name, type and description of a column and of every field in it."""
    text = column.description or ""
    inner = column.inner if isinstance(column, dy.List) else column
    if isinstance(inner, dy.Struct):
        is_list = isinstance(column, dy.List)
        yield name, "list" if is_list else "struct", text
        for key, below in inner.inner.items():
            yield from _described(f"{name}{'[]' if is_list else ''}.{key}", below)
    else:
        kind = str(inner.dtype).lower()
        yield name, f"list of {kind}" if isinstance(column, dy.List) else kind, text


def _lacking(release: Release, lang: Lang) -> list[tuple[str, str]]:
    """What happened to rows that are not published as they are, with how many in each config."""
    counts: dict[tuple[str, str], list[str]] = {}
    for finding in release.findings:
        if finding.check in _OF_ROWS:
            config, _, what = finding.what.removeprefix("rows of ").partition(" ")
            counts.setdefault((finding.check, what), []).append(f"`{config}` {finding.count:,}")
    return [(_found(check, f"rows that {what}", lang), ", ".join(those)) for (check, what), those in counts.items()]


def _calibrated(one: Calibration) -> tuple[Any, ...]:
    """How well rules find a kind: "risk, any sign", .96 [.92, .98], …"""
    what = f"{one.stage.replace('_', ' ')}, {CALIBRATED[one.stage].get(one.kind, one.kind)}"
    shares = (None if share is None else _in_interval(share) for share in (one.precision, one.recall))
    single = (None if figure is None else _short(figure) for figure in (one.auc, one.kappa))
    return what, *shares, *single, one.posts, f"`{one.gold}`"


def _agreed(one: Agreed) -> tuple[Any, ...]:
    figures = (one.figures.get(measure) for measure in _MEASURES)
    return f"{one.kind}: {one.question}", one.items, one.people, *map(_in_interval, figures)


def _in_interval(figure: tuple[float, float | None, float | None] | None) -> str:
    if figure is None:
        return "undefined"
    value, low, high = figure
    return _short(value) if low is None or high is None else f"{_short(value)} [{_short(low)}, {_short(high)}]"


def _judged(one: Judge) -> tuple[Any, ...]:
    kappas = (None if kappa is None else _short(kappa) for kappa in (one.kappa, one.kappa_of_people))
    passes = "✓" if one.omega >= OMEGA else "✗"
    figures = map(_short, (one.omega, one.rho, one.epsilon))
    return f"`{one.model}`", f"{one.kind}: {one.question}", passes, *figures, *kappas, one.items, one.people


def _short(figure: float) -> str:
    """.96"""
    return f"{figure:.2f}".replace("0.", ".", 1) if abs(figure) < 0.995 else f"{figure:.2f}"
