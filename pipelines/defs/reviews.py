"""Labels that arrive: a sensor that takes them into the tables. Off until somebody switches it on in the web UI."""

import time
from collections.abc import Iterator

import dagster as dg

from pipelines.core.home import Home
from pipelines.defs.schedules import refresh_job
from pipelines.errors import Busy
from pipelines.operations.review.inbox import take_all
from pipelines.settings import home


@dg.sensor(job=refresh_job, minimum_interval_seconds=300)
def labels_from_people() -> Iterator[dg.RunRequest | dg.SkipReason]:
    """Files in review/inbox/KIND of the home, and a team's answers in Potato: into the tables, then a refresh of all
    that costs nothing. A file that is refused is moved aside, with the reasons beside it.
    """
    try:
        taken = take_all(home(), time.time())
    except Busy as error:
        yield dg.SkipReason(str(error))
        return
    if taken.new:
        yield dg.RunRequest(run_key=taken.run_key)
    else:
        refused = f"; {len(taken.refused)} files were refused, see {Home(home()).review}/inbox" if taken.refused else ""
        yield dg.SkipReason(f"no new labels{refused}")


sensors = [labels_from_people]
