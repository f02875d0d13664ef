"""What a policy wrote in training, as the table `rollouts`: one partition a run.

verl leaves a file a step (`rollouts/<step>.jsonl`), our reward manager a line an output (`scored/<process>.jsonl`): the
one knows the step and what reached the advantage, the other the prompt's row, the terms and the judge's words. They
meet by the group's uid and the output. A step that was made again after a break stands in its file as it was made last;
what was scored for it before meets nothing, and is counted.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipelines.accounts import Account, require_balance
from pipelines.drops import gather
from pipelines.store import Store, Version
from pipelines.train.runs import ROLLOUTS, SCORED, note
from schemas.table import Dropped
from schemas.training import Rollouts

TABLE = "rollouts"
_UNIT = "output"

_Scored = dict[tuple[str, str], list[dict[str, Any]]]  # by group and output


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
    account = Account(_UNIT, found.counts["outputs"], found.kept.height, found.dropped.height)
    require_balance(TABLE, [account])
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
    for path in sorted((run / ROLLOUTS).glob("*.jsonl"), key=lambda path: int(path.stem)):
        rows: list[dict[str, Any]] = []
        for place, line in enumerate(path.read_bytes().splitlines(keepends=True)):
            counts["outputs"] += 1
            told = _object(line)
            if told is None:
                drops.append(_dropped(run, path, place, line))
            else:
                rows.append(_row(run, int(path.stem), place, told, waiting, counts))
        frames.append(pl.DataFrame(rows, schema=Rollouts.polars_schema(), orient="row"))
    counts["elsewhere"] = sum(map(len, waiting.values()))
    return Read(pl.concat(frames), gather(*drops), dict(counts))


def _row(
    run: Path, step: int, place: int, told: dict[str, Any], waiting: _Scored, counts: Counter[str]
) -> dict[str, Any]:
    uid, _, rest = told["uid"].partition("_")  # verl's name of an output: group, session, and its number there
    scored = _taken(waiting, uid, rest.partition("_")[0], told["output"])
    counts["unscored"] += scored is None
    terms = {**(scored or {}).get("terms", {}), "score": told["score"]}
    finite = {name: float(value) for name, value in terms.items() if math.isfinite(value)}
    counts["not_finite"] += len(terms) - len(finite)
    return {
        "run_id": run.name,
        "step": step,
        "output_index": place,
        "uid": uid,
        "row_id": (scored or {}).get("row_id"),
        "split": (scored or {}).get("split"),
        "prompt": told["input"],
        "output": told["output"],
        "rewards": [{"name": name, "value": value} for name, value in sorted(finite.items())],
        "judge": (scored or {}).get("words") or None,
    }


def _taken(waiting: _Scored, uid: str, session: str, output: str) -> dict[str, Any] | None:
    """What was scored for an output; of equal ones of a group that of its session, or else any."""
    found = waiting.get((uid, output), [])
    own = next((place for place, line in enumerate(found) if str(line.get("session")) == session), 0)
    return found.pop(own) if found else None


def _scored(run: Path) -> tuple[_Scored, int]:
    """What the rewards wrote, and how many lines of it cannot be read."""
    found: _Scored = {}
    unread = 0
    for line in (line for path in sorted((run / SCORED).glob("*.jsonl")) for line in _lines(path)):
        told = _object(line)
        if told is None:
            unread += 1
        else:
            found.setdefault((told["uid"], told["output"]), []).append(told)
    return found, unread


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _object(line: bytes) -> dict[str, Any] | None:
    """A line that was written whole; None for half of one, which a process that was killed has left."""
    try:
        told = json.loads(line)
    except ValueError:
        return None
    return told if isinstance(told, dict) and isinstance(told.get("uid"), str) else None


def _dropped(run: Path, path: Path, place: int, line: bytes) -> pl.DataFrame:
    row = {
        "stage": TABLE,
        "unit": _UNIT,
        "row_id": f"{run.name}/{path.stem}/{place}",
        "reason": "unreadable" if line.endswith(b"\n") else "unfinished",
        "detail": f"{len(line)} bytes",
    }
    return pl.DataFrame([row], schema=Dropped.polars_schema())
