"""What an erasure has to do, written before it does anything: so whoever is killed on the way can be followed.

    <home>/erasures/<erasure>.plan       ids and codes, no text: `Plan`
    <home>/erasures/<erasure>.runs       hashes of runs of characters, whose base is in the plan (`traces`)

Both are gone when the erasure is over; a receipt without ids takes their place (`receipt`).
"""

import datetime as dt
import io
import secrets
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.errors import StoreError
from pipelines.operations.erase.lineage import Gone, Mask
from pipelines.operations.erase.sieve import Sieve
from pipelines.operations.erase.traces import Runs
from pipelines.store.suppression import PLANS


class Plan(BaseModel):
    """Ids of rows that go, and where they are."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    erasure: str
    began: dt.datetime
    asked: dict[str, int]  # rows, authors, files that were named
    gone: list[str]  # addresses of posts among them
    namesakes: list[str]  # `lineage.Gone`
    quoting: dict[str, list[str]]  # rows by table and key that go for what they say
    links: list[str]
    touched: list[str]  # names of places
    forgotten: list[str]  # keys of calls in the ledger
    kept_out: list[str]  # ids and authors that never come back
    wordings: list[str] = []  # codes of words that never come back
    taken_down: list[str]  # posts of sites, for the crawler's own list
    base: int

    def sieve(self, mask: Mask) -> Sieve:
        """What to hold a table's rows against."""
        quoting = {table: set(keys) for table, keys in self.quoting.items()}
        return Sieve(Gone(self.gone, self.namesakes), mask, quoting, set(self.links))


def name_of(now: dt.datetime) -> str:
    """A name for an erasure that begins now."""
    return f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"


def save(home: Path, plan: Plan, runs: Runs) -> None:
    """From here on the erasure is begun."""
    values = io.BytesIO()
    np.save(values, runs.traces)
    write_whole(Home(home).erasures / f"{plan.erasure}.runs", values.getvalue())
    write_whole(Home(home).erasures / f"{plan.erasure}.plan", plan.model_dump_json().encode())


def unfinished(home: Path) -> Iterator[tuple[Plan, Runs]]:
    """The erasures that were begun, in order.

    Raises StoreError for a plan that cannot be read.
    """
    for path in sorted(Home(home).erasures.glob(PLANS)):
        try:
            plan = Plan.model_validate_json(path.read_bytes())
            yield plan, Runs(np.load(path.with_suffix(".runs")), plan.base)
        except (ValidationError, ValueError, OSError) as error:
            raise StoreError(
                "the plan of an erasure that was begun cannot be read",
                where=path,
                hint="remove it, and ask for the same erasure again: what is erased already stays so",
            ) from error


def sweep(home: Path) -> None:
    """Removes what a process that was killed while it wrote or removed a plan left of it: nothing was begun, or all is
    done.
    """
    for path in sorted(Home(home).erasures.glob("*")):
        if path.suffix == ".part" or (path.suffix == ".runs" and not path.with_suffix(".plan").exists()):
            path.unlink()


def done(home: Path, plan: Plan) -> None:
    """The erasure is over."""
    for suffix in (".plan", ".runs"):
        (Home(home).erasures / f"{plan.erasure}{suffix}").unlink(missing_ok=True)
