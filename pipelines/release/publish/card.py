"""The card of a published release: `README.md`, made of the schemas and of the manifest.

The front matter is what the Hub and `datasets` read (`spec/llm.md` §E); the rest is for people.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from pipelines.release.publish.features import arrow_bytes, described, features
from pipelines.release.publish.measures import Measures
from pipelines.release.publish.pictures import LENGTHS, TOPICS
from pipelines.release.publish.private import PUBLISHABLE
from pipelines.settings import ROOT
from pipelines.store.release_manifest import MEDIA, Finding, Release, Source, text_only
from schemas.labels import SPLITS
from schemas.tables import TABLES

LICENCES = "LICENSE.md"  # the Hub links to a file of this name, and to no other

_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
# Names that the Hub knows, in the spelling of its cards.
_LICENCES = (
    *("cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0", "cc-by-nd-4.0"),
    *("cc-by-3.0", "cc-by-sa-3.0", "mit", "apache-2.0", "odc-by", "odbl", "bsd-3-clause"),
)
_REMARK = re.compile(r"\s*\(.*\)$")
# Checks that were allowed: today's name, and the one of older releases.
_OF_NO_MODEL = frozenset({"not_from_a_model", "rules_rows"})
_TASKS = {
    **{"sft": ("text-generation",), "grpo": ("text-generation", "reinforcement-learning")},
    **{"rm": ("text-generation", "text-ranking")},
}
_CONSENTS = {
    "given": "the writers agreed to publication",
    "public_licence": "published under a public licence",
    "agreement": "handed out to whoever signs an agreement; texts withheld here",
    "not_asked": "the writers were not asked; texts withheld here",
    "synthetic": "written by a model",
    "invented": "invented for this project",
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


class PaperTable(Protocol):
    """A table of a paper with our figures in it (`pipelines.operations.paper_tables.PaperTable`)."""

    @property
    def title(self) -> str:
        """What it shows."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """Its rows."""

    @property
    def notes(self) -> list[str]:
        """What to know beside it."""


def is_sensitive(release: Release) -> bool:
    """Whether access is to be given by hand: always, unless everything in it is invented."""
    return any(source.consent != "invented" for source in release.sources)


def licences(release: Release) -> str:
    """The file that a card links to where its sources have not one licence that the Hub knows; empty where they have.

    A row may be used as its source allows, and whoever uses all of them together keeps to the strictest.
    """
    if _licence(release.sources) != "other":
        return ""
    lines = [
        f"# Licences of {release.name}",
        "",
        "The licence of a row is that of its source, which its `row_id` begins with. Whoever uses rows of several "
        "sources together has to keep to all of their licences, and so to the strictest. What a model wrote about a "
        "text is a work made from it.",
        "",
        "| source | licence |",
        "|---|---|",
        *(f"| {_cell(source.name)} | {_cell(source.licence or 'not stated')} |" for source in release.sources),
    ]
    return "\n".join(lines) + "\n"


def card(
    release: Release, folder: Path, found: Measures, tables: Sequence[PaperTable], pictures: Iterable[str], repo: str
) -> str:
    """The card of a release.

    Args:
        release: What is published, as its manifest says.
        folder: Where its shards lie.
        found: Measures of its rows.
        tables: The papers' tables over the home that it was made in.
        pictures: Paths of the pictures beside the card.
        repo: Its name on the Hub, for the lines that load it.
    """
    import yaml

    front = yaml.safe_dump(_front(release, folder, found), allow_unicode=True, sort_keys=False, width=120)
    sections = (
        _what(release, found),
        _of_no_model(release, found),
        _loading(release, repo),
        _configs(release),
        _sources(release),
        _papers(tables),
        _pictures(pictures),
        _limits(release),
        _risk(release),
        _taking_out(repo),
        _crisis(),
    )
    return f"---\n{front}---\n\n" + "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _front(release: Release, folder: Path, found: Measures) -> dict[str, Any]:
    total = sum(release.rows(config) for config in release.configs)
    tasks = dict.fromkeys(task for config in release.configs for task in _TASKS[config.partition("_")[0]])
    licence = _licence(release.sources)
    front: dict[str, Any] = {
        "pretty_name": f"gongqing 共情 ({release.name})",
        "language": sorted(found.languages, reverse=True),
        "license": licence,
        **({"license_name": "by-source", "license_link": LICENCES} if licence == "other" else {}),
        "task_categories": list(tasks),
        "size_categories": [next((name for most, name in _SIZES if total < most), "10M<n<100M")],
        "tags": ["empathy", "emotional-support", "mental-health", "chain-of-empathy", "gongqing"],
        "configs": [
            {
                "config_name": config,
                "data_files": [
                    {"split": split, "path": f"{config}/{split}-*.parquet"} for split in _splits(release, config)
                ],
            }
            for config in release.configs
        ],
        "dataset_info": [_info(release, folder, config) for config in release.configs],
    }
    if is_sensitive(release):
        front |= {"extra_gated_prompt": _GATE, "extra_gated_fields": _GATE_FIELDS}
    return front


def _info(release: Release, folder: Path, config: str) -> dict[str, Any]:
    shards = release.configs[config]
    sizes = {shard: arrow_bytes(folder / shard.path) for shard in shards}
    return {
        "config_name": config,
        "features": features(folder / shards[0].path),
        "splits": [
            {
                "name": split,
                "num_bytes": sum(size for shard, size in sizes.items() if shard.split == split),
                "num_examples": release.rows(config, split),
            }
            for split in _splits(release, config)
        ],
        "download_size": sum(shard.bytes for shard in shards),
        "dataset_size": sum(sizes.values()),
    }


def _splits(release: Release, config: str) -> list[str]:
    there = {shard.split for shard in release.configs[config]}
    return [split for split in SPLITS if split in there]


def _licence(sources: Sequence[Source]) -> str:
    named = {_REMARK.sub("", source.licence).casefold().replace(" ", "-") for source in sources}
    return named.pop() if len(named) == 1 and named <= set(_LICENCES) else "other"


def _what(release: Release, found: Measures) -> list[str]:
    total = sum(release.rows(config) for config in release.configs)
    languages = ", ".join(f"{name} {rows:,}" for name, rows in found.languages.most_common())
    return [
        f"# gongqing 共情: {release.name}",
        "",
        "Data that train a model to answer people in distress with empathy: questions and answers, dialogues, chains "
        "of reasoning in three formats (ECoT, CoE, CER), verdicts and prompts. Made by the project gongqing after "
        "three papers: MindChat-R0 (M), Empathy-R1 (E) and COMPEER (C).",
        "",
        f"{total:,} rows in {len(release.configs)} configs; by language: {languages}. "
        f"{text_only(release).capitalize()}.",
        f"Released {release.made_at:%Y-%m-%d}; content `{release.content}`; `manifest.json` pins the version of every "
        "table behind it and the SHA-256 of every file.",
    ]


def _of_no_model(release: Release, found: Measures) -> list[str]:
    if _OF_NO_MODEL.isdisjoint(release.allowed):
        return []
    by_nobody = [
        f"{rows:,} of {release.rows(config):,} rows of `{config}`" for config, rows in found.by_nobody.items() if rows
    ]
    told = (
        f" Of {', '.join(by_nobody)} a part was written or judged so: the column `providers` says it."
        if by_nobody
        else ""
    )
    return [
        "> **Rows that no model made.** Written replies of the samples, a filter by form alone, or rules in the place "
        "of a model had a part in rows of this release. They show the form, not what a model writes or judges: train "
        "on these for nothing but a test." + told
    ]


def _loading(release: Release, repo: str) -> list[str]:
    config = next(iter(release.configs))
    split = _splits(release, config)[0]
    return [
        "## How to load it",
        "",
        "```python",
        "from datasets import load_dataset",
        "",
        f'rows = load_dataset("{repo}", "{config}", split="{split}", revision="{release.name}")',
        f'rows = load_dataset("path/to/this/folder", "{config}", split="{split}")  # offline',
        'rows = rows.filter(lambda row: not row["withheld"])  # only rows with all their words',
        "```",
        "",
        "A release is a tag and never changes. Rows that lack words can be completed from a crawl, or a copy of the "
        "data set, of your own:",
        "",
        "```",
        f"gongqing import hub {repo} --revision {release.name}",
        f"gongqing restore {release.name} DIR",
        "```",
    ]


def _configs(release: Release) -> list[str]:
    lines = ["## Configs", "", "| config | " + " | ".join(SPLITS) + " | what it is |", "|---|--:|--:|--:|---|"]
    for config in release.configs:
        counts = " | ".join(f"{release.rows(config, split):,}" for split in SPLITS)
        lines.append(f"| `{config}` | {counts} | {_cell(_about(config))} |")
    lines += [
        "",
        "Splits are given to groups of rows that share a text, an opening, an answer or an author, and once given they "
        "stay. What is made from a row inherits its split.",
    ]
    shown: dict[tuple[str, ...], list[str]] = {}
    for config in release.configs:
        shown.setdefault(tuple(map(str, described(config))), []).append(config)
    for configs in shown.values():
        lines += ["", "### " + ", ".join(f"`{config}`" for config in configs), "", "| column | type | what it holds |"]
        lines.append("|---|---|---|")
        lines += [
            f"| `{name}` | {kind} | {_cell(meaning)} |" for name, kind, meaning in described(configs[0]) if meaning
        ]
    return lines


def _about(config: str) -> str:
    return (TABLES[config].__doc__ or "").split("\n\n")[0].replace("\n", " ")


def _sources(release: Release) -> list[str]:
    lines = [
        "## Sources",
        "",
        "| source | rows | licence | consent | collected | made from |",
        "|---|--:|---|---|---|---|",
    ]
    for source in release.sources:
        cells = (
            source.licence or "not stated",
            _CONSENTS[source.consent],
            source.collected,
            " ← ".join(source.lineage),
        )
        lines.append(f"| {_cell(source.name)} | {source.rows:,} | " + " | ".join(map(_cell, cells)) + " |")
    lines += [
        "",
        "The licence of a row is that of its source. Personal data were replaced before anything else was done with a "
        "text; authors are not in these files.",
    ]
    if any(source.consent not in PUBLISHABLE for source in release.sources):
        lines += [
            "",
            "Words of people who were not asked, or whose texts are handed out under an agreement, are **not** here: "
            "of their rows there are ids, labels and annotations, and `⟦digest from:to id⟧` stands where their words "
            "stood. Every row was searched: no 15 characters of such a text stand in it one after the other.",
        ]
    lines += _told(release, ("withheld", "left_out"))
    return lines


def _told(release: Release, checks: tuple[str, ...]) -> list[str]:
    """A line for what became of rows, with how many it were in each config."""
    counts: dict[str, list[str]] = {}
    for one in release.findings:
        if one.check in checks:
            config, _, what = one.what.removeprefix("rows of ").partition(" ")
            counts.setdefault(what, []).append(f"`{config}` {one.count:,}")
    return ["", *(f"* Rows that {what}: {', '.join(told)}" for what, told in counts.items())] if counts else []


def _papers(tables: Sequence[PaperTable]) -> list[str]:
    lines = ["## The papers' tables over these data"] if tables else []
    for table in tables:
        lines += ["", f"### {table.title}", "", "| " + " | ".join(map(_cell, table.columns)) + " |"]
        lines.append("|" + "".join(_alignment(column) for column in zip(*table.rows, strict=True)))
        lines += [
            "| " + " | ".join("–" if value is None else _cell(value) for value in row) + " |" for row in table.rows
        ]
        lines += ["", *(f"* {note}" for note in table.notes)]
    return lines


def _alignment(column: tuple[Any, ...]) -> str:
    return "---|" if any(isinstance(value, str) for value in column) else "--:|"


def _pictures(pictures: Iterable[str]) -> list[str]:
    names = {LENGTHS: "Lengths of rows by config", TOPICS: "Prompts by primary category"}
    shown = [f"![{names[path]}]({path})" for path in pictures]
    return ["## Lengths and topics", "", "\n\n".join(shown)] if shown else []


def _limits(release: Release) -> list[str]:
    lines = [
        "## Known limits",
        "",
        "* Who asks for help in public is not everybody: the young, the urban and the articulate are over-represented, "
        "and a forum's rules decide what is said on it.",
        "* An answer that many liked is not therefore a good one. Few answers are by professionals, and nobody has "
        "checked who says to be one.",
        "* Labels and chains by models repeat the models' leanings. Every row names in the tables behind it which "
        "model wrote it, under which prompt.",
        "* Personal data were replaced by rules. Rules miss some: tell us.",
        "* Topics and strategies are coarse and were made for these papers; several strategies may be right at once.",
    ]
    told = [one for one in release.findings if one.check not in ("withheld", "left_out", "consent", MEDIA)]
    if told:
        lines += [
            "",
            "The checks before the release, over whole rows and those that were left out here as well, found:",
            "",
        ]
    return lines + [f"* {_counted(one)}." for one in told]


def _counted(finding: Finding) -> str:
    """What was found, with its number where the words do not tell it."""
    count = f"{finding.count:,}"
    return finding.what if count in finding.what.split() else f"{finding.what} ({count} in all)"


def _risk(release: Release) -> list[str]:
    why = "an answer that a reward prefers for never challenging the seeker is the wrong answer to somebody in danger."
    if (release.settings.get("prompts") or {}).get("allow_risk"):
        signs = "**are in this release**: a setting allowed it. Take care what they are used for: "
    else:
        signs = "are in no set of this release: "
    return [
        "## Risk policy",
        "",
        f"* Rows whose seekers show signs of self-harm, of harm to others or of abuse {signs}{why}",
        "* Posts by writers who say to be younger than 18 do not train; those by writers under 14 are dropped.",
        "* 模型不是热线。A model trained on these data is no crisis service, no diagnosis and no therapy, and must "
        "not be offered as one.",
    ]


def _taking_out(repo: str) -> list[str]:
    return [
        "## To have a row taken out",
        "",
        f"Are these your words, or words about you? Open a discussion on `{repo}`, or write to its owner, with the "
        "`row_id` alone: please do not repeat the text, and you need not say why. The row is erased from every table "
        "and version at home together with all that was made from it, is not crawled again, and the next release comes "
        "without it. What was downloaded before is out of our reach: whoever holds a copy is asked to delete the row.",
    ]


def _crisis() -> list[str]:
    """The first part of docs/crisis.md: whom to call."""
    told = (ROOT / "docs" / "crisis.md").read_text(encoding="utf-8")
    return told.partition("\n## ")[0].rstrip().replace("# ", "## ", 1).splitlines()


def _cell(value: Any) -> str:
    told = f"{value:,}" if isinstance(value, int) else str(value)
    return told.replace("|", "\\|").replace("\n", " ")
