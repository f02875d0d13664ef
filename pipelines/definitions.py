"""The code location: all of `pipelines.defs`. `build_definitions` is the seam of the tests."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from pipelines.core.modes import keep_private
from pipelines.defs import alerts, assets, crawl, evaluations, jobs, releases, schedules, training, trends
from pipelines.defs.presentation import owners, with_links
from pipelines.defs.resources import clients_resource, home_resource


def build_definitions(resources: Mapping[str, Any] | None = None) -> dg.Definitions:
    """All definitions, with some resources replaced."""
    pipes = dg.PipesSubprocessClient()
    tables: list[dg.AssetsDefinition | dg.AssetSpec] = [*assets.imports, *crawl.crawls, *assets.stages, *assets.labels]
    others = [*releases.assets, *training.trainings, *evaluations.assets]
    named = owners()
    return dg.Definitions(
        assets=[*dg.map_asset_specs(lambda spec: with_links(spec, named), [*tables, *others])],
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
