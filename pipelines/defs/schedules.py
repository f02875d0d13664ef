"""Jobs and schedules. Off until somebody switches them on in the web UI."""

import datetime as dt
from typing import Any

import dagster as dg

from crawlers.dates import SHANGHAI, day_of
from crawlers.sites import Site
from pipelines.defs.crawl import is_elsewhere, op_of
from pipelines.defs.keys import crawled_sites, key_of
from pipelines.flow.stages import STAGES
from pipelines.settings import home, load

# Without a budget a run leaves what would cost money as it stands.
_FREE = [table for stage in STAGES for table in stage.tables]
_ASKED = [table for stage in STAGES if stage.asks for table in stage.tables]
_SITES = [site for site in crawled_sites().values() if is_elsewhere(site)]

refresh_job = dg.define_asset_job(
    "refresh_free_tables",
    selection=dg.AssetSelection.assets(*_FREE),
    description="Every table that costs no money, in order; a table that is up to date keeps its version.",
)

nightly_refresh = dg.ScheduleDefinition(
    name="nightly_refresh",
    job=refresh_job,
    cron_schedule="30 3 * * *",
    execution_timezone=SHANGHAI.key,
    description="A quiet hour, Shanghai time.",
    default_status=dg.DefaultScheduleStatus.STOPPED,
)

annotate_job = dg.define_asset_job(
    "annotate",
    selection=dg.AssetSelection.assets(*_ASKED),
    description="The tables that models are asked for. Money is spent only where the run is given a budget.",
)


def _with_budget(_: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    """A run that may spend what the settings allow; none where they allow nothing."""
    budget = load(home()).llm.schedule_budget
    if budget is None:
        return dg.SkipReason("no budget: schedule_budget under [llm] in gongqing.toml gives one")
    return dg.RunRequest(run_config={"resources": {"clients": {"config": {"budget": budget}}}})


annotate_weekly = dg.ScheduleDefinition(
    name="annotate_weekly",
    job=annotate_job,
    cron_schedule="30 4 * * 0",
    execution_timezone=SHANGHAI.key,
    execution_fn=_with_budget,
    description="Models are asked about what is new, for no more than schedule_budget under [llm] says.",
    default_status=dg.DefaultScheduleStatus.STOPPED,
)

daily_job = dg.define_asset_job(
    "crawl_and_refresh",
    selection=dg.AssetSelection.assets(*(key_of(site.name) for site in _SITES), *_FREE),
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


def _yesterday(context: dg.ScheduleEvaluationContext, sites: list[Site]) -> dg.RunRequest:
    """A run for the last whole day in Shanghai, that looks back as far as the settings say."""
    day = day_of(context.scheduled_execution_time) - dt.timedelta(days=1)
    config: dict[str, Any] = {"config": {"revisit_days": load(home()).crawl.revisit_days}}
    ops = {op_of(site.name): config for site in sites}
    return dg.RunRequest(partition_key=day.isoformat(), run_config={"ops": ops})


def _daily(name: str, job: Any, cron: str, sites: list[Site], description: str) -> dg.ScheduleDefinition:
    return dg.ScheduleDefinition(
        name=name,
        job=job,
        cron_schedule=cron,
        execution_timezone=SHANGHAI.key,
        execution_fn=lambda context: _yesterday(context, sites),
        description=description,
        default_status=dg.DefaultScheduleStatus.STOPPED,
    )


daily_refresh = _daily(
    "daily_refresh",
    daily_job,
    "40 2 * * *",
    _SITES,
    "All sites, then the tables that cost nothing; a quiet hour. All or nothing: a site whose crawl or checks fail "
    "stops the tables of that night. For sites that do not wait for each other switch on daily_<site> and "
    "nightly_refresh instead.",
)
crawl_schedules = [
    _daily(f"daily_{site.name}", job, "10 2 * * *", [site], f"{site.title}, a quiet hour, Shanghai time.")
    for site, job in zip(_SITES, crawl_jobs, strict=True)
]
