"""Running one asset on the standing instance of a home, so that the web UI shows what the command line did."""

from pathlib import Path
from typing import Any

import dagster as dg

from pipelines.defs import assets, checks
from pipelines.defs.instance import instance
from pipelines.defs.resources import HomeResource
from pipelines.errors import GongqingError
from pipelines.stages import Stage

# Our own lines tell what happens; Dagster's are in the web UI.
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def run_stage(home: Path, stage: Stage) -> None:
    """Materialise the tables of a stage and run their checks. Raises the stage's own error where it fails."""
    tables = set(stage.tables)
    asset = next(one for one in assets.stages if {key.to_user_string() for key in one.keys} == tables)
    own = [one for one in checks.checks if {key.asset_key.to_user_string() for key in one.check_keys} <= tables]
    _run(home, [asset, *own], tags={"gongqing/command": "refresh"}, run_config=_QUIET)


def run_import(home: Path, table: str, data_set: str, reader: str, file: Path, mapping: Path | None) -> None:
    """Materialise one data set of `imported_posts` or `imported_dialogues`."""
    asset = next(one for one in assets.imports if one.key.to_user_string() == table)
    config: dict[str, Any] = {"reader": reader, "file": str(file), "mapping": str(mapping) if mapping else None}
    _run(
        home,
        [asset],
        partition=data_set,
        tags={"gongqing/command": "import"},
        run_config={**_QUIET, "ops": {table: {"config": config}}},
    )


def _run(home: Path, definitions: list[Any], partition: str | None = None, **options: Any) -> None:
    with instance(home) as standing:
        if partition is not None:
            standing.add_dynamic_partitions(assets.data_sets.name or "", [partition])
        try:
            dg.materialize(
                definitions,
                instance=standing,
                resources={"home": HomeResource(path=str(home))},
                partition_key=partition,
                **options,
            )
        except dg.DagsterError as error:
            raise _own(error) from error


def _own(error: BaseException) -> BaseException:
    """The error of ours that Dagster wrapped, or Dagster's own."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, GongqingError):
        cause = cause.__cause__
    return cause or error
