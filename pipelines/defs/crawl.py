"""The crawled sources: one asset a site, partitioned by the day of posting, crawled by a process of its own."""

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg
from dagster._core.errors import DagsterPipesExecutionError

from crawlers.dates import Window
from crawlers.errors import CrawlError
from crawlers.options import is_loopback
from crawlers.sites import Site
from pipelines.core.files import storage_errors_reported
from pipelines.crawl.collecting import TABLE, Coverage, collect, coverage, partition
from pipelines.crawl.jobs import Job
from pipelines.crawl.preparing import prepare
from pipelines.defs.keys import crawled_sites, key_of
from pipelines.defs.metadata import column_schema, describe, materialization
from pipelines.defs.presentation import group_of
from pipelines.defs.resources import HomeResource
from pipelines.errors import CrawlFailed, GongqingError, RequestError
from pipelines.settings import ROOT
from pipelines.store.store import Store, Version
from schemas.tables import TABLES

FIRST_DAY = "2023-01-01"
DAYS = dg.DailyPartitionsDefinition(start_date=FIRST_DAY, timezone="Asia/Shanghai", end_offset=1)


_COUNTS = ("posts", "list_posts", "answers", "answers_of_long_posts")


class CrawlConfig(dg.Config):
    """How a day is crawled. Something has to be named: no site is crawled because somebody materialised everything."""

    revisit_days: int  # so many days that end on this one, for late answers; 1: this day alone
    base_url: str | None = None  # another address of the site: its replica's
    delays: bool = True  # off for a replica on this machine alone


def is_elsewhere(site: Site) -> bool:
    """Whether a site is there day and night. The replica is there while a demo or a test runs it."""
    return not is_loopback(site.host)


def op_of(source: str) -> str:
    """The name of the asset's step, by which it is configured."""
    return f"{TABLE}_{source}"


def materialization_of_day(version: Version, store: Store) -> dg.AssetMaterialization:
    """What Dagster records of a day that another run than its own has made again."""
    source, _, day = str(version.partition).rpartition("@")
    return materialization(version, store, key_of(source), day)


def _asset(site: Site) -> dg.AssetsDefinition:
    key = key_of(site.name)
    checks = {
        "items": "some posts, or lists that say that nothing is new",
        "coverage": "what this crawl brought has its fields filled about as often as the week before it",
    }

    @dg.multi_asset(
        name=op_of(site.name),
        specs=[
            dg.AssetSpec(
                key,
                group_name=group_of("sources"),
                description=f"{site.title}. {TABLES[TABLE].__doc__}",
                kinds={"scrapy", "parquet"},
                metadata={"dagster/column_schema": column_schema(TABLES[TABLE])},
                freshness_policy=dg.FreshnessPolicy.time_window(fail_window=dt.timedelta(days=3))
                if is_elsewhere(site)
                else None,
            )
        ],
        check_specs=[
            dg.AssetCheckSpec(name, asset=key, blocking=True, description=description)
            for name, description in checks.items()
        ],
        partitions_def=DAYS,
        pool=f"host_{site.host.replace('.', '_').replace('-', '_')}",
    )
    def crawled(
        context: dg.AssetExecutionContext,
        config: CrawlConfig,
        home: dg.ResourceParam[HomeResource],
        pipes: dg.PipesSubprocessClient,
    ) -> Iterator[Any]:
        last = dt.date.fromisoformat(context.partition_key)
        try:
            with storage_errors_reported(home.folder):
                store, settings = home.store(), home.settings().crawl
                window = Window(last - dt.timedelta(days=config.revisit_days - 1), last)
                job = prepare(
                    home.folder, store, site.name, window, settings, base_url=config.base_url, delays=config.delays
                )
        except (GongqingError, CrawlError) as error:
            raise _failure(error) from error
        for version in job.taken_over:
            context.log_event(materialization_of_day(version, store))
        try:
            exit_code = _run(job, context, pipes)
            with storage_errors_reported(home.folder):
                collected = collect(home.folder, store, job, warn=context.log.warning, exit_code=exit_code)
        except (CrawlFailed, RequestError) as error:
            raise _failure(error, job.stopped) from error
        versions = {version.partition: version for version in collected}
        place = partition(site.name, last)
        versions.pop(place, None)
        for version in versions.values():  # days before this one, where late answers came
            context.log_event(materialization_of_day(version, store))
        stands = store.version(TABLE, partition=place) if store.pointer(TABLE, place) else None
        yield dg.MaterializeResult(
            asset_key=key,
            data_version=dg.DataVersion(stands.version if stands else "nothing"),
            metadata={name: value for name, value in job.stats.items() if value is not None}
            | (describe(stands, store) if stands else {}),
        )
        yield from _checked(key, job.stats, coverage(store, job))

    return crawled


def _run(job: Job, context: dg.AssetExecutionContext, pipes: dg.PipesSubprocessClient) -> int:
    """The exit code of a crawl in a process of its own; how it ended, and where, stands in the folder of the job."""
    try:
        pipes.run(context=context, command=job.command, env=job.environment, cwd=str(ROOT))
    except DagsterPipesExecutionError as error:  # it has the code in its words alone
        return int(str(error).rpartition(" ")[2])
    return 0


def _failure(error: GongqingError | CrawlError, figures: Mapping[str, Any] | None = None) -> dg.Failure:
    """The failure of a crawl in the words of `error`, its hint among the figures of the crawl."""
    words = {"where": str(error.where) if error.where else None, "hint": error.hint or None}
    metadata = {name: value for name, value in {**(figures or {}), **words}.items() if value is not None}
    # A site that refuses us is left alone: nothing is tried again before somebody has read this.
    return dg.Failure(str(error), metadata=metadata, allow_retries=False)


def _checked(key: dg.AssetKey, stats: dict[str, Any], shares: list[Coverage]) -> Iterator[dg.AssetCheckResult]:
    """The blocking checks of a crawl that came to its end."""
    yield dg.AssetCheckResult(
        asset_key=key,
        check_name="items",
        passed=bool(stats["items"] or stats["nothing_new"]),
        metadata={name: stats[name] for name in ("items", "nothing_new", "pages", *_COUNTS, "errors", "finish_reason")},
    )
    yield dg.AssetCheckResult(
        asset_key=key,
        check_name="coverage",
        passed=all(share.holds for share in shares),
        metadata={share.field: str(share) for share in shares},
    )


crawls = [_asset(site) for site in crawled_sites().values()]
