"""The rows of an arm: those of the release, fewer of them, or without the reasoning before the answer.

Where an arm changes nothing, the release's own files are read.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipelines.durable import writing
from pipelines.errors import RequestError
from pipelines.llm.prompts import load
from pipelines.train.recipe import Arm
from schemas.ids import unit_interval
from schemas.reasoning import COE

_PLAIN = Path(__file__).parent / "prompts" / "coe_plain.md"


def changes(arm: Arm, most: int | None) -> bool:
    """Whether the rows of an arm, `most` of them at most, are others than the release's."""
    return bool(arm.variants) or not arm.chain or most is not None


def count(paths: Sequence[Path], arm: Arm, most: int | None = None) -> int:
    """How many rows `write` has of an arm."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    if arm.variants:
        columns = (pq.read_table(path, columns=["variant"])["variant"] for path in paths)
        found = sum(pc.sum(pc.is_in(one, pc.cast(list(arm.variants), one.type))).as_py() or 0 for one in columns)
    else:
        found = sum(pq.read_metadata(path).num_rows for path in paths)
    return found if most is None else min(found, most)


def write(paths: Sequence[Path], target: Path, arm: Arm, most: int | None = None) -> int:
    """Write the rows of an arm as one file.

    Args:
        paths: Parquet files of a release.
        target: The file.
        arm: Which rows, and what of them.
        most: Of them so many, drawn by a hash of their ids: two arms of equal size have the same.

    Returns:
        How many rows there are. Raises RequestError where there is none.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pa.concat_tables([pq.read_table(path) for path in paths])
    if arm.variants:
        table = table.filter(pc.is_in(table["variant"], pa.array(arm.variants)))
    if most is not None:
        drawn = sorted(range(table.num_rows), key=lambda row: unit_interval(0, "rows", table["row_id"][row].as_py()))
        table = table.take(sorted(drawn[:most]))
    if not arm.chain:
        for column, change in (("messages", _answer_alone), ("prompt", _asked_plainly)):
            if column in table.column_names:
                field = table.schema.field(column)
                changed = pa.array([change(row) for row in table[column].to_pylist()], type=field.type)
                table = table.set_column(table.column_names.index(column), field, changed)
    if not table.num_rows:
        raise RequestError(
            f"no row is left of {paths[0].parent.name}",
            where=paths[0].parent,
            remedy=f"it has no rows of the variants {', '.join(arm.variants)}: gongqing tables shows what there is",
        )
    with writing(target) as file:
        pq.write_table(table, file)
    return int(table.num_rows)


def _asked_plainly(prompt: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": "system", "content": load(_PLAIN).text}, *prompt[1:]]


def _answer_alone(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    answer = COE.read(messages[-1]["content"])["answer"]
    return [*_asked_plainly(messages[:-1]), {**messages[-1], "content": f"<answer>{answer}</answer>"}]
