"""Jobs, schedules, and the sensor of labels that arrive. Off until somebody switches them on in the web UI."""

import datetime as dt
import time
from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg

from crawlers.dates import SHANGHAI, day_of
from crawlers.sites import Site
from pipelines.core.home import Home
from pipelines.defs.crawl import is_elsewhere, op_of
from pipelines.defs.jobs import FREE, refresh_job
from pipelines.defs.keys import crawled_sites, key_of
from pipelines.defs.releases import release_job
from pipelines.defs.retention import retention_job
from pipelines.defs.running import report_labels
from pipelines.errors import GongqingError
from pipelines.flow.stages import STAGES
from pipelines.operations.review.inbox import take_all
from pipelines.settings import home, load
from pipelines.store.store import Store

_ASKED = [table for stage in STAGES if stage.asks for table in stage.tables]
_SITES = [site for site in crawled_sites().values() if is_elsewhere(site)]
_Request = Callable[[dg.ScheduleEvaluationContext], dg.RunRequest | dg.SkipReason]

annotate_job = dg.define_asset_job(
    "annotate",
    selection=dg.AssetSelection.assets(*_ASKED),
    description="The tables that models are asked for. Money is spent only where the run is given a budget.",
)
daily_job = dg.define_asset_job(
    "crawl_and_refresh",
    selection=dg.AssetSelection.assets(*(key_of(site.name) for site in _SITES), *FREE),
    description="The crawl of a day, and of the days before it for late answers; then every table that costs nothing.",
)
crawl_jobs = [
    dg.define_asset_job(
        f"crawl_{site.name}",
        selection=dg.AssetSelection.assets(key_of(site.name)),
        description=f"{site.title}: the posts of one day.",
    )
    for site in _SITES
]


def _schedule(name: str, job: Any, cron: str, description: str, run: _Request | None = None) -> dg.ScheduleDefinition:
    """A schedule in Shanghai's time; `run` configures its runs. Where the settings cannot be read, it waits."""

    def tick(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        try:
            load(home())
            return run(context) if run else dg.RunRequest()
        except GongqingError as error:
            return dg.SkipReason(str(error))

    return dg.ScheduleDefinition(
        name=name,
        job=job,
        cron_schedule=cron,
        execution_timezone=SHANGHAI.key,
        execution_fn=tick,
        description=description,
    )


def _with_budget(_: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    """A run that may spend what the settings allow; none where they allow nothing."""
    budget = load(home()).llm.schedule_budget
    if budget is None:
        return dg.SkipReason("no budget: schedule_budget under [llm] in gongqing.toml gives one")
    return dg.RunRequest(run_config={"resources": {"clients": {"config": {"budget": budget}}}})


def _of_yesterday(*sites: Site) -> _Request:
    """A run for the last whole day in Shanghai, that looks back as far as the settings say."""

    def run(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        day = day_of(context.scheduled_execution_time) - dt.timedelta(days=1)
        config: dict[str, Any] = {"config": {"revisit_days": load(home()).crawl.revisit_days}}
        ops = {op_of(site.name): config for site in sites}
        return dg.RunRequest(partition_key=day.isoformat(), run_config={"ops": ops})

    return run


def _named_by_month(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    """A release named by its month in Shanghai."""
    month = context.scheduled_execution_time.astimezone(SHANGHAI)
    return dg.RunRequest(run_config={"ops": {"release": {"config": {"name": f"{month:%Y-%m}"}}}})


annotate_weekly = _schedule(
    "annotate_weekly",
    annotate_job,
    "30 4 * * 0",
    "Models are asked about what is new, for no more than schedule_budget under [llm] says.",
    _with_budget,
)
daily_refresh = _schedule(
    "daily_refresh",
    daily_job,
    "40 2 * * *",
    "All sites, then the tables that cost nothing; a quiet hour. All or nothing: a site whose crawl or checks fail "
    "stops the tables of that night. For sites that do not wait for each other switch on daily_<site> and "
    "nightly_refresh instead.",
    _of_yesterday(*_SITES),
)
release_monthly = _schedule(
    "release_monthly",
    release_job,
    "30 5 1 * *",
    "A release named by its month, where the checks find nothing. Nothing is published by a schedule.",
    _named_by_month,
)
nightly_refresh = _schedule("nightly_refresh", refresh_job, "30 3 * * *", "A quiet hour, Shanghai time.")
retention_weekly = _schedule(
    "retention_weekly",
    retention_job,
    "30 6 * * 1",
    "Dagster's runs of 90 days ago go, but for the latest of each asset.",
)
schedules = [nightly_refresh, daily_refresh, annotate_weekly, release_monthly, retention_weekly]
for _site, _job in zip(_SITES, crawl_jobs, strict=True):
    _about = f"{_site.title}, a quiet hour, Shanghai time."
    schedules.append(_schedule(f"daily_{_site.name}", _job, "10 2 * * *", _about, _of_yesterday(_site)))
jobs: list[Any] = [daily_job, annotate_job, retention_job, *crawl_jobs]


@dg.sensor(job=refresh_job, minimum_interval_seconds=300)
def labels_from_people(context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """Files in review/inbox/KIND of the home, and a team's answers in Potato: into the tables, then a refresh of all
    that costs nothing. A file that is refused is moved aside, with the reasons beside it.
    """
    try:
        taken = take_all(home(), time.time())
    except GongqingError as error:
        yield dg.SkipReason(str(error))
        return
    if taken.new:
        report_labels(context.instance, Store(Home(home()).data))
        yield dg.RunRequest(run_key=taken.run_key)
    else:
        refused = f"; {len(taken.refused)} files were refused, see {Home(home()).review}/inbox" if taken.refused else ""
        yield dg.SkipReason(f"no new labels{refused}")


make_what_is_new = dg.AutomationConditionSensorDefinition(
    "make_what_is_new",
    target=dg.AssetSelection.assets(*(table for stage in STAGES if not stage.asks for table in stage.tables)),
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Tables that cost no money, as soon as what they are made from is another, whoever brought that: a "
    "crawl, an import, labels, a run that asked models. In place of nightly_refresh.",
)
sensors = [labels_from_people, make_what_is_new]
