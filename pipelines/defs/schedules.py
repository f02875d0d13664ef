"""Jobs and schedules. Off until somebody switches them on in the web UI."""

import dagster as dg

from pipelines.stages import STAGES

refresh_job = dg.define_asset_job(
    "refresh_free_tables",
    selection=dg.AssetSelection.assets(*(table for stage in STAGES for table in stage.tables)),
    description="Every table that costs no money, in order; a table that is up to date keeps its version.",
)

nightly_refresh = dg.ScheduleDefinition(
    name="nightly_refresh",
    job=refresh_job,
    cron_schedule="30 3 * * *",
    execution_timezone="Asia/Shanghai",
    description="A quiet hour, Shanghai time.",
    default_status=dg.DefaultScheduleStatus.STOPPED,
)
