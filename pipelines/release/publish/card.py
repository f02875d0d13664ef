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
from pipelines.release.publish.making import models
from pipelines.release.publish.measures import LENGTHS, TOPICS, Measures
from pipelines.release.publish.private import PUBLISHABLE
from pipelines.release.publish.public import WITHHELD, WITHHELD_MEANS
from pipelines.release.publish.samples import samples
from pipelines.settings import ROOT
from pipelines.store.release_manifest import MEDIA, Agreed, Calibration, Judge, Release, Source, text_only
from schemas.labels import CALIBRATED, OMEGA, SPLITS
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
_TASKS = {
    **{"sft": ("text-generation",), "grpo": ("text-generation", "reinforcement-learning")},
    **{"rm": ("text-generation", "text-ranking")},
}
_CONSENTS = {
    "given": "the writers agreed to publication",
    "public_licence": "published under a public licence",
    "agreement": "handed out to those who sign an agreement; texts withheld here",
    "not_asked": "the writers were not asked; texts withheld here",
    "synthetic": "written by a model",
    "invented": "invented for this project",
}
_CONSENTS_ZH = {
    "given": "作者同意公开",
    "public_licence": "以公开许可发布",
    "agreement": "签署协议后才能取得；此处不含原文",
    "not_asked": "未征求过作者意见；此处不含原文",
    "synthetic": "由模型写成",
    "invented": "为本项目虚构",
}
_CONFIGS_ZH = {
    "sft_coe": "Empathy-R1：共情链（CoE）的热启动对话",
    "sft_cer": "COMPEER：可控共情推理（CER）的热启动对话，只学最后一句",
    "rm_triplets": "Empathy-R1：奖励模型的三元组：提问、更好的回答、更差的回答",
    "rm_process": "COMPEER：过程奖励模型，逐步评判",
    "rm_outcome": "COMPEER：结果奖励模型，评判回应",
    "rm_unified": "COMPEER：统一奖励模型，步骤与回应一起评判",
    "grpo_ecot": "MindChat-R0：一则求助，要求以 ECoT 回答",
    "grpo_coe": "Empathy-R1：一则有人回答过的提问，要求以 CoE 回答",
    "grpo_cer": "COMPEER：抽样得到的一轮对话，要求以 CER 回答",
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
    made: Sequence[tuple[str, int, int, str]] = (),
) -> str:
    """The card of what is published of a release, whose shards lie in `folder`.

    `tables` are the papers' over its home, `pictures` paths beside the card, `repo` its name for the lines that load
    it, `made` what each table kept and dropped (`making.funnel`).
    """
    first = _main(release)
    creators = (release.settings.get("publish") or {}).get("creators") or []
    titles = {LENGTHS: "Lengths of rows by config", TOPICS: "Prompts by primary category"}
    body = render(
        "card",
        release=release,
        repo=repo,
        total=_total(release),
        languages=", ".join(f"{name} {rows:,}" for name, rows in measures.languages.most_common()),
        text_only=text_only(release).capitalize(),
        of_no_model=_of_no_model(release, measures),
        unreviewed=measures.unreviewed,
        first={"config": first, "split": _splits(release, first)[0]},
        configs={
            "head": ["config", *SPLITS, "what it is"],
            "rows": [(*_counts(release, config), _description(config)) for config in release.configs],
        },
        configs_zh=[(*_counts(release, config), _CONFIGS_ZH[config]) for config in release.configs],
        made=[(f"`{table}`", *rest) for table, *rest in made],
        models=models(release),
        prompts=[(f"`{prompt}`", versions) for prompt, versions in release.prompts.items()],
        samples=samples(release, folder),
        creators=", ".join(creators),
        citation=bibtex(release, repo, creators),
        schemas=_schemas(release),
        sources=[
            (
                *(source.name, source.rows, source.licence or "not stated", _CONSENTS[source.consent]),
                *(source.collected, " ← ".join(source.lineage)),
            )
            for source in release.sources
        ],
        sources_zh=[
            (source.name, source.rows, source.licence or "未注明", _CONSENTS_ZH[source.consent])
            for source in release.sources
        ],
        withholds=any(source.consent not in PUBLISHABLE for source in release.sources),
        lacking=_lacking(release),
        calibrations=[_figures(one) for one in release.calibrations if one.precision or one.recall],
        agreement={
            "head": ["of", "items", "people", *_MEASURES.values()],
            "rows": [_agreed(one) for one in release.agreement],
        },
        judges=[_judged(one) for one in release.judges],
        papers=tables,
        pictures=[(titles[path], path) for path in pictures],
        findings=[
            one.what if f"{one.count:,}" in one.what.split() else f"{one.what} ({one.count:,} in all)"
            for one in release.findings
            if one.check not in ("withheld", "left_out", "consent", MEDIA)
        ],
        allows_risk=(release.settings.get("prompts") or {}).get("allow_risk"),
        # Whom to call: the first part.
        crisis=_CRISIS.read_text(encoding="utf-8").partition("\n## ")[0].rstrip().replace("# ", "## ", 1),
    )
    return f"---\n{_front(release, folder, measures)}\n---\n\n{body}"


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


def _counts(release: Release, config: str) -> tuple[Any, ...]:
    return f"`{config}`", *(release.rows(config, split) for split in SPLITS)


def _total(release: Release) -> int:
    return sum(release.rows(config) for config in release.configs)


def _splits(release: Release, config: str) -> list[str]:
    there = {shard.split for shard in release.configs[config]}
    return [split for split in SPLITS if split in there]


def _licence(sources: Sequence[Source]) -> str:
    names = {_REMARK.sub("", source.licence).casefold().replace(" ", "-") for source in sources}
    return names.pop() if len(names) == 1 and names <= set(_LICENCES) else "other"


def _of_no_model(release: Release, measures: Measures) -> list[str] | None:
    """How many rows of each config no model made; None where the release was not allowed to hold any."""
    if _OF_NO_MODEL.isdisjoint(release.allowed):
        return None
    counts = measures.of_no_model.items()
    return [f"{rows:,} of {release.rows(config):,} rows of `{config}`" for config, rows in counts if rows]


def _description(config: str) -> str:
    return (TABLES[config].__doc__ or "").split("\n\n")[0].replace("\n", " ")


def _schemas(release: Release) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """The columns of the configs, with those that have the same together."""
    configs: dict[tuple[tuple[str, str, str], ...], list[str]] = {}
    for config in release.configs:
        columns = [one for name, column in TABLES[config].columns().items() for one in _described(name, column)]
        described = [("`" + name + "`", *rest) for name, *rest in [*columns, (WITHHELD, "bool", WITHHELD_MEANS)]]
        configs.setdefault(tuple((name, kind, text) for name, kind, text in described if text), []).append(config)
    return [(", ".join(f"`{config}`" for config in alike), list(columns)) for columns, alike in configs.items()]


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


def _lacking(release: Release) -> dict[str, list[str]]:
    """What happened to rows that are not published whole, with how many in each config."""
    counts: dict[str, list[str]] = {}
    for finding in release.findings:
        if finding.check in ("withheld", "left_out"):
            config, _, what = finding.what.removeprefix("rows of ").partition(" ")
            counts.setdefault(what, []).append(f"`{config}` {finding.count:,}")
    return counts


def _figures(measured: Calibration) -> str:
    """What rules find, in a line: "risk, any sign: precision .96 [.92, .98], recall … on 1,097 posts (…)"."""
    shares = {"precision": measured.precision, "recall": measured.recall}
    figures = [
        f"{name} {_short(share[0])} [{_short(share[1])}, {_short(share[2])}]" for name, share in shares.items() if share
    ]
    figures += [f"AUC of the score {_short(measured.auc)}"] if measured.auc is not None else []
    by = [f"`{measured.gold}`", *([f"κ {_short(measured.kappa)}"] if measured.kappa is not None else [])]
    what = f"{measured.stage.replace('_', ' ')}, {CALIBRATED[measured.stage].get(measured.kind, measured.kind)}"
    return f"{what}: {', '.join(figures)} on {measured.posts:,} posts ({', '.join(by)})"


def _agreed(one: Agreed) -> tuple[Any, ...]:
    figures = (one.figures.get(measure) for measure in _MEASURES)
    return f"{one.kind}: {one.question}", one.items, one.people, *map(_in_interval, figures)


def _in_interval(figure: tuple[float, float | None, float | None] | None) -> str:
    if figure is None:
        return "undefined"
    value, low, high = figure
    return _short(value) if low is None or high is None else f"{_short(value)} [{_short(low)}, {_short(high)}]"


def _judged(one: Judge) -> str:
    """A line: "m, cer preference: may stand in for a person (ω .67, …)"."""
    verdict = "may" if one.omega >= OMEGA else "may not"
    kappas = (("κ with people", one.kappa), ("κ among people", one.kappa_of_people))
    figures = [f"ω {_short(one.omega)}", f"ρ {_short(one.rho)}", f"ε {_short(one.epsilon)}"]
    figures += [f"{name} {_short(kappa)}" for name, kappa in kappas if kappa is not None]
    what = f"`{one.model}`, {one.kind} {one.question}: {verdict} stand in for a person"
    return f"{what} ({', '.join(figures)}; {one.items:,} items, {one.people} people)"


def _short(figure: float) -> str:
    """.96"""
    return f"{figure:.2f}".replace("0.", ".", 1) if abs(figure) < 0.995 else f"{figure:.2f}"
