"""A release, and its publication, as assets: in jobs of their own, for nobody releases by the way.

The token of the Hub is read from HF_TOKEN by its client, and stands in no configuration, event or log.
"""

from collections.abc import Sequence
from typing import Any, get_args

import dagster as dg
from pydantic import Field

from pipelines.defs.presentation import group_of
from pipelines.defs.resources import HomeResource
from pipelines.defs.samples import records
from pipelines.errors import ReleaseRefused, RequestError
from pipelines.operations.release import release as make
from pipelines.operations.release import to_hub
from pipelines.operations.report.page import write_report
from pipelines.release.checks.released import CONFIGS
from pipelines.release.publish.client import hub_address
from pipelines.settings import settings_file
from pipelines.store.release_manifest import Finding, Release
from schemas.labels import SPLITS
from schemas.reasoning import Lang

GROUP = group_of("release")


class ReleaseConfig(dg.Config):
    """What the release is called, which checks may find what they find (`not_from_a_model`), and whether it is refused
    for what else is left out, or for prompts that no model has judged.
    """

    name: str
    allow: list[str] = Field(default_factory=list)
    strict: bool = False


class PublishConfig(dg.Config):
    """Where the current release, or another, is put on the Hub, and whether everybody may see that it is there.

    Both only as `[publish]` of the settings has it.
    """

    repo: str
    release: str | None = None
    public: bool = False


def _findings(findings: Sequence[Finding], allowed: Sequence[str] = ()) -> dg.TableMetadataValue:
    """The findings of the checks, as `gongqing release` prints them: what somebody allowed is not refused."""
    return records(
        {
            "check": one.check,
            "": "allowed" if one.check in allowed else one.severity,
            "count": one.count,
            "what": one.what,
            "to do": one.hint,
        }
        for one in findings
    )


def _described(release: Release) -> dict[str, Any]:
    rows = [{"set": config, **{split: release.rows(config, split) for split in SPLITS}} for config in release.configs]
    return {
        "name": release.name,
        "content": release.content,
        "dagster/row_count": sum(map(release.rows, release.configs)),
        "rows": records(rows),
        "findings": _findings(release.findings, release.allowed),
        "left_out": sum(one.count for one in release.left_out),
        "pins": records({"table": table, "version": version} for table, version in release.pins.items()),
        "spend": records(one.model_dump() for one in release.spend),
    }


@dg.asset(name="release", group_name=GROUP, deps=[dg.AssetKey(config) for config in CONFIGS])
def release(
    context: dg.AssetExecutionContext, config: ReleaseConfig, home: dg.ResourceParam[HomeResource]
) -> dg.MaterializeResult[None]:
    """Every table pinned, checked, and the training sets written once and for all (docs/releasing.md)."""
    try:
        made = make(home.folder, config.name, allow=config.allow, strict=config.strict, settings=home.settings())
    except ReleaseRefused as refused:
        raise dg.Failure(str(refused), metadata={"findings": _findings(refused.findings)}) from refused
    context.log.info("%s: content %s", made.name, made.content)
    return dg.MaterializeResult(data_version=dg.DataVersion(made.content), metadata=_described(made))


@dg.asset(name="publication", group_name=GROUP, deps=[release])
def publication(
    context: dg.AssetExecutionContext, config: PublishConfig, home: dg.ResourceParam[HomeResource]
) -> dg.MaterializeResult[None]:
    """What of a release may be published, as one commit and a tag on the Hub (docs/publishing.md)."""
    _require_named(home, config)
    published, upload = to_hub(home.folder, config.release, config.repo, public=config.public)
    context.log.info("%s: %s, commit %s", upload.repo, upload.tag, upload.commit)
    shown: dict[str, Any] = {
        "repo": upload.repo,
        "where": dg.MetadataValue.url(f"{hub_address()}/datasets/{upload.repo}/tree/{upload.tag}"),
        "commit": upload.commit,
        "new": upload.new,
    }
    return dg.MaterializeResult(data_version=dg.DataVersion(published.content), metadata=shown | _described(published))


def _require_named(home: HomeResource, config: PublishConfig) -> None:
    """Raises RequestError for a repository that the settings do not name, or not as a public one."""
    named = home.settings().publish
    key, allowed = ("public", named.public) if config.public else ("repositories", named.repositories)
    if config.repo not in allowed:
        how = "in public" if config.public else "at all"
        raise RequestError(
            f"{config.repo!r} is none that a job may publish to {how}: {', '.join(allowed) or 'there is none'}",
            where=settings_file(home.folder),
            hint=f"add it to {key} under [publish] there, or on the command line: gongqing export hub {config.repo}",
        )


@dg.asset(name="report", group_name=GROUP, deps=[release])
def report(home: dg.ResourceParam[HomeResource]) -> dg.MaterializeResult[None]:
    """One page of what came, what became of it, and what it is for, in English and Chinese (docs/report.md)."""
    pages = {lang: dg.MetadataValue.path(write_report(home.folder, lang=lang)) for lang in get_args(Lang)}
    return dg.MaterializeResult(metadata=pages)


report_job = dg.define_asset_job(
    "write_report",
    selection=dg.AssetSelection.assets(report),
    description="The report of the home: for those who may read it, and nobody else.",
)
release_job = dg.define_asset_job(
    "make_release",
    selection=dg.AssetSelection.assets(release),
    description="A release; give it a name. What the checks find refuses it, with a list of what to mend.",
)
publish_job = dg.define_asset_job(
    "publish_release",
    selection=dg.AssetSelection.assets(publication),
    description="The current release, or the one that is named, on the Hub.",
)
assets = [release, publication, report]
jobs = [release_job, publish_job, report_job]
