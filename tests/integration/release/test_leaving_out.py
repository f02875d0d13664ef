"""Two splits that tell the same: the side that trains is left out, with all that was made from it, and listed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from planted_home import of_split, planted_home, say
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.errors import ReleaseRefused, RequestError
from pipelines.operations.erase.erasing import erase
from pipelines.operations.erase.survey import Request
from pipelines.operations.release import export, release
from pipelines.release.assemble import FEW, require_few
from pipelines.release.changes import changes
from pipelines.release.checks.leaks import LEAKS, near_duplicates, text_reuse
from pipelines.release.checks.released import CONFIGS, Released, finding, pinned
from pipelines.release.publish.jsonl import export_jsonl
from pipelines.settings import Release as Allowed
from pipelines.settings import Settings
from pipelines.store import Store
from pipelines.store.release_manifest import Release
from pipelines.store.releases import Releases


class Leaks:
    """A question that trains in the words of one that is held out, and a dialogue that retells another such."""

    def __init__(self, store: Store) -> None:
        splits = dict(store.read("splits").select("group_id", "split").collect().iter_rows())
        posts = store.read("unique_posts").collect().sort("post_id").to_dicts()
        self.held_out = next(post for post in posts if splits[post["group_id"]] == "test")
        self.ids: dict[str, str] = {}

    def ecot(self, rows: list[dict[str, Any]]) -> None:
        copied = of_split(rows, "train", 1)
        say(
            copied, of_split(rows, "test", 1)["extra_info"]["dialogue"][0]["text"].replace("。", "！", 2) + "谢谢大家。"
        )
        self.ids["near_duplicates"] = copied["row_id"]

    def cer(self, rows: list[dict[str, Any]]) -> None:
        told = [part for part in self.held_out["description"].split("。") if part]
        row = of_split(rows, "train")
        say(row, f"老师您好，我想和您说说，{told[0]}，就是这样。", *(f"其实吧，{part[:-4]}……" for part in told[1:]))
        self.ids["text_reuse"] = row["row_id"].partition("#")[0]


@pytest.fixture(scope="module")
def leaking(sample_home: Path, released_home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Leaks]:
    """Tests write releases into it, and no tables."""
    leaks = Leaks(Store(sample_home / "data"))
    edits = {"grpo_ecot": leaks.ecot, "grpo_cer": leaks.cer}
    return planted_home(sample_home, tmp_path_factory.mktemp("leaking"), edits, read=released_home), leaks


@pytest.fixture(scope="module")
def made(leaking: tuple[Path, Leaks]) -> Release:
    return release(leaking[0], "v1", settings=Settings())


class OfFiles(Released):
    """The sets as they lie in a folder, over the tables of the home."""

    folder: Path

    def table(self, table: str) -> pl.DataFrame:
        files = sorted((self.folder / table).glob("*.parquet"))
        empty = super().table(table).clear() if table in CONFIGS else super().table(table)
        return pl.concat([empty, *(pl.read_parquet(file).select(empty.columns) for file in files)])


def in_folder(home: Path, folder: Path) -> OfFiles:
    store = Store(home / "data")
    files = OfFiles(home, store, pinned(store)[0], Settings())
    object.__setattr__(files, "folder", folder)
    return files


def test_the_side_that_trains_goes_with_what_was_made_from_it_and_the_manifest_lists_it(leaking, made):
    home, leaks = leaking
    assert {one.check for one in made.findings if one.severity == "leave_out"} == leaks.ids.keys() == set(LEAKS)
    assert not [one for one in made.findings if one.severity == "refuse"]
    listed = {check: {one.config: one.row_ids for one in made.left_out if one.check == check} for check in LEAKS}
    copied, retold = leaks.ids["near_duplicates"], leaks.ids["text_reuse"]
    assert {"grpo_ecot", "grpo_coe", "sft_coe", "rm_triplets"} == listed["near_duplicates"].keys()
    assert listed["near_duplicates"]["sft_coe"] == [f"{copied}/sft_coe"]
    others = [row for row in listed["near_duplicates"]["rm_triplets"] if not row.startswith(copied)]
    assert others, "its answers are negatives of other questions"
    assert listed["text_reuse"].keys() == {"grpo_cer"}
    rewritten = Store(home / "data").read("rewritten_dialogues").collect()
    personas = pl.concat_list("persona_id", "supporter_persona_id").list.eval(pl.element().str.split("/").list.first())
    to_it = rewritten.filter(personas.list.contains(retold) | (pl.col("source_dialogue_id") == retold))["dialogue_id"]
    assert {row.partition("#")[0] for row in listed["text_reuse"]["grpo_cer"]} == {retold, *to_it}
    assert len(listed["text_reuse"]["grpo_cer"]) > 1, "all of its rounds, though one of them was planted"
    store = Store(home / "data")
    gone = [(one.config, row) for one in made.left_out for row in one.row_ids]
    assert len(gone) == len(set(gone)) == sum(one.count for one in made.left_out)
    for config in made.configs:
        whole = store.read(config, made.pins[config]).collect()
        left = Releases(home).frame("v1", config).collect()
        assert sorted(whole["row_id"]) == sorted([*left["row_id"], *(row for one, row in gone if one == config)])
        held_out = whole.filter(pl.col("split") != "train")
        assert set(held_out["row_id"]) <= set(left["row_id"]), "no test set shrinks"
    negatives = Releases(home).frame("v1", "rm_triplets").select(pl.col("negative_ids").explode()).collect()
    assert not [one for one in negatives["negative_ids"] if one.startswith(f"{copied}/")]
    counted = {source.name: source.rows for source in made.sources}
    assert counted == {"sample": sum(made.rows(config) for config in made.configs)}


def test_the_same_home_gives_the_same_release_and_strict_none(leaking, made):
    home, _ = leaking
    assert release(home, "v1", settings=Settings()) == made
    names = Releases(home).names()
    with pytest.raises(ReleaseRefused, match="tell the same story") as strict:
        release(home, "v2", strict=True, settings=Settings())
    assert {one.check for one in strict.value.findings if one.severity == "refuse"} >= set(LEAKS)
    with pytest.raises(RequestError, match="holds something else"):
        release(home, "v1", strict=True, settings=Settings())
    assert Releases(home).names() == names


def test_no_exporter_writes_them_and_the_checks_find_no_leak_in_what_it_wrote(leaking, made, tmp_path):
    home, leaks = leaking
    published = export(home, "v1", tmp_path / "out")
    for folder in (Releases(home).folder("v1"), tmp_path / "out"):
        exported = in_folder(home, folder)
        assert sum(rows.height for rows in exported.configs.values()) == sum(map(made.rows, made.configs))
        assert not [*near_duplicates(exported), *text_reuse(exported)]
    assert [one.count for one in published.left_out] == [one.count for one in made.left_out]
    assert not any(one.row_ids for one in published.left_out), "whose words they are is for the home to know"
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    rows = sum(one.count for one in made.left_out if one.check == "text_reuse")
    assert f"tell the same story: {rows} rows are left out (posts or dialogues: 1)" in card
    (tmp_path / "jsonl").mkdir()
    export_jsonl(made, Releases(home).folder("v1"), tmp_path / "jsonl", "openai")
    for written in (*(tmp_path / "out").rglob("*.*"), *(tmp_path / "jsonl").rglob("*.jsonl")):
        content = written.read_bytes()
        assert not [row for row in leaks.ids.values() if row.encode() in content], written


def test_more_than_a_few_and_than_the_share_that_the_settings_allow_is_refused(labelled_store):
    whole = Released(Path(), labelled_store, pinned(labelled_store)[0], Settings())
    total = whole.rows["origin"].n_unique()
    mended = [finding("near_duplicates", "pairs", "hint", ["a"], severity="leave_out")]
    for share, allowed in ((0.0, FEW), (0.5, total // 2)):
        bound = replace(whole, settings=Settings(release=Allowed(left_out=share)))
        require_few("v1", bound, [str(number) for number in range(allowed)], mended)
        with pytest.raises(ReleaseRefused, match="pairs") as refused:
            require_few("v1", bound, [str(number) for number in range(allowed + 1)], mended)
        [one] = refused.value.findings
        assert (one.severity, f"{allowed + 1} of {total} posts" in one.hint) == ("refuse", True)


def test_what_is_left_out_is_erased_like_anything_else(sample_home, released_home, leaking, tmp_path):
    _, leaks = leaking
    edits = {"grpo_ecot": Leaks(Store(sample_home / "data")).ecot}
    home = planted_home(sample_home, tmp_path / "home", edits, read=released_home)
    before = release(home, "v1", settings=Settings())
    copied = leaks.ids["near_duplicates"]
    assert copied in before.to_bytes().decode()
    erase(home, Request(rows=(copied,)))
    after = Releases(home).read("v1")
    assert copied not in after.to_bytes().decode()
    assert [one.count for one in after.left_out] == [one.count for one in before.left_out]
    assert after.configs == before.configs


def test_two_releases_differ_by_what_one_leaves_out(sample_home, released_home, tmp_path):
    home = planted_home(sample_home, tmp_path / "home", read=released_home)
    release(home, "v1", settings=Settings())
    leaks = Leaks(Store(sample_home / "data"))
    planted_home(sample_home, home, {"grpo_ecot": leaks.ecot})
    made = release(home, "v2", settings=Settings())
    difference = changes(home, "v1", "v2")
    removed = {(row.config, row.split): row.removed for row in difference.rows if row.removed}
    assert removed == {(one.config, "train"): one.count for one in made.left_out}
    assert any("rows are left out" in what for what in difference.findings["near_duplicates"][1])


def test_a_manifest_of_an_older_gongqing_leaves_out_nothing(made):
    older = made.model_dump(mode="json", exclude={"left_out"})
    assert Release.model_validate_json(json.dumps(older)).left_out == []


def test_on_the_command_line(leaking, made, monkeypatch):
    home, leaks = leaking
    monkeypatch.setenv("GONGQING_HOME", str(home))
    monkeypatch.setenv("GONGQING_RELEASE__LEFT_OUT", "0.02")
    ran = CliRunner().invoke(app, ["release", "v3"])
    assert ran.exit_code == 0, ran.output
    number = sum(one.count for one in made.left_out)
    assert f"({number} left out)" in ran.output
    assert "rows left out" in " ".join(ran.output.split())
    refused = CliRunner().invoke(app, ["release", "v4", "--strict", "--json"])
    assert isinstance(refused.exception, ReleaseRefused)
    refusals = [one for one in json.loads(refused.stdout) if one["severity"] == "refuse"]
    named = " ".join(example for one in refusals for example in one["examples"])
    assert all(row in named for row in leaks.ids.values())
