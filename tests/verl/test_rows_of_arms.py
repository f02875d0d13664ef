"""The rows of an arm: fewer, of some variants, or without the reasoning before the answer."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.errors import RequestError
from pipelines.store.releases import Releases
from pipelines.train.prepare import prepare
from pipelines.train.recipe import Arm, Recipe, recipe, recipes
from pipelines.train.rows import by_variant, changes, count, write
from schemas.reasoning import COE

pytestmark = pytest.mark.xdist_group("training")  # the home is made there


# Of C's rewriting, and learnt from in four recipes.
LEARNT_FROM = {
    **dict.fromkeys(("unifireward", "compeer_sft"), ("none", "P")),
    **dict.fromkeys(("compeer_prm", "compeer_orm"), ("none",)),
}


def files(home: Path, rows: str) -> list[Path]:
    return sorted((Releases(home).folder("v1") / rows).glob("train-*.parquet"))


def some(target: Path, home: Path, told: Recipe, *variants: str) -> list[Path]:
    """A set of which these variants alone are there."""
    [path] = files(home, told.rows)
    rows = pq.read_table(path)
    pq.write_table(rows.filter(pc.is_in(rows["variant"], pa.array(variants))), target)
    return [target]


def test_the_files_of_the_release_are_read_where_no_rows_are_chosen():
    chosen = [name for name in recipes() if changes(recipe(name), recipe(name).arm(""), None)]
    assert chosen == sorted(LEARNT_FROM)


def test_an_arm_learns_from_its_variants_alone(training_home: Path, tmp_path: Path):
    told = recipe("unifireward")
    write(files(training_home, "rm_unified"), tmp_path / "rows.parquet", told, told.arm("r"))
    found = pq.read_table(tmp_path / "rows.parquet")
    whole = pq.read_table(files(training_home, "rm_unified"))
    assert set(found["variant"].to_pylist()) == {"none", "R"}
    assert found.num_rows == sum(one in ("none", "R") for one in whole["variant"].to_pylist())
    assert found.schema == whole.schema


def test_without_a_chain_the_answer_alone_is_asked_for_and_taught(training_home: Path, tmp_path: Path):
    told = recipe("empathy_sft")
    [path] = files(training_home, "sft_coe")
    write([path], tmp_path / "rows.parquet", told, told.arm("no_coe"))
    whole = pq.read_table(path)["messages"].to_pylist()
    assert whole
    for was, row in zip(whole, pq.read_table(tmp_path / "rows.parquet")["messages"].to_pylist(), strict=True):
        answer = COE.read(was[-1]["content"])["answer"]
        assert row[-1] == {"role": "assistant", "content": f"<answer>{answer}</answer>"}
        assert row[1] == was[1]
        assert not any(tag in row[0]["content"] for tag in ("L1", "empathy_think"))


def test_a_policy_without_a_chain_is_asked_as_its_warm_start_was(training_home: Path, tmp_path: Path):
    for of, name in (("empathy_sft", "taught"), ("empathy_coe", "asked")):
        told = recipe(of)
        write(files(training_home, told.rows), tmp_path / f"{name}.parquet", told, told.arm("no_coe"))
    taught = pq.read_table(tmp_path / "taught.parquet")["messages"].to_pylist()
    asked = pq.read_table(tmp_path / "asked.parquet")["prompt"].to_pylist()
    assert {row[0]["content"] for row in taught} == {row[0]["content"] for row in asked}


def test_so_many_rows_are_the_same_whatever_else_is_there(training_home: Path, tmp_path: Path):
    [path] = files(training_home, "grpo_coe")
    told = recipe("empathy_coe"), Arm(about="")
    assert write([path], tmp_path / "20.parquet", *told, 20) == 20
    assert write([path], tmp_path / "30.parquet", *told, 30) == 30
    twenty, thirty = (set(pq.read_table(tmp_path / f"{n}.parquet")["row_id"].to_pylist()) for n in (20, 30))
    assert twenty < thirty
    assert write([path], tmp_path / "all.parquet", *told, 10**6) == pq.read_metadata(path).num_rows


@pytest.mark.parametrize("name", LEARNT_FROM)
def test_without_an_arm_the_recipe_says_of_which_variants_it_is_learnt(training_home: Path, tmp_path: Path, name: str):
    told = recipe(name)
    paths = files(training_home, told.rows)
    there = by_variant(paths)
    assert set(there) == {"none", "D", "R", "P"}
    written = write(paths, tmp_path / "rows.parquet", told, told.arm(""))
    assert by_variant([tmp_path / "rows.parquet"]) == {one: there[one] for one in LEARNT_FROM[name]}
    assert written == count(paths, told, told.arm("")) == sum(there[one] for one in LEARNT_FROM[name])


def test_an_arm_that_is_another_recipe_learns_from_the_variants_of_that(training_home: Path):
    run = prepare(training_home, recipe("compeer_cer"), "cpu_smoke", arm="sft")
    there = by_variant(files(training_home, "sft_cer"))
    assert run.rows == there["none"] + there["P"] < sum(there.values())


@pytest.mark.parametrize("arm", ["d", "r"])
def test_an_arm_of_whose_variants_one_has_no_rows_is_refused(persona_home: Path, tmp_path: Path, arm: str):
    told, variant = recipe("unifireward"), arm.upper()
    paths = files(persona_home, "rm_unified")
    assert set(by_variant(paths)) == {"none", "P"}
    for refused in (
        lambda: write(paths, tmp_path / "rows.parquet", told, told.arm(arm)),
        lambda: count(paths, told, told.arm(arm)),
        lambda: count(paths, told, told.arm(arm), 1),
        lambda: prepare(persona_home, told, "cpu_smoke", arm=arm),
    ):
        with pytest.raises(RequestError, match=f"rm_unified has no rows of the variants {variant}: ") as error:
            refused()
        assert error.value.where == paths[0].parent
        assert f"add {variant} to variants under [rewrite]" in error.value.hint
    assert not (tmp_path / "rows.parquet").exists()


def test_what_personas_rewrote_may_be_missing_without_an_arm_and_is_told_as_such(training_home: Path, tmp_path: Path):
    told = recipe("unifireward")
    paths = some(tmp_path / "none.parquet", training_home, told, "none", "D")
    there = by_variant(paths)
    assert write(paths, tmp_path / "rows.parquet", told, told.arm("")) == there["none"]
    assert by_variant([tmp_path / "rows.parquet"], told.variants) == {"none": there["none"], "P": 0}


def test_where_no_row_is_left_it_is_refused_without_an_arm_too(training_home: Path, tmp_path: Path):
    told = recipe("unifireward")
    paths = some(tmp_path / "r.parquet", training_home, told, "R")
    with pytest.raises(RequestError, match="has no rows of the variants none, P") as error:
        write(paths, tmp_path / "rows.parquet", told, told.arm(""))
    assert "add P to variants" in error.value.hint


def test_a_set_that_knows_no_variants_has_none(training_home: Path):
    assert by_variant(files(training_home, "grpo_coe")) == {}


@pytest.mark.parametrize(("name", "arm", "told"), [
    ("unifireward", "", {"none", "P"}),
    ("unifireward", "none", set()),
    ("empathy_sft", "", set()),
    ("mindchat_ecot", "", set()),
])  # fmt: skip
def test_a_run_knows_of_which_variants_its_rows_are_where_they_are_of_several(
    persona_home: Path, name: str, arm: str, told: set[str]
):
    run = prepare(persona_home, recipe(name), "cpu_smoke", arm=arm, most_rows=40)
    run._write_rows()
    found = run._variants()
    assert set(found) == told
    assert sum(found.values()) == (run.rows if told else 0)
    assert all(found.values())
