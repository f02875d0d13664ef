"""The page of the stages and their tables, made from the code: `python -m tools.stages`."""

import inspect
import sys

import polars as pl

from pipelines.core.stage import Stage
from pipelines.flow.stages import STAGES
from schemas.tables import PARTITIONED, TABLES

_HEAD = """\
# Stages and tables

Every stage in the order of the flow, what it is made from, and every column of its tables. Made by
`python -m tools.stages` from the code; a test compares. A stage is made again where one of its parents, its code or the
settings in its line changed. Columns marked ● hold what people wrote, or lead to it: the web UI shows them nowhere.
"""
_NO_STAGE = "Filled from outside: crawled, imported, labelled, or written by a run of training or an evaluation."


def listing() -> str:
    """The page, as Markdown."""
    made = {table for stage in STAGES for table in stage.tables}
    others = [table for table in TABLES if table not in made]
    parts = [_HEAD, f"\n## What comes from outside\n\n{_NO_STAGE}\n", *(_table(name) for name in others)]
    for stage in STAGES:
        parts += [_stage(stage), *(_table(name) for name in stage.tables)]
    return "".join(parts)


def _stage(stage: Stage) -> str:
    parents = [f"`{name}`{' (optional)' if name in stage.optional_parents else ''}" for name in stage.parents]
    facts = {
        "made from": ", ".join(parents) or "nothing",
        **({"asks the models of": f"`[{stage.asks}]`"} if stage.asks else {}),
        **({"settings": ", ".join(f"`{name}`" for name in stage.reads)} if stage.reads else {}),
        **({"by row": "only what is new is made"} if stage.by_row else {}),
    }
    lines = "\n".join(f"- {name}: {fact}" for name, fact in facts.items())
    about = inspect.cleandoc(stage.function.__doc__ or "").partition("\n\n")[0]
    return f"\n## {stage.group}: `{stage.name}`\n\n{about}\n\n{lines}\n"


def _table(name: str) -> str:
    table = TABLES[name]
    private, key, types = set(table.private_columns()), set(table.key()), table.polars_schema()
    parts = ", a version for each partition" if name in PARTITIONED else ""
    rows = "".join(
        f"| {'● ' if column in private else ''}{f'**`{column}`**' if column in key else f'`{column}`'} "
        f"| {_type(types[column])} | {about.replace('|', '/')} |\n"
        for column, about in table.describe().items()
    )
    about = inspect.cleandoc(table.__doc__ or "")
    return f"\n### `{name}`{parts}\n\n{about}\n\n| column (of the key in bold) | type | |\n|---|---|---|\n{rows}"


def _type(dtype: pl.DataType | type[pl.DataType]) -> str:
    if isinstance(dtype, pl.List):
        return f"list of {_type(dtype.inner)}"
    if isinstance(dtype, pl.Struct):
        return "{" + ", ".join(f"{one.name}: {_type(one.dtype)}" for one in dtype.fields) + "}"
    if isinstance(dtype, pl.Datetime):
        return "time, UTC"
    return str(dtype).lower()


if __name__ == "__main__":
    sys.stdout.write(listing())
