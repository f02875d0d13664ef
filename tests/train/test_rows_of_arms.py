"""The rows of an arm: fewer, of some variants, or without the reasoning before the answer."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.errors import RequestError
from pipelines.release.releases import Releases
from pipelines.train.recipe import Arm, recipe
from pipelines.train.rows import changes, write
from schemas.reasoning import COE

pytestmark = pytest.mark.xdist_group("training")  # the home is made there


def files(home: Path, rows: str) -> list[Path]:
    return sorted((Releases(home).folder("v1") / rows).glob("train-*.parquet"))


def test_the_papers_own_set_up_reads_the_files_of_the_release():
    assert not changes(Arm(about=""), None)


def test_an_arm_learns_from_its_variants_alone(training_home: Path, tmp_path: Path):
    arm = recipe("unifireward").arm("r")
    write(files(training_home, "rm_unified"), tmp_path / "rows.parquet", arm)
    found = pq.read_table(tmp_path / "rows.parquet")
    whole = pq.read_table(files(training_home, "rm_unified"))
    assert set(found["variant"].to_pylist()) == {"none", "R"}
    assert found.num_rows == sum(one in ("none", "R") for one in whole["variant"].to_pylist())
    assert found.schema == whole.schema


def test_without_a_chain_the_answer_alone_is_asked_for_and_taught(training_home: Path, tmp_path: Path):
    arm = recipe("empathy_sft").arm("no_coe")
    [path] = files(training_home, "sft_coe")
    write([path], tmp_path / "rows.parquet", arm)
    for was, row in zip(
        pq.read_table(path)["messages"].to_pylist(),
        pq.read_table(tmp_path / "rows.parquet")["messages"].to_pylist(),
        strict=True,
    ):
        answer = COE.read(was[-1]["content"])["answer"]
        assert row[-1] == {"role": "assistant", "content": f"<answer>{answer}</answer>"}
        assert row[1] == was[1]
        assert not any(tag in row[0]["content"] for tag in ("L1", "empathy_think"))


def test_a_policy_without_a_chain_is_asked_as_its_warm_start_was(training_home: Path, tmp_path: Path):
    for rows, name in (("sft_coe", "taught"), ("grpo_coe", "asked")):
        write(files(training_home, rows), tmp_path / f"{name}.parquet", Arm(about="", chain=False))
    taught = pq.read_table(tmp_path / "taught.parquet")["messages"].to_pylist()
    asked = pq.read_table(tmp_path / "asked.parquet")["prompt"].to_pylist()
    assert {row[0]["content"] for row in taught} == {row[0]["content"] for row in asked}


def test_so_many_rows_are_the_same_whatever_else_is_there(training_home: Path, tmp_path: Path):
    [path] = files(training_home, "grpo_coe")
    arm = Arm(about="")
    assert write([path], tmp_path / "20.parquet", arm, 20) == 20
    assert write([path], tmp_path / "30.parquet", arm, 30) == 30
    twenty, thirty = (set(pq.read_table(tmp_path / f"{n}.parquet")["row_id"].to_pylist()) for n in (20, 30))
    assert twenty < thirty
    assert write([path], tmp_path / "all.parquet", arm, 10**6) == pq.read_metadata(path).num_rows


def test_an_arm_without_rows_says_what_is_missing(training_home: Path, tmp_path: Path):
    with pytest.raises(RequestError, match="no row is left of sft_coe") as error:
        write(files(training_home, "sft_coe"), tmp_path / "rows.parquet", Arm(about="", variants=("D",)))
    assert "variants D" in str(error.value)
    assert not (tmp_path / "rows.parquet").exists()
