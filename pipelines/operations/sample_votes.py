"""Votes on candidates that we invented for the samples, in the place of people's: so that the demo's tables have rows.

They lie in `samples/written/cer_votes.jsonl`, a line each: on which candidate (`dialogue_id`, `round`, and the `alias`
of the model in whose place it was written), by whom and as what, the verdicts, and `why`. The people are called
`invented-1` and so on. Among them is a disagreement of every kind: on each step, on the preference, on several at once,
one on which no two agree, one that waits for a third person, and one for a second.
"""

import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines.errors import UnreadableFile
from pipelines.llm.providers.written import FOLDER, WRITTEN
from pipelines.operations.review.importing import write_consensus
from pipelines.operations.review.judged import TABLE, candidate_hash
from pipelines.review.assigning import Assigned
from pipelines.review.consensus import KEY
from pipelines.review.items import Item, cer_items
from pipelines.review.tasks import task_row
from pipelines.settings import Settings
from pipelines.store.store import Store, Version
from schemas.ids import candidate_id
from schemas.labels import Preference
from schemas.reviews import CerVotes, ReviewTasks
from schemas.table import Table

VOTES = FOLDER / "cer_votes.jsonl"
BATCH = "samples"
_PERSON = "^invented-[0-9]+$"
_MADE = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)


class InventedVote(BaseModel):
    """A line of the file. `why`, for readers of the file, is what was remarked."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    dialogue_id: str
    round: int = Field(ge=1)
    alias: str
    annotator: Annotated[str, Field(pattern=_PERSON)]
    role: Literal["annotator", "adjudicator"]
    step1: bool
    step2: bool
    step3: bool
    preference: Preference
    seconds: float
    why: str | None = None


def write_sample_votes(store: Store, settings: Settings, key: bytes, path: Path = VOTES) -> list[Version]:
    """Put the invented votes, and the tasks that they answer, into the tables, in the place of earlier invented ones,
    and what the votes agree on into `cer_labels`. What people have labelled is left to them. `key`: the author key.

    Returns the versions of `review_tasks`, `cer_votes` and `cer_labels`. Raises UnreadableFile, and NoVersion before
    there are candidates.
    """
    candidates, turns, splits = (store.read(name).collect() for name in ("cer_candidates", "sampled_turns", "splits"))
    items = {item.item_id: item for item in cer_items(candidates, turns, splits, candidate_hash)[0]}
    by_people = _by_people(store, "cer_votes", CerVotes)
    theirs = {candidate_id(*key) for key in by_people.select(KEY).iter_rows()}
    ours = {name: item for name, item in items.items() if name not in theirs}
    tasks, votes = sample_votes(candidates, ours, settings, key, read_votes(path))
    written = [
        store.write(TABLE, pl.concat([_by_people(store, TABLE, ReviewTasks), tasks])),
        store.write("cer_votes", pl.concat([by_people, votes])),
    ]
    write_consensus(store, items)
    return [*written, store.version("cer_labels")]


def _by_people(store: Store, name: str, table: type[Table]) -> pl.DataFrame:
    rows = store.read(name).collect() if store.current(name) else table.create_empty()
    return rows.filter(~pl.col("annotator").str.contains(_PERSON))


def sample_votes(
    candidates: pl.DataFrame, items: dict[str, Item], settings: Settings, key: bytes, votes: Iterable[InventedVote]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of `review_tasks` and of `cer_votes`, each with the hash of its candidate as it stands.

    A vote is left out where there is no candidate among `items`, or one by another provider.
    """
    aliases = settings.annotate.cer
    written = {candidate_id(*row) for row in candidates.filter(provider=WRITTEN).select(KEY).iter_rows()}
    tasks: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for vote in votes:
        number = aliases.index(vote.alias) + 1 if vote.alias in aliases else 0
        item_id = candidate_id(vote.dialogue_id, vote.round, number)
        if item_id not in written or item_id not in items:
            continue
        item = items[item_id]
        task = task_row(item, Assigned(item_id, vote.annotator, vote.role), key, BATCH, _MADE)
        tasks.append(task)
        known = {"task_id": task["task_id"], "candidate": number, "labelled": item.hash, "suggested": False}
        rows.append(vote.model_dump(exclude={"alias", "why"}) | known | {"comment": vote.why, "at": None})
    frames = ((ReviewTasks, tasks), (CerVotes, rows))
    of_tasks, of_votes = (table.validate(pl.DataFrame(one, schema=table.polars_schema())) for table, one in frames)
    return of_tasks, of_votes


def read_votes(path: Path = VOTES) -> list[InventedVote]:
    """The votes of a file. Raises UnreadableFile, with the line, for a wrong one or a second by one person."""
    votes: dict[tuple[str, int, str, str], InventedVote] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            vote = InventedVote.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            problem = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
            raise _unreadable(problem, path, number) from error
        key = vote.dialogue_id, vote.round, vote.alias, vote.annotator
        if key in votes:
            raise _unreadable("the person has voted on the candidate already", path, number)
        votes[key] = vote
    return list(votes.values())


def _unreadable(problem: str, path: Path, number: int) -> UnreadableFile:
    return UnreadableFile(
        f"no vote: {problem}",
        where=f"{path}, line {number}",
        hint=f"each line has {', '.join(InventedVote.model_fields)}",
    )
