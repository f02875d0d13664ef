"""Labels as people will give them, made for the tests: every candidate of the sample home has one."""

import tomllib

import polars as pl

from pipelines.rewrite.scripts import of_label
from pipelines.settings import Settings
from schemas.annotations import CerLabels
from schemas.ids import unit_interval
from schemas.labels import PREFERENCES

# With all three variants, and chains to answers that nobody wrote.
LABELLED_TOML = """
[rewrite]
variants = ["D", "R", "P"]
[sampling]
variants = ["none", "D", "R", "P"]
[annotate]
human_answers = false
[release]
left_out = 0.1
"""
LABELLED = Settings(**tomllib.loads(LABELLED_TOML))


def made_labels(candidates: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """One label a candidate, right and wrong by its id. `turns` are the sampled turns: the rounds that were seen."""
    turn_of = {(row["dialogue_id"], row["round"]): row for row in turns.iter_rows(named=True)}

    def about(row: dict, what: str) -> float:
        return unit_interval("label", row["dialogue_id"], row["round"], row["candidate"], what)

    rows = []
    for row in candidates.iter_rows(named=True):
        known = {name: row[name] for name in ("dialogue_id", "round", "candidate")}
        seen = of_label(row, turn_of[row["dialogue_id"], row["round"]]).hash
        steps = {f"step{step}": about(row, str(step)) < 0.7 for step in (1, 2, 3)}
        preference = PREFERENCES[int(about(row, "preference") * len(PREFERENCES))]
        agreed = {"preference": preference, "annotators": ["a1", "a2"], "consensus": "agreed"}
        rows.append({**known, "labelled": seen, **steps, **agreed})
    return pl.DataFrame(rows, schema=CerLabels.polars_schema())
