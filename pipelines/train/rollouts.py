"""What a policy wrote in training, as the table `rollouts`: one partition a run.

verl leaves a file a step (`rollouts/<step>.jsonl`), our reward manager a line an output (`scored/<process>.jsonl`): the
one knows the step and what reached the advantage, the other the prompt's row, the terms and the judge's words. They
meet by the group's uid and the output. A step that was made again after a break stands in its file as it was made last;
what was scored for it before meets nothing, and is counted.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.store import Store, Version
from pipelines.store.reconciliation import Reconciliation, require_balance
from pipelines.train.runs import ROLLOUTS, SCORED, note
from schemas.dropped import gather
from schemas.table import Dropped
from schemas.training import Rollouts

TABLE = "rollouts"
_UNIT = "output"

_STEP = re.compile(r"0|[1-9][0-9]{0,17}")  # the name of a file of verl's
_NO_RECORD = {"json_invalid", "model_type"}


class _Line(BaseModel):
    """A line of verl's, as far as it is read."""

    model_config = ConfigDict(strict=True)

    uid: str
    input: str
    output: str
    score: float


class _ScoredLine(BaseModel):
    """A line of our reward manager's."""

    model_config = ConfigDict(strict=True)

    uid: str
    session: int
    split: Literal["train", "validation", "test"] | None
    row_id: str | None
    output: str
    words: str | None
    terms: dict[str, float]


class _Refused(NamedTuple):
    """Why a line is no row; no text of it."""

    reason: str
    detail: str


_Scored = dict[tuple[str, str], list[_ScoredLine]]  # by group and output


class Read(NamedTuple):
    """The rows of a run, what could not be read, and how many of what there were."""

    kept: pl.DataFrame
    dropped: pl.DataFrame
    counts: dict[str, int]


def write(store: Store, run: Path) -> Version | None:
    """The rollouts of a run as a version of its partition; None where it wrote none."""
    found = read(run)
    if not found.counts["outputs"]:
        return None
    reconciliation = Reconciliation(_UNIT, found.counts["outputs"], found.kept.height, found.dropped.height)
    require_balance(TABLE, [reconciliation])
    made_of = {name: value for name, value in note(run).items() if name != "overrides"}
    return store.write(TABLE, found.kept, found.dropped, partition=run.name, note=made_of | found.counts)


def read(run: Path) -> Read:
    """The rollouts in the folder of a run.

    Counts: `outputs`, the lines of verl's files; `unscored`, those of which the reward noted nothing, which are kept
    with verl's score alone; `elsewhere`, what was scored and reached no step: validation, and steps that were broken
    off; `unread`, lines of rewards that cannot be read; `not_finite`, terms that are no number, which are left out.
    """
    waiting, unread = _scored(run)
    counts = Counter({"outputs": 0, "unscored": 0, "elsewhere": 0, "unread": unread, "not_finite": 0})
    frames: list[pl.DataFrame] = [Rollouts.create_empty()]
    drops: list[pl.DataFrame] = []
    for path in sorted((run / ROLLOUTS).glob("*.jsonl")):
        rows: list[dict[str, Any]] = []
        for place, line in enumerate(path.read_bytes().splitlines(keepends=True)):
            counts["outputs"] += 1
            told = _of_a_step(path, line)
            if isinstance(told, _Refused):
                drops.append(_dropped(run, path, place, told))
            else:
                rows.append(_row(run, int(path.stem), place, told, waiting, counts))
        frames.append(pl.DataFrame(rows, schema=Rollouts.polars_schema(), orient="row"))
    counts["elsewhere"] = sum(map(len, waiting.values()))
    return Read(pl.concat(frames), gather(*drops), dict(counts))


def _row(run: Path, step: int, place: int, told: _Line, waiting: _Scored, counts: Counter[str]) -> dict[str, Any]:
    uid, _, rest = told.uid.partition("_")  # verl's name of an output: group, session, and its number there
    scored = _taken(waiting, uid, rest.partition("_")[0], told.output)
    counts["unscored"] += scored is None
    terms = {**(scored.terms if scored else {}), "score": told.score}
    finite = {name: value for name, value in terms.items() if math.isfinite(value)}
    counts["not_finite"] += len(terms) - len(finite)
    return {
        "run_id": run.name,
        "step": step,
        "output_index": place,
        "uid": uid,
        "row_id": scored.row_id if scored else None,
        "split": scored.split if scored else None,
        "prompt": told.input,
        "output": told.output,
        "rewards": [{"name": name, "value": value} for name, value in sorted(finite.items())],
        "judge": (scored.words or None) if scored else None,
    }


def _taken(waiting: _Scored, uid: str, session: str, output: str) -> _ScoredLine | None:
    """What was scored for an output; of equal ones of a group that of its session, or else any."""
    found = waiting.get((uid, output), [])
    own = next((place for place, line in enumerate(found) if str(line.session) == session), 0)
    return found.pop(own) if found else None


def _scored(run: Path) -> tuple[_Scored, int]:
    """What the rewards wrote, and how many lines of it cannot be read."""
    found: _Scored = {}
    unread = 0
    for line in (line for path in sorted((run / SCORED).glob("*.jsonl")) for line in _lines(path)):
        try:
            told = _ScoredLine.model_validate_json(line)
        except ValidationError:
            unread += 1
        else:
            found.setdefault((told.uid, told.output), []).append(told)
    return found, unread


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _of_a_step(path: Path, line: bytes) -> _Line | _Refused:
    """A line of verl's, or why it is none."""
    if not _STEP.fullmatch(path.stem):
        return _Refused("no_step", "the file is named after no step")
    try:
        return _Line.model_validate_json(line)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False, include_input=False)
        if any(one["type"] in _NO_RECORD for one in wrong):
            return _Refused("unreadable" if line.endswith(b"\n") else "unfinished", f"{len(line)} bytes")
        return _Refused("incomplete", "missing or wrong: " + ", ".join(str(one["loc"][0]) for one in wrong))


def _dropped(run: Path, path: Path, place: int, why: _Refused) -> pl.DataFrame:
    row = {
        "stage": TABLE,
        "unit": _UNIT,
        "row_id": f"{run.name}/{path.stem}/{place}",
        "reason": why.reason,
        "detail": why.detail,
    }
    return pl.DataFrame([row], schema=Dropped.polars_schema())
