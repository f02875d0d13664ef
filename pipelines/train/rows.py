"""The rows of an arm: those of the release, some of them, or without the reasoning before the answer.

Where nothing is chosen or changed, the release's own files are read.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipelines.core.files import writing
from pipelines.errors import RequestError
from pipelines.llm.prompts import load
from pipelines.train.recipe import Arm, Recipe
from schemas.ids import unit_interval
from schemas.reasoning import COE

_PLAIN = Path(__file__).parent / "prompts" / "coe_plain.md"


def variants(told: Recipe, arm: Arm) -> tuple[str, ...]:
    """Which variants are learnt from: the arm's, and where it names none, the recipe's; none of either: all."""
    return arm.variants or told.variants


def changes(told: Recipe, arm: Arm, most: int | None) -> bool:
    """Whether the rows of an arm, `most` of them at most, are written for it: they are chosen, or changed."""
    return bool(variants(told, arm)) or not arm.chain or most is not None


def by_variant(paths: Sequence[Path], named: Sequence[str] = ()) -> dict[str, int]:
    """How many rows there are of each variant that is named, also where there is none of it; none named: of each that
    there is, and nothing of a set that knows no variants.
    """
    import pyarrow.parquet as pq

    found: Counter[str] = Counter()
    for path in paths:
        if "variant" in pq.read_schema(path).names:
            found.update(pq.read_table(path, columns=["variant"])["variant"].to_pylist())
    return {one: found[one] for one in named or sorted(found)}


def require(paths: Sequence[Path], told: Recipe, arm: Arm) -> None:
    """Raises RequestError where a variant that an arm names has no rows, or all have none that its recipe names: of
    those one may be missing, for who rewrites nothing trains as well.
    """
    named = variants(told, arm)
    missing = [one for one, rows in by_variant(paths, named).items() if not rows] if named else []
    if missing and (arm.variants or len(missing) == len(named)):
        rewritten = ", ".join(one for one in missing if one != "none")
        add = f"add {rewritten} to variants under [rewrite] in gongqing.toml, " if rewritten else ""
        raise RequestError(
            f"{paths[0].parent.name} has no rows of the variants {', '.join(missing)}: {arm.about}",
            where=paths[0].parent,
            hint=f"{add}gongqing refresh --select rewrite --select training, then release anew",
        )


def count(paths: Sequence[Path], told: Recipe, arm: Arm, most: int | None = None) -> int:
    """How many rows `write` has of an arm. Raises as it does."""
    import pyarrow.parquet as pq

    require(paths, told, arm)
    named = variants(told, arm)
    found = sum(by_variant(paths, named).values() if named else (pq.read_metadata(path).num_rows for path in paths))
    return found if most is None else min(found, most)


def write(paths: Sequence[Path], target: Path, told: Recipe, arm: Arm, most: int | None = None) -> int:
    """Write the rows of an arm as one file.

    Args:
        paths: Parquet files of a release.
        target: The file.
        told: The recipe that is trained: which rows, where the arm does not say.
        arm: Which rows, and what of them.
        most: Of them so many, drawn by a hash of their ids: two arms of equal size have the same.

    Returns:
        How many rows there are. Raises RequestError as `require` does.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    require(paths, told, arm)
    table = pa.concat_tables([pq.read_table(path) for path in paths])
    if named := variants(told, arm):
        table = table.filter(pc.is_in(table["variant"], pa.array(named)))
    if most is not None:
        drawn = sorted(range(table.num_rows), key=lambda row: unit_interval(0, "rows", table["row_id"][row].as_py()))
        table = table.take(sorted(drawn[:most]))
    if not arm.chain:
        for column, change in (("messages", _answer_alone), ("prompt", _asked_plainly)):
            if column in table.column_names:
                field = table.schema.field(column)
                changed = pa.array([change(row) for row in table[column].to_pylist()], type=field.type)
                table = table.set_column(table.column_names.index(column), field, changed)
    with writing(target) as file:
        pq.write_table(table, file)
    return int(table.num_rows)


def _asked_plainly(prompt: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": "system", "content": load(_PLAIN).text}, *prompt[1:]]


def _answer_alone(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    answer = COE.read(messages[-1]["content"])["answer"]
    return [*_asked_plainly(messages[:-1]), {**messages[-1], "content": f"<answer>{answer}</answer>"}]
