"""Votes on candidates, written short: "a1 TTF second" is what a1 says of three steps and of the two replies."""

from typing import Any

import polars as pl
from table_rows import row_of

from schemas.reviews import CerVotes


def vote(said: str, number: int = 1, role: str = "annotator", **more: Any) -> dict[str, Any]:
    """One vote on candidate 1 of round 1 of the dialogue `s:number`."""
    annotator, steps, preference = said.split()
    known = {"dialogue_id": f"s:{number}", "round": 1, "candidate": 1, "annotator": annotator, "labelled": "v1"}
    known |= {"role": role, "suggested": False, "preference": preference, "task_id": f"s:{number}#1/1 {annotator}"}
    known |= {f"step{place}": letter == "T" for place, letter in enumerate(steps, 1)}
    return row_of(CerVotes, **known | more)


def votes(*rows: dict[str, Any]) -> pl.DataFrame:
    return CerVotes.validate(pl.DataFrame(rows, schema=CerVotes.polars_schema()))
