"""The code location: all of `pipelines.defs`. `build_definitions` is the seam of the tests."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from pipelines.core.modes import keep_private
from pipelines.defs import alerts, assets, crawl, evaluations, jobs, releases, schedules, training, trends
from pipelines.defs.resources import clients_resource, home_resource


def build_definitions(resources: Mapping[str, Any] | None = None) -> dg.Definitions:
    """All definitions, with some resources replaced."""
    pipes = dg.PipesSubprocessClient()
    return dg.Definitions(
        assets=[
            *(*assets.imports, *crawl.crawls, *assets.stages, *releases.assets, *training.trainings),
            *evaluations.assets,
            *assets.labels,
        ],
        asset_checks=[*assets.checks, *trends.checks],
        jobs=[*jobs.jobs, *schedules.jobs, *releases.jobs, *training.training_jobs, *evaluations.jobs],
        schedules=schedules.schedules,
        sensors=[*schedules.sensors, *alerts.sensors],
        resources={"home": home_resource, "clients": clients_resource, "pipes": pipes, **(resources or {})},
        # Every process of the multiprocess executor would import everything again: three times the cost for tables
        # of this size.
        executor=dg.in_process_executor,
    )


keep_private()  # Dagster's processes import this, however they were started
defs = build_definitions()
