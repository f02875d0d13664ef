"""What a policy wrote in training, as the table `rollouts`: one partition a run.

verl leaves a file a step, our reward manager a line an output (`scored/<process>.jsonl`); they meet by the group's uid
and the output. A step that was made again after a break stands in its file as it was made last; what was scored for it
before meets nothing, and is counted.
"""

import math
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.store.reconciliation import Reconciliation, require_balance
from pipelines.store.store import Store, Version
from pipelines.train.runs import ROLLOUTS, SCORED, read_note
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


_Scored = dict[tuple[str, str], list[_ScoredLine]]  # by group and output


class RolloutRows(NamedTuple):
    """The rows of a run, what could not be read, and how many of what there were."""

    kept: pl.DataFrame
    dropped: pl.DataFrame
    counts: dict[str, int]


def write_rollouts(store: Store, run: Path) -> Version | None:
    """The rollouts of a run as a version of its partition; None where it wrote none."""
    rows = read_rollouts(run)
    if not rows.counts["outputs"]:
        return None
    reconciliation = Reconciliation(_UNIT, rows.counts["outputs"], rows.kept.height, rows.dropped.height)
    require_balance(TABLE, [reconciliation])
    made_of = {name: value for name, value in read_note(run).items() if name != "overrides"}
    return store.write(TABLE, rows.kept, rows.dropped, partition=run.name, note=made_of | rows.counts)


def read_rollouts(run: Path) -> RolloutRows:
    """The rollouts in the folder of a run.

    Counts: `outputs`, the lines of verl's files; `unscored`, those of which the reward noted nothing, which are kept
    with verl's score alone; `elsewhere`, what was scored and reached no step: validation, and steps that were broken
    off; `unread`, lines of rewards that cannot be read; `not_finite`, terms that are not finite, which are left out.
    """
    scored, unread = _read_scored(run)
    counts = Counter({"outputs": 0, "unscored": 0, "elsewhere": 0, "unread": unread, "not_finite": 0})
    frames: list[pl.DataFrame] = [Rollouts.create_empty()]
    drops: list[dict[str, Any]] = []
    for path in sorted((run / ROLLOUTS).glob("*.jsonl")):
        rows: list[dict[str, Any]] = []
        for place, text in enumerate(path.read_bytes().splitlines(keepends=True)):
            counts["outputs"] += 1
            line = _parse(path, text)
            if isinstance(line, _Line):
                rows.append(_row(run, int(path.stem), place, line, scored, counts))
            else:
                reason, detail = line
                row_id = f"{run.name}/{path.stem}/{place}"
                drops.append({"stage": TABLE, "unit": _UNIT, "row_id": row_id, "reason": reason, "detail": detail})
        frames.append(pl.DataFrame(rows, schema=Rollouts.polars_schema(), orient="row"))
    counts["elsewhere"] = sum(map(len, scored.values()))
    dropped = gather(pl.DataFrame(drops, schema=Dropped.polars_schema()))
    return RolloutRows(pl.concat(frames), dropped, dict(counts))


def _row(run: Path, step: int, place: int, line: _Line, scored: _Scored, counts: Counter[str]) -> dict[str, Any]:
    uid, _, rest = line.uid.partition("_")  # verl's name of an output: group, session, and its number there
    match = _take(scored, uid, rest.partition("_")[0], line.output)
    counts["unscored"] += match is None
    terms = {**(match.terms if match else {}), "score": line.score}
    finite = {name: value for name, value in terms.items() if math.isfinite(value)}
    counts["not_finite"] += len(terms) - len(finite)
    return {
        "run_id": run.name,
        "step": step,
        "output_index": place,
        "uid": uid,
        "row_id": match.row_id if match else None,
        "split": match.split if match else None,
        "prompt": line.input,
        "output": line.output,
        "rewards": [{"name": name, "value": value} for name, value in sorted(finite.items())],
        "judge": (match.words or None) if match else None,
    }


def _take(scored: _Scored, uid: str, session: str, output: str) -> _ScoredLine | None:
    """What was scored for an output; of equal ones of a group that of its session, or else any."""
    lines = scored.get((uid, output), [])
    own = next((place for place, line in enumerate(lines) if str(line.session) == session), 0)
    return lines.pop(own) if lines else None


def _read_scored(run: Path) -> tuple[_Scored, int]:
    """What the rewards wrote, and how many lines of it cannot be read."""
    scored: _Scored = defaultdict(list)
    unread = 0
    for path in sorted((run / SCORED).glob("*.jsonl")):
        with path.open("rb") as file:
            for text in file:
                try:
                    line = _ScoredLine.model_validate_json(text)
                except ValidationError:
                    unread += 1
                else:
                    scored[line.uid, line.output].append(line)
    return scored, unread


def _parse(path: Path, text: bytes) -> _Line | tuple[str, str]:
    """A line of verl's, or reason and detail of a drop; with no text of it."""
    if not _STEP.fullmatch(path.stem):
        return "no_step", "the file is named after no step"
    try:
        return _Line.model_validate_json(text)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False, include_input=False)
        if any(one["type"] in _NO_RECORD for one in wrong):
            return "unreadable" if text.endswith(b"\n") else "unfinished", f"{len(text)} bytes"
        return "incomplete", "missing or wrong: " + ", ".join(str(one["loc"][0]) for one in wrong)
