"""Where a released row comes from, sets without a row, and the prompts that a release says were used."""

import shutil
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from released_rows import FewRows, few_rows
from unique_rows import answer, post, sampled_round

from pipelines.errors import ReleaseRefused
from pipelines.judge.turns import system_prompt
from pipelines.operations.release import release
from pipelines.release.assemble import used_prompts
from pipelines.release.checks.released import CONFIGS, EXAMPLES, Released, empty, finding, origin, pinned
from pipelines.settings import Settings
from pipelines.store import Store
from pipelines.trainsets.prompt_sets import cer_system_prompt, coe_system_prompt
from schemas.tables import AFTER_RELEASE, PARTITIONED, TABLES

KNOWN = {"s:1", "s:12", "s:a/b", "smile:7", "set:x-1"}


ORIGINS = {
    "s:1/sft_coe": "s:1",
    "s:12/9f2c01ab/generic": "s:12",
    "s:123": None,  # another post, though its id begins like two that are there
    "s:a/b": "s:a/b",  # an id of a source may hold a mark itself
    "s:a/b/1": "s:a/b",
    "smile:7~P#3/2/rm_process/1": "smile:7",
    "set:x": None,
    "": None,
}


def test_the_longest_id_that_it_begins_with():
    assert {row_id: origin(row_id, KNOWN) for row_id in ORIGINS} == ORIGINS


@given(st.sampled_from(sorted(KNOWN)), st.text("#/~", min_size=1, max_size=1), st.text(max_size=8))
def test_whatever_part_of_a_row_is_made_from_that_row(whole, mark, part):
    found = origin(whole + mark + part, KNOWN)
    assert found is not None
    assert (whole + mark + part).startswith(found)
    assert len(found) >= len(whole)


def test_a_finding_counts_all_and_names_the_first_ids_sorted_and_each_once():
    assert finding("c", "w", "h", ["b", "a", "b"]).examples == ["a", "b"]
    many = finding("c", "w", "h", [str(number) for number in range(2 * EXAMPLES)])
    assert (many.count, len(many.examples)) == (2 * EXAMPLES, EXAMPLES)


def _told(home: Path):
    store = Store(home / "data")
    return empty(Released(home, store, pinned(store)[0], Settings()))


def test_an_empty_home_has_nothing_to_release(tmp_path):
    with pytest.raises(ReleaseRefused, match="nothing to release") as told:
        release(tmp_path, "v1", settings=Settings())
    (found,) = told.value.findings
    assert (found.check, found.severity, found.examples) == ("empty", "refuse", sorted(CONFIGS))
    assert "GONGQING_HOME" in found.hint
    assert not list((tmp_path / "releases").glob("*"))


def test_sets_that_the_samples_do_not_give_are_listed_with_the_reason(sample_home):
    """Nobody has labelled a candidate: what the demo adds is not among the tables of the sample home."""
    (found,) = _told(sample_home)
    store = Store(sample_home / "data")
    assert found.severity == "warn"
    assert not any(config in found.what for config in ("grpo_ecot", "sft_coe", "rm_triplets"))
    waiting = store.version("cer_candidates").rows
    assert f"sft_cer (sft_cer dropped candidate: not_labelled {waiting:,})" in found.what
    assert "rm_unified (people have labelled nothing (gongqing review export cer; docs/reviewing.md))" in found.what


def test_prompts_wait_for_no_labels(sample_home, tmp_path):
    """A home of posts alone: its set of dialogues is empty for want of dialogues."""
    shutil.copytree(sample_home / "data", tmp_path / "data")
    shutil.rmtree(tmp_path / "data" / "grpo_coe")
    store = Store(tmp_path / "data")
    store.write("grpo_cer", store.read("grpo_cer").collect().clear())
    (found,) = _told(tmp_path)
    assert "grpo_coe (never made)" in found.what
    assert "grpo_cer (there was nothing to make it from)" in found.what


def test_what_is_made_of_a_release_is_pinned_by_none(tmp_path):
    store = Store(tmp_path / "data")
    for table in sorted(AFTER_RELEASE):
        store.write(table, TABLES[table].create_empty(), partition="a run" if table in PARTITIONED else None)
    assert pinned(store) == ({}, [])


def test_every_set_names_the_prompt_that_it_is_taught_under(labelled_store):
    told = used_prompts(Released(Path(), labelled_store, pinned(labelled_store)[0], Settings()))
    judges = ("rm_process", "rm_outcome", "rm_unified")
    taught = [coe_system_prompt(), cer_system_prompt("zh"), *(system_prompt(judge, "zh") for judge in judges)]
    assert {prompt.id: prompt.name for prompt in taught}.items() <= told.items()
    assert {"ecot", "annotate.emotions", "rewrite.judge.zh"} <= told.keys()
    assert all(name.startswith(f"{prompt}@") for prompt, name in told.items())


def test_versions_of_one_prompt_stand_side_by_side_and_an_unknown_text_by_its_digest():
    class Pinned:
        table = "sft_coe"

    def chat(text):
        said = [{"role": "system", "content": text}, {"role": "user", "content": "问"}]
        return {"row_id": text[:4], "split": "train", "variant": "none", "messages": said}

    rows = [chat(coe_system_prompt().text), chat("你是倾听者"), chat("你是另一位倾听者")]
    chats = pl.DataFrame(rows, schema=TABLES["sft_coe"].polars_schema())
    released = few_rows(split_of={"g1": "train"}, sft_coe=chats)
    object.__setattr__(released, "pins", {"sft_coe": Pinned()})
    told = used_prompts(released)
    assert told["coe"] == coe_system_prompt().name
    assert len(told["sft_coe"].split(", ")) == 2


def few_of_all() -> FewRows:
    """Two posts, one of which holds an answer that was moved to it; two dialogues; and what is made from them."""
    posts = (
        post(1, "我最近睡不好，总是想工作上的事情。", answer("s:1/a", "慢慢来。"), answer("s:8/m", "别急。")),
        post("1/2", "和室友吵架了，不想回宿舍。", answer("s:1/2/a", "抱抱。")),
    )
    said = [sampled_round(name, at, ["seeker: 我和家里人吵了一架。"], "嗯。") for name in (3, 4) for at in (1, 2)]
    triplet = {"made_from": "s:1/2", "split": "train", "positive_id": "s:1/2/a", "kind": "other_answer"}
    negatives = {"own": ["s:9/x"], "theirs": ["s:1/a"], "moved": ["s:8/m"], "many": ["s:9/x", "s:8/m"]}
    triplets = [triplet | {"row_id": f"s:1/2/{name}", "negative_ids": ids} for name, ids in negatives.items()]
    triplets.append(triplet | {"row_id": "s:1/2/generic", "kind": "generic", "negative_ids": ["s:1/a"]})
    chats = [{"row_id": f"{row}/sft_cer", "made_from": row, "split": "train"} for row in ("s:3#1/1", "s:4#1/1~P")]
    draft = {"unit": "candidate", "row_id": "s:4#1/1", "variant": "P", "persona_id": "s:3/seeker"}
    tables = {"rm_triplets": triplets, "sft_cer": chats, "rewrite_drafts": [draft]}
    frames = {name: pl.DataFrame(rows, schema=TABLES[name].polars_schema()) for name, rows in tables.items()}
    return few_rows(*posts, said=tuple(said), split_of={"g1": "train"}, **frames)


def gone(left: Released) -> dict[str, set[str]]:
    """The rows that a release of `few_of_all` has no longer."""
    whole = few_of_all().configs
    kept = {config: set(left.configs[config]["row_id"]) if config in left.configs else set() for config in whole}
    rows = {config: set(frame["row_id"]) - kept[config] for config, frame in whole.items()}
    return {config: ids for config, ids in rows.items() if ids}


def test_without_a_post_goes_what_was_made_from_it_and_from_its_answers_and_no_namesake():
    """A generic negative stays: its sentences stand in many answers."""
    left = few_of_all().without(["s:1"])
    assert gone(left) == {"grpo_ecot": {"s:1"}, "rm_triplets": {"s:1/2/theirs", "s:1/2/moved", "s:1/2/many"}}
    assert set(left.rows["origin"]) == {"s:1/2", "s:3", "s:4"}
    assert gone(few_of_all().without(["s:1/2"]))["grpo_ecot"] == {"s:1/2"}


def test_without_a_dialogue_go_its_rounds_and_what_was_rewritten_to_its_persona():
    rounds, rewritten = {"s:3#1", "s:3#2"}, {"s:3#1/1/sft_cer", "s:4#1/1~P/sft_cer"}
    left = few_of_all().without(["s:3"])
    assert gone(left) == {"grpo_cer": rounds, "sft_cer": rewritten}
    both = left.without(["s:1"])
    assert gone(both) == gone(left) | gone(few_of_all().without(["s:1"])), "what was left out before stays out"


def test_of_a_dialogue_that_was_rewritten_to_its_persona_every_variant_goes_and_the_original_stays():
    def rewritten(source: int, variant: str, persona: int) -> dict:
        ids = {"dialogue_id": f"s:{source}~{variant}", "source_dialogue_id": f"s:{source}", "variant": variant}
        return ids | {"persona_id": f"s:{persona}/seeker" if variant == "P" else None}

    told = few_of_all()
    rows = [rewritten(source, variant, persona) for source, persona in ((4, 3), (5, 4)) for variant in "DRP"]
    labels = [rewritten(4, variant, 3) | {"round": 2, "candidate": 1} for variant in "DRP"]
    prompts = [{"row_id": f"{row['dialogue_id']}#1", "split": "train", "variant": row["variant"]} for row in rows]
    chats = [{"row_id": f"s:4~{variant}#2/1/unified", "split": "train", "variant": variant} for variant in "DRP"]
    made = {"rewritten_dialogues": rows, "rewritten_rounds": labels, "grpo_cer": prompts, "rm_unified": chats}
    frames = {name: pl.DataFrame(rows, schema=TABLES[name].polars_schema()) for name, rows in made.items()}
    frames["grpo_cer"] = pl.concat([told.table("grpo_cer"), frames["grpo_cer"]])
    object.__setattr__(told, "tables", {**told.tables, **frames})
    left = told.without(["s:3"])
    assert set(left.configs["grpo_cer"]["row_id"]) == {"s:4#1", "s:4#2", *(f"s:5~{one}#1" for one in "DRP")}
    assert "rm_unified" not in left.configs
