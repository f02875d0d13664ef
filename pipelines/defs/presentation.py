"""How assets are presented in the web UI: groups in the order of the flow, papers by name, pages that explain."""

import re
from collections.abc import Sequence

import dagster as dg

from pipelines.errors import GongqingError
from pipelines.settings import ROOT, home, load

# In the order of the flow, which the web UI would sort by name; each with its page.
_PAGES = {
    "sources": "data-sets.md",
    "clean": "personal-data.md",
    "unique": "using.md",
    "annotate": "asking.md",
    "sample": "using.md",
    "review": "reviewing.md",
    "rewrite": "rewriting.md",
    "prompts": "training-sets.md",
    "training": "training-sets.md",
    "release": "releasing.md",
    "training_runs": "training.md",
    "evaluation": "evaluating.md",
}
_ORDER = {name: f"{place:02d}_{name}" for place, name in enumerate(_PAGES, start=1)}
_PAPERS = {"M": "MindChat-R0", "E": "Empathy-R1", "C": "COMPEER"}
_PAPER = re.compile(r"(?<![\w/])[MEC](?=['’]s\b|:| §| eq\.| Table| trains|\))")


def group_of(name: str) -> str:
    """The group of a step, with its place in the flow before it."""
    return _ORDER[name]


def page_of(name: str) -> dict[str, dg.MetadataValue]:
    """The metadata that leads to the page of a step."""
    return {"docs": dg.MetadataValue.path(str(ROOT / "docs" / _PAGES[name]))}


def owners() -> tuple[str, ...]:
    """Whom the settings of the home name; nobody where they cannot be read, which the ticks say."""
    try:
        return load(home()).owners
    except GongqingError:
        return ()


def with_links(spec: dg.AssetSpec, owners: Sequence[str]) -> dg.AssetSpec:
    """An asset with its owners, and a link to the report, which shows what became of its rows."""
    report = dg.AssetKey("report")
    links = {} if spec.key == report else {"report": dg.MetadataValue.asset(report)}
    return spec.merge_attributes(owners=list(owners), metadata=links)


def spelt_out(description: str) -> str:
    """A description that says which papers M, E and C are, where it names any."""
    named = [paper for paper in _PAPERS if paper in _PAPER.findall(description)]
    names = ", ".join(f"{paper}: {_PAPERS[paper]}" for paper in named)
    return f"{description}\n\n{names}." if names else description
