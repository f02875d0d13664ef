"""Rows to write: small tables whose every cell is known."""

import polars as pl

from schemas.table import Dropped
from schemas.tables import TABLES

TABLE = "splits"
SECRET = "他说的那句话我谁也没告诉过"


def groups(n: int, said: str = "first") -> pl.DataFrame:
    """`n` rows of the table `splits`, in each of which stands `said`."""
    return pl.DataFrame(
        {
            "group_id": [f"g{i:05}" for i in range(n)],
            "split": [("train", "validation", "test")[i % 3] for i in range(n)],
            "given_at": [said] * n,
            "members": [[f"{said}-{i}-{j}" for j in range(i % 3)] for i in range(n)],
        },
        schema=TABLES[TABLE].polars_schema(),
    )


def drops(*row_ids: str, reason: str = "too_short") -> pl.DataFrame:
    said = {"stage": TABLE, "unit": "post", "reason": reason, "detail": "3 characters"}
    return pl.DataFrame([said | {"row_id": row_id} for row_id in row_ids], schema=Dropped.polars_schema())
