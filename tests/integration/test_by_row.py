"""Stages that look at one row at a time: made only of what is new, and the same as if all were."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from unique_rows import rounds, sampled_round, splits

from pipelines.core.home import Home
from pipelines.flow.runner import Runner
from pipelines.flow.stages import STAGES
from pipelines.settings import Cleaning, Settings
from pipelines.store import Store
from pipelines.trainsets.prompt_sets import cer_prompts
from schemas.dialogues import CleanDialogues
from schemas.posts import RawPosts
from schemas.training import SampledRewrites

CLEAN = next(stage for stage in STAGES if stage.name == "clean_posts")
SETTINGS = Settings(cleaning=Cleaning(names="none"))  # each piece would take as long to look for them as the rest


def day(number: int, n_posts: int, seed: int = 0) -> pl.DataFrame:
    """Invented posts of a day, half of them too short to stay."""
    random = Random(f"{number} {seed}")
    rows = []
    for post in range(n_posts):
        source_id = f"{number:03d}{post:04d}"
        words = random.choices("我最近总是睡不着觉心里很乱不知道该怎么办才好", k=random.choice([5, 40]))
        rows.append(
            {
                "post_id": f"made:{source_id}",
                "source": "made",
                "source_id": source_id,
                "title": "我该怎么办",
                "description": "".join(words),
                "subtopics": [],
                "lang": "zh",
                "origin": "human",
                "lineage": [],
                "licence": "none",
                "consent": "invented",
                "answers": [],
            }
        )
    return pl.DataFrame(rows, schema=RawPosts.polars_schema())


def run(store: Store) -> str:
    (version,) = Runner(store, SETTINGS).run(CLEAN)
    store.verify(version)
    return version.version


def inodes(store: Store, version: str) -> set[int]:
    return {path.stat().st_ino for path in Path(store.storage.uri(f"clean_posts/{version}")).glob("*/*.parquet")}


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Store, Store]:
    """One that is refreshed day by day, and one in which all is new; pieces are of about twenty posts."""
    monkeypatch.setattr("pipelines.flow.chunks._ROWS", 20)
    return Store(Home(tmp_path / "daily").data), Store(Home(tmp_path / "whole").data)


def test_days_that_come_one_after_the_other_give_what_a_full_run_gives(stores: tuple[Store, Store]) -> None:
    daily, whole = stores
    days = list(range(5))
    Random(1).shuffle(days)
    shared = []
    for number in days:
        daily.write("raw_posts", day(number, 10 + number), partition=f"made@{number:02d}")
        before = daily.current("clean_posts")
        after = run(daily)
        if before:
            shared.append(bool(inodes(daily, before[0].version) & inodes(daily, after)))
    assert sum(shared) >= 2, "what is not new keeps its files"
    for number in range(5):
        whole.write("raw_posts", day(number, 10 + number), partition=f"made@{number:02d}")
    assert run(whole) == daily.version("clean_posts").version
    assert whole.version("clean_posts").dropped > 15


def test_a_day_that_changes_is_made_again_and_a_day_that_goes_is_gone(stores: tuple[Store, Store]) -> None:
    daily, whole = stores
    for number in range(6):
        daily.write("raw_posts", day(number, 12), partition=f"made@{number:02d}")
    run(daily)
    daily.write("raw_posts", day(3, 15, seed=1), partition="made@03")
    daily.write("raw_posts", day(5, 0), partition="made@05")
    run(daily)
    for number in range(6):
        rows = {3: day(3, 15, seed=1), 5: day(5, 0)}.get(number, day(number, 12))
        whole.write("raw_posts", rows, partition=f"made@{number:02d}")
    assert run(whole) == daily.version("clean_posts").version


def test_other_settings_make_every_piece_again(stores: tuple[Store, Store]) -> None:
    store, _ = stores
    store.write("raw_posts", day(1, 100), partition="made@01")
    first = run(store)
    settings = SETTINGS.model_copy(update={"filters": SETTINGS.filters.model_copy(update={"min_post_chars": 0})})
    (second,) = Runner(store, settings).run(CLEAN)
    assert second.dropped < store.version("clean_posts", first).dropped
    assert run(store) == first


def test_a_row_that_is_looked_up_and_changes_makes_its_piece_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`grpo_ecot` looks the split of a group up: one that moves (an older version promoted) moves its prompts alone."""
    monkeypatch.setattr("pipelines.store.parquet._CHUNK_ROWS", 10)
    monkeypatch.setattr("pipelines.flow.chunks._ROWS", 10)
    store, stages = Store(Home(tmp_path).data), {stage.name: stage for stage in STAGES}
    for number in range(4):
        store.write("raw_posts", day(number, 20), partition=f"made@{number:02d}")
    store.write("clean_dialogues", CleanDialogues.create_empty())
    for name in ("clean_posts", "unique", "grpo_ecot"):
        before = Runner(store, SETTINGS).run(stages[name])[-1]
    splits = store.read("splits").collect()
    row = store.read("grpo_ecot").filter(split="train").collect()["row_id"][0]
    group = store.read("unique_posts").filter(post_id=row).collect()["group_id"][0]
    moved = pl.when(pl.col("group_id") == group).then(pl.lit("test")).otherwise("split")
    store.write("splits", splits.with_columns(split=moved))
    (after,) = Runner(store, SETTINGS).run(stages["grpo_ecot"])
    changed = store.diff("grpo_ecot", before.version, after.version).changed
    assert changed["row_id"].to_list() == [row]
    stayed = {file.made_from for file in before.manifest.files} & {file.made_from for file in after.manifest.files}
    assert len(stayed) == len({file.made_from for file in before.manifest.files}) - 1 > 2


def test_rewritings_of_a_round_are_one_piece_wherever_their_table_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`grpo_cer`: a rewriting that is lost takes those of its round along, which stand in other chunks."""
    monkeypatch.setattr("pipelines.store.parquet._CHUNK_ROWS", 10)
    monkeypatch.setattr("pipelines.flow.chunks._ROWS", 10)
    store, stage = Store(Home(tmp_path).data), next(stage for stage in STAGES if stage.name == "grpo_cer")
    turns = [sampled_round(f"{number:02d}", 1, ["seeker: 我睡不着"], "抱抱") for number in range(40)]
    again = [rewriting(turn, variant) for turn in turns for variant in "DPR"]
    again[7]["history"] = [{"role": "seeker", "text": "我睡不着" * 2000}]
    store.write("splits", splits(g1="train"))
    store.write("sampled_turns", rounds(*turns))
    store.write("sampled_rewrites", pl.DataFrame(again, schema=SampledRewrites.polars_schema()))
    assert len(store.version("sampled_rewrites").manifest.files) > 4
    (version,) = Runner(store, SETTINGS).run(stage)
    assert len(version.manifest.files) > 4
    made = cer_prompts(
        *(store.read(name).collect() for name in ("sampled_turns", "splits")),
        rewrites=store.read("sampled_rewrites").collect(),
    )
    read = store.read("grpo_cer").collect(), store.read_dropped("grpo_cer").collect()
    for by_piece, whole in zip(read, made, strict=True):
        assert_frame_equal(by_piece, whole, check_row_order=False)
    assert Counter(read[1]["reason"]) == {"overlong_prompt": 1, "variant_lost": 2}


def rewriting(turn: dict[str, Any], variant: str) -> dict[str, Any]:
    ids = {"dialogue_id": f"{turn['dialogue_id']}~{variant}", "source_dialogue_id": turn["dialogue_id"]}
    return turn | ids | {"variant": variant}
