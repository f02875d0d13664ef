"""The code location: all of `pipelines.defs`. `build_definitions` is the seam of the tests."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from pipelines.core.modes import keep_private
from pipelines.defs import assets, crawl, releases, schedules, training
from pipelines.defs.resources import clients_resource, home_resource


def build_definitions(resources: Mapping[str, Any] | None = None) -> dg.Definitions:
    """All definitions, with some resources replaced."""
    return dg.Definitions(
        assets=[*assets.imports, *crawl.crawls, *assets.stages, *releases.assets, *training.trainings],
        asset_checks=assets.checks,
        jobs=[
            schedules.refresh_job,
            schedules.daily_job,
            schedules.annotate_job,
            *schedules.crawl_jobs,
            *releases.jobs,
            *training.training_jobs,
        ],
        schedules=[
            schedules.nightly_refresh,
            schedules.daily_refresh,
            schedules.annotate_weekly,
            *schedules.crawl_schedules,
            releases.release_monthly,
        ],
        resources={
            "home": home_resource,
            "clients": clients_resource,
            "pipes": dg.PipesSubprocessClient(),
            **(resources or {}),
        },
        # Every process of the multiprocess executor would import everything again: three times the cost for tables
        # of this size.
        executor=dg.in_process_executor,
    )


keep_private()  # Dagster's processes import this, however they were started
defs = build_definitions()
