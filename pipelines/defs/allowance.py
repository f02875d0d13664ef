"""What the runs of Dagster may spend together. `daily_budget` under [llm] caps it, whatever a run is configured with.

How a run was started does not matter: who may launch one may also give it the tags of a schedule. What each may spend
is written down before it begins to ask, under a lock, in a file of the home. A budget is in the currency of the models
that are asked, and so is the cap: amounts are added as they stand.
"""

import json
import time
from collections.abc import Collection
from decimal import Decimal
from pathlib import Path
from typing import Any

from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.errors import RequestError
from pipelines.llm.ledger.ledger import Ledger
from pipelines.settings import Llm, settings_file

_SECONDS = 24 * 3600.0


def cap(llm: Llm) -> Decimal:
    """The most that all runs of Dagster may spend in 24 hours: `daily_budget`, else what the schedule may."""
    allowed = llm.schedule_budget if llm.daily_budget is None else llm.daily_budget
    return Decimal(0) if allowed is None else Decimal(str(allowed))


def allow(home: Path, llm: Llm, run: str, budget: Decimal, under_way: Collection[str] = ()) -> None:
    """Let a run spend up to `budget`, and write down that it may.

    The last word of `run` is its id: `run ID`, `judge of TRAINING in run ID`. What runs `under_way`, by their ids, may
    spend counts however long ago it was allowed.

    Raises RequestError where that, with what the runs of the last 24 hours were allowed, would pass the cap.
    """
    most = cap(llm)
    with Home(home).lock("allowance"):
        allowed = [one for one in _read(home) if _counts(one, under_way)]
        left = most - sum((Decimal(one["amount"]) for one in allowed), Decimal(0))
        if not 0 <= budget <= left:
            raise RequestError(
                f"the run may spend {max(left, Decimal(0))}, not {budget}: all runs in Dagster may spend {most} a day",
                where=settings_file(home),
                hint="raise daily_budget under [llm] there; what you ask for on the command line has no such cap:"
                " gongqing refresh --budget",
            )
        _write(home, [*allowed, {"run": run, "at": time.time(), "amount": str(budget)}])


def allowed_today(home: Path) -> Decimal:
    """What the runs of the last 24 hours were allowed, or have spent. Raises RequestError as `allow`."""
    return sum((Decimal(one["amount"]) for one in _read(home) if _counts(one, ())), Decimal(0))


def record_spent(home: Path, run: str, budget_of: str) -> None:
    """A run that has ended counts for no more than its budget has spent, or may be billed for yet."""
    spent = Decimal(0)
    if Home(home).ledger.exists():
        with Ledger(Home(home).ledger) as ledger:
            spent = ledger.taken(budget_of)
    with Home(home).lock("allowance"):
        allowed = _read(home)
        began = min((one["at"] for one in allowed if one["run"] == run), default=time.time())
        others = [one for one in allowed if one["run"] != run]
        _write(home, [*others, {"run": run, "at": began, "amount": str(spent)}])


def _counts(one: dict[str, Any], under_way: Collection[str]) -> bool:
    """Whether it was allowed in the last 24 hours, or to a run that has not ended."""
    return abs(time.time() - one["at"]) < _SECONDS or one["run"].split()[-1] in under_way


def _read(home: Path) -> list[dict[str, Any]]:
    """What was allowed. A file that cannot be read is an error, and allows nothing."""
    path = Home(home).allowance
    try:
        written: list[dict[str, Any]] = json.loads(path.read_bytes()) if path.exists() else []
        return [one for one in written if one["run"].split() and one["at"] >= 0 and Decimal(one["amount"]) >= 0]
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        raise RequestError(
            "what the runs of Dagster were allowed to spend cannot be read",
            where=path,
            hint="remove the file: then nothing counts as spent in the last 24 hours",
        ) from error


def _write(home: Path, allowed: list[dict[str, Any]]) -> None:
    write_whole(Home(home).allowance, json.dumps(allowed).encode())
