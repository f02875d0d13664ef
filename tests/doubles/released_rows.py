"""What would be released, of a few rows: the prompt sets that the project makes of them, and whatever is put beside."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from unique_rows import posts, rounds, splits

from pipelines.release.checks.released import Released
from pipelines.settings import Prompts, Settings
from pipelines.trainsets.prompt_sets import cer_prompts, ecot_prompts
from schemas.dialogues import UniqueDialogues
from schemas.tables import TABLES

SETTINGS = Settings(prompts=Prompts(allow_risk=True))  # the checks are to find it, not the stage


class FewRows(Released):
    """Tables in memory in place of the store's."""

    tables: Mapping[str, pl.DataFrame]

    def table(self, table: str) -> pl.DataFrame:
        return self.tables.get(table, TABLES[table].create_empty())

    def without(self, origins: Collection[str]) -> "FewRows":
        left = super().without(origins)
        object.__setattr__(left, "tables", self.tables)
        return left


def few_rows(
    *told: dict[str, Any],
    said: tuple[dict[str, Any], ...] = (),
    split_of: Mapping[str, str],
    settings: Settings = SETTINGS,
    home: Path = Path(),
    **tables: pl.DataFrame,
) -> FewRows:
    """Posts (`unique_rows.post`) and sampled rounds (`unique_rows.sampled_round`) of groups with these splits."""
    unique, turns, given = posts(*told), rounds(*said), splits(**split_of)
    # The dialogues of sampled rounds, as far as the checks read them.
    known = turns.unique("dialogue_id").select(
        *("dialogue_id", "source", "group_id", "under_18", "risk"),
        licence=pl.lit("CC0-1.0"),
        consent=pl.lit("synthetic"),
        lineage=pl.lit([], pl.List(pl.String)),
    )
    made = {
        "unique_posts": unique,
        "unique_dialogues": pl.concat([UniqueDialogues.create_empty(), known], how="diagonal"),
        "splits": given,
        "grpo_ecot": ecot_prompts(unique, given, settings.prompts)[0],
        "grpo_cer": cer_prompts(turns, given, settings.prompts)[0],
    }
    released = FewRows(home, None, {}, settings)  # type: ignore[arg-type]  # no store: the tables are here
    object.__setattr__(released, "tables", made | tables)
    return released
