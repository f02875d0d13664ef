"""How a release is cited, and the papers that its methods are from: BibTeX, out of `CITATION.cff`."""

from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from pipelines.settings import ROOT
from pipelines.store.release_manifest import Release

_FILE = ROOT / "CITATION.cff"


def bibtex(release: Release, repo: str, creators: Sequence[str]) -> str:
    """An entry for the release, by its `creators` or the authors that the file names, and one for each paper; without
    a `repo` it names no address.
    """
    cited = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    authors = " and ".join(f"{{{name}}}" for name in creators or [one["name"] for one in cited["authors"]])
    fields = {
        **{"title": f"{{gongqing 共情: {release.name}}}", "author": authors, "year": str(release.made_at.year)},
        **({"howpublished": f"\\url{{https://huggingface.co/datasets/{repo}}}"} if repo else {}),
        **{"note": f"Release {release.name}, content {release.content}"},
    }
    return "\n\n".join([_entry("misc", f"gongqing_{release.name}", fields), *map(_paper, cited["references"])])


def arxiv_ids() -> Iterator[str]:
    """Of the papers that are on arXiv."""
    for paper in yaml.safe_load(_FILE.read_text(encoding="utf-8"))["references"]:
        if (known := _arxiv(paper)) is not None:
            yield known


def _paper(paper: dict[str, Any]) -> str:
    authors = " and ".join(f"{one['family-names']}, {one['given-names']}" for one in paper["authors"])
    fields = {"title": f"{{{paper['title']}}}", "author": authors, "year": str(paper["year"])}
    if "collection-title" in paper:
        fields |= {"booktitle": paper["collection-title"], "pages": f"{paper['start']}--{paper['end']}"}
    if (known := _arxiv(paper)) is not None:
        fields |= {"eprint": known, "archivePrefix": "arXiv", "url": f"https://arxiv.org/abs/{known}"}
    first, _, _ = paper["title"].partition(":")
    kind = "inproceedings" if "collection-title" in paper else "misc"
    name = "".join(filter(str.isalnum, first.lower()))
    return _entry(kind, f"{name}_{paper['year']}", fields)


def _arxiv(paper: dict[str, Any]) -> str | None:
    ids = (one["value"] for one in paper.get("identifiers", []) if one["value"].startswith("arXiv:"))
    return next((one.removeprefix("arXiv:") for one in ids), None)


def _entry(kind: str, key: str, fields: dict[str, str]) -> str:
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@{kind}{{{key},\n{lines}\n}}"
