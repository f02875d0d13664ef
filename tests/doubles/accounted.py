"""What a step makes, held against what it was made from."""

import polars as pl

from pipelines.llm.tasks import Result
from pipelines.store.reconciliation import reconcile, require_balance
from schemas.table import Dropped
from schemas.tables import TABLES


def accounted(table: str, units: tuple[str, ...], parents: list[pl.DataFrame], result: Result) -> Result:
    """The rows of `table` and the drops, once they are valid and each of the parents' units is in one of them."""
    kept, dropped = result
    require_balance(table, [reconcile(unit, parents, kept, dropped) for unit in units])
    assert TABLES[table].is_valid(kept), TABLES[table].filter(kept)[1].counts()
    assert Dropped.is_valid(dropped)
    return result
