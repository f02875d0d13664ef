"""The rows of an ablation: those of the release, some of them, or without the reasoning before the answer.

Where nothing is chosen or changed, the release's own files are read.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.core.files import writing
from pipelines.errors import RequestError
from pipelines.llm.prompts import load
from pipelines.train.recipe import Ablation, Recipe
from schemas.ids import unit_interval
from schemas.reasoning import COE

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN = Path(__file__).parent / "prompts" / "coe_plain.md"


def variants_of(recipe: Recipe, ablation: Ablation) -> tuple[str, ...]:
    """Which variants are learnt from: the ablation's, or else the recipe's; neither: all."""
    return ablation.variants or recipe.variants


def are_rewritten(recipe: Recipe, ablation: Ablation, most: int | None) -> bool:
    """Whether the rows of an ablation, `most` of them at most, are written for it: they are chosen, or changed."""
    return bool(variants_of(recipe, ablation)) or not ablation.chain or most is not None


def count_variants(paths: Sequence[Path], names: Sequence[str] = ()) -> dict[str, int]:
    """The rows of each variant that is named, also of one that has none; without names: of each that occurs."""
    import pyarrow.parquet as pq

    counts: Counter[str] = Counter()
    for path in paths:
        known = set(pq.read_schema(path).names)
        table = pq.read_table(path, columns=[name for name in ("row_id", "variant") if name in known])
        counts.update(_variants(table).to_pylist())
    return {name: counts[name] for name in names or sorted(counts)}


def count_unreviewed(paths: Sequence[Path]) -> int:
    """The number of rows of `sft_coe` whose chain no professional has reviewed: all where no row tells."""
    import pyarrow.parquet as pq

    unreviewed = 0
    for path in paths:
        noted = "reviewed" in pq.read_schema(path).names
        reviewed = pq.read_table(path, columns=["reviewed"])["reviewed"].to_pylist() if noted else []
        unreviewed += pq.read_metadata(path).num_rows - reviewed.count(True)
    return unreviewed


def _variants(table: "pa.Table") -> "pa.ChunkedArray":
    """The variant of each row; rows of a set that knew none are as they were written."""
    import pyarrow as pa

    if "variant" in table.column_names:
        return table["variant"].fill_null("none")
    return pa.chunked_array([pa.repeat("none", table.num_rows)])


def require_variants(paths: Sequence[Path], recipe: Recipe, ablation: Ablation) -> None:
    """Raises RequestError where a variant that an ablation names has no rows, or all those that its recipe names: of
    these one may be missing, for people without rewritings train as well.
    """
    names = variants_of(recipe, ablation)
    missing = [name for name, rows in count_variants(paths, names).items() if not rows] if names else []
    if missing and (ablation.variants or len(missing) == len(names)):
        rewritten = ", ".join(name for name in missing if name != "none")
        sections = "[rewrite] and [sampling]" if recipe.trainer == "grpo" else "[rewrite]"
        add = f"add {rewritten} to variants under {sections} in gongqing.toml, " if rewritten else ""
        raise RequestError(
            f"{paths[0].parent.name} has no rows of the variants {', '.join(missing)}: {ablation.about}",
            where=paths[0].parent,
            hint=f"{add}gongqing refresh, and then another release",
        )


def count_rows(paths: Sequence[Path], recipe: Recipe, ablation: Ablation, most: int | None = None) -> int:
    """The number of training rows that `write_rows` writes. Raises as `require_variants` does."""
    import pyarrow.parquet as pq

    require_variants(paths, recipe, ablation)
    names = variants_of(recipe, ablation)
    counts = count_variants(paths, names).values() if names else [pq.read_metadata(path).num_rows for path in paths]
    return sum(counts) if most is None else min(sum(counts), most)


def write_rows(
    paths: Sequence[Path], target: Path, recipe: Recipe, ablation: Ablation, most: int | None = None
) -> None:
    """Write the rows of an ablation, out of a release's Parquet files of one split, as one file: `most` of them, drawn
    by a hash of their ids, so that two ablations of equal size have the same. Held-out rows are as they were written,
    of no other variant, so all ablations are validated on the same.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pa.concat_tables([pq.read_table(path) for path in paths])
    if names := variants_of(recipe, ablation):
        table = table.filter(pc.is_in(_variants(table), pa.array(names)))
    if most is not None:
        drawn = sorted(range(table.num_rows), key=lambda row: unit_interval(0, "rows", table["row_id"][row].as_py()))
        table = table.take(sorted(drawn[:most]))
    if not ablation.chain:
        for column, change in (("messages", _answer_alone), ("prompt", _without_chain)):
            if column in table.column_names:
                field = table.schema.field(column)
                changed = pa.array([change(row) for row in table[column].to_pylist()], type=field.type)
                table = table.set_column(table.column_names.index(column), field, changed)
    with writing(target) as file:
        pq.write_table(table, file)


def _without_chain(prompt: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": "system", "content": load(_PLAIN).text}, *prompt[1:]]


def _answer_alone(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    answer = COE.read(messages[-1]["content"])["answer"]
    return [*_without_chain(messages[:-1]), {**messages[-1], "content": f"<answer>{answer}</answer>"}]
