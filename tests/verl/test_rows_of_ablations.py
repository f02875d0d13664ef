"""The rows of an ablation: fewer, of some variants, or without the reasoning before the answer."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.errors import RequestError
from pipelines.store.releases import Releases
from pipelines.train.prepare import prepare
from pipelines.train.recipe import Ablation, Recipe, load_recipe, recipe_names
from pipelines.train.rows import are_rewritten, count_rows, count_variants, require_variants, write_rows
from schemas.reasoning import COE

pytestmark = pytest.mark.xdist_group("training")  # the home is made there

# Of C's rewriting, and learnt from in five recipes.
LEARNT_FROM = {
    **dict.fromkeys(("unifireward", "compeer_sft", "compeer_cer"), ("none", "P")),
    **dict.fromkeys(("compeer_prm", "compeer_orm"), ("none",)),
}


def files(home: Path, rows: str) -> list[Path]:
    return sorted((Releases(home).folder("v1") / rows).glob("train-*.parquet"))


def some(target: Path, home: Path, recipe: Recipe, *variants: str) -> list[Path]:
    """A set of these variants alone."""
    [path] = files(home, recipe.rows)
    rows = pq.read_table(path)
    pq.write_table(rows.filter(pc.is_in(rows["variant"], pa.array(variants))), target)
    return [target]


def written(paths: list[Path], target: Path, recipe: Recipe, ablation: str = "", most: int | None = None) -> pa.Table:
    write_rows(paths, target, recipe, recipe.ablation(ablation), most)
    return pq.read_table(target)


def test_the_files_of_the_release_are_read_where_no_rows_are_chosen():
    chosen = [name for name in recipe_names() if are_rewritten(load_recipe(name), Ablation(about=""), None)]
    assert chosen == sorted(LEARNT_FROM)


@pytest.mark.parametrize("name", ["unifireward", "compeer_cer"])
def test_an_ablation_learns_from_its_variants_alone(training_home: Path, tmp_path: Path, name: str):
    recipe = load_recipe(name)
    paths = files(training_home, recipe.rows)
    rows, whole = written(paths, tmp_path / "rows.parquet", recipe, "r"), pq.read_table(paths)
    assert set(rows["variant"].to_pylist()) == {"none", "R"}
    assert rows.num_rows == sum(one in ("none", "R") for one in whole["variant"].to_pylist())
    assert rows.schema == whole.schema
    counts = count_variants(paths)
    assert counts["D"] == counts["R"] == counts["P"] > 0


def test_a_set_of_an_older_version_is_as_it_was_written(training_home: Path, tmp_path: Path):
    """Its rows say nothing of variants."""
    recipe = load_recipe("compeer_cer")
    [path] = files(training_home, recipe.rows)
    older = [tmp_path / "older.parquet"]
    pq.write_table(pq.read_table(path).drop_columns(["variant"]), older[0])
    require_variants(older, recipe, recipe.ablation(""))
    assert written(older, tmp_path / "rows.parquet", recipe).num_rows == pq.read_metadata(path).num_rows
    with pytest.raises(RequestError, match=r"(?s)variants P: .* add P to variants under \[rewrite\] and \[sampling\]"):
        require_variants(older, recipe, recipe.ablation("p"))


def test_chains_that_nobody_has_reviewed_are_counted_where_chains_are_learnt(training_home: Path):
    runs = (("empathy_sft", ""), ("empathy_sft", "no_coe"), ("unifireward", ""))
    prepared = [prepare(training_home, load_recipe(name), "cpu_smoke", ablation=ablation) for name, ablation in runs]
    assert [run.unreviewed for run in prepared] == [prepared[0].rows, 0, 0]
    assert prepared[0].rows > 0


def test_without_a_chain_the_answer_alone_is_taught_and_the_policy_has_the_same_prompt(
    training_home: Path, tmp_path: Path
):
    [path] = files(training_home, "sft_coe")
    taught = written([path], tmp_path / "sft.parquet", load_recipe("empathy_sft"), "no_coe")["messages"].to_pylist()
    whole = pq.read_table(path)["messages"].to_pylist()
    assert whole
    for before, row in zip(whole, taught, strict=True):
        answer = COE.read(before[-1]["content"])["answer"]
        assert row[-1] == {"role": "assistant", "content": f"<answer>{answer}</answer>"}
        assert row[1] == before[1]
        assert not any(tag in row[0]["content"] for tag in ("L1", "empathy_think"))
    paths = files(training_home, "grpo_coe")
    prompts = written(paths, tmp_path / "grpo.parquet", load_recipe("empathy_coe"), "no_coe")["prompt"].to_pylist()
    assert {row[0]["content"] for row in taught} == {row[0]["content"] for row in prompts}


def test_some_rows_are_the_same_whatever_else_is_there(training_home: Path, tmp_path: Path):
    [path] = files(training_home, "grpo_coe")
    recipe = load_recipe("empathy_coe")
    tables = {n: written([path], tmp_path / f"{n}.parquet", recipe, most=n) for n in (20, 30, 10**6)}
    assert [table.num_rows for table in tables.values()] == [20, 30, pq.read_metadata(path).num_rows]
    assert set(tables[20]["row_id"].to_pylist()) < set(tables[30]["row_id"].to_pylist())


def test_without_an_ablation_the_recipe_names_the_variants_and_one_that_is_a_recipe_those_of_that(
    training_home: Path, tmp_path: Path
):
    for name, variants in LEARNT_FROM.items():
        recipe = load_recipe(name)
        paths = files(training_home, recipe.rows)
        counts = count_variants(paths)
        assert set(counts) == {"none", "D", "R", "P"}
        rows = written(paths, tmp_path / "rows.parquet", recipe)
        assert count_variants([tmp_path / "rows.parquet"]) == {one: counts[one] for one in variants}
        assert rows.num_rows == count_rows(paths, recipe, recipe.ablation(""))
        assert rows.num_rows == sum(counts[one] for one in variants)
    run = prepare(training_home, load_recipe("compeer_cer"), "cpu_smoke", ablation="sft")
    counts = count_variants(files(training_home, "sft_cer"))
    assert run.rows == counts["none"] + counts["P"] < sum(counts.values())


def test_all_ablations_are_validated_on_the_same_held_out_rows_as_they_were_written(
    training_home: Path, tmp_path: Path
):
    for name in ("unifireward", "compeer_prm", "compeer_orm", "compeer_cer"):
        recipe = load_recipe(name)
        run = prepare(training_home, recipe, "cpu_smoke")
        whole = pq.read_table(run.files["validation"])
        assert set(whole["variant"].to_pylist()) == {"none"}
        assert set(whole["split"].to_pylist()) == {"validation"}
        for ablation in ("", *recipe.ablations):
            assert written(list(run.files["validation"]), tmp_path / "rows.parquet", recipe, ablation).equals(whole)
        assert set(pq.read_table(run.files["train"])["split"].to_pylist()) == {"train"}


@pytest.mark.parametrize("ablation", ["d", "r"])
def test_an_ablation_without_rows_of_one_of_its_variants_is_refused(persona_home: Path, ablation: str):
    recipe, variant = load_recipe("unifireward"), ablation.upper()
    paths = files(persona_home, "rm_unified")
    assert set(count_variants(paths)) == {"none", "P"}
    for refused in (
        lambda: count_rows(paths, recipe, recipe.ablation(ablation)),
        lambda: prepare(persona_home, recipe, "cpu_smoke", ablation=ablation),
    ):
        with pytest.raises(RequestError, match=f"rm_unified has no rows of the variants {variant}: ") as error:
            refused()
        assert error.value.where == paths[0].parent
        assert f"add {variant} to variants under [rewrite]" in error.value.hint


def test_without_an_ablation_one_variant_may_be_missing_and_not_all(training_home: Path, tmp_path: Path):
    recipe = load_recipe("unifireward")
    paths = some(tmp_path / "none.parquet", training_home, recipe, "none", "D")
    none = count_variants(paths)["none"]
    assert written(paths, tmp_path / "rows.parquet", recipe).num_rows == none
    assert count_variants([tmp_path / "rows.parquet"], recipe.variants) == {"none": none, "P": 0}
    with pytest.raises(RequestError, match="has no rows of the variants none, P") as error:
        count_rows(some(tmp_path / "r.parquet", training_home, recipe, "R"), recipe, recipe.ablation(""))
    assert "add P to variants" in error.value.hint


def test_a_run_shows_its_variants_where_they_are_several(persona_home: Path):
    for name, ablation, variants in (
        ("unifireward", "", "none P"),
        ("unifireward", "none", ""),
        ("mindchat_ecot", "", ""),
    ):
        run = prepare(persona_home, load_recipe(name), "cpu_smoke", ablation=ablation, most_rows=40)
        for split, paths in run.files.items():
            write_rows(paths, run.folder / "data" / f"{split}.parquet", run.recipe, run.ablation, 40)
        counts = run._variants()
        assert set(counts) == set(variants.split())
        assert sum(counts.values()) == (run.rows if variants else 0)
        assert all(counts.values())
