"""The jobs that the command line runs as well, so that the timeline shows both under one name."""

import dagster as dg

from pipelines.flow.stages import STAGES

# Without a budget a run leaves what would cost money as it stands.
FREE = [table for stage in STAGES for table in stage.tables]
REFRESH = "refresh_free_tables"

refresh_job = dg.define_asset_job(
    REFRESH,
    selection=dg.AssetSelection.assets(*FREE),
    description="Every table that costs no money, in order; a table that is up to date keeps its version. A refresh of"
    " the command line stands here too: started again, it asks models for nothing that costs.",
)


def import_job_of(table: str) -> str:
    """The name of the job that imports a data set into a table."""
    return table.replace("imported", "import")


import_jobs = [
    dg.define_asset_job(
        import_job_of(table),
        selection=dg.AssetSelection.assets(table),
        description="A data set, as `gongqing import` reads it: its configuration names the reader and the file.",
    )
    for table in ("imported_posts", "imported_dialogues")
]
jobs = [refresh_job, *import_jobs]
