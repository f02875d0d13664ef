"""The main job on real public data, as the command line shows it (needs ../shared/data)."""

import json
import os
import subprocess
from pathlib import Path

import polars as pl
import pytest
from answered import GONGQING

from schemas.reasoning import CER_TAGS

pytestmark = pytest.mark.slow

# Rows kept and dropped, by table and partition, where they do not hang on what a model says.
EXPECTED = {
    ("imported_posts", "psyqa"): (100, 0),
    ("imported_dialogues", "cpsycoun"): (359, 0),
    ("imported_dialogues", "esconv"): (196, 0),
    ("imported_dialogues", "smile"): (267, 0),
    ("clean_posts", None): (99, 2),
    ("clean_dialogues", None): (816, 6),
    ("unique_posts", None): (98, 1),
    ("unique_dialogues", None): (788, 28),
    ("splits", None): (776, 0),
    ("topics", None): (17, 81),
    ("emotions", None): (302, 63),
    ("rewritten_rounds", None): (0, 0),
    ("rm_process", None): (0, 0),
    ("rm_outcome", None): (0, 0),
    ("rm_unified", None): (0, 0),
}


def _gongqing(home: Path, *arguments: str) -> str:
    ran = subprocess.run(
        [*GONGQING, *arguments], env={**os.environ, "GONGQING_HOME": str(home)}, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_every_table_has_the_rows_to_expect(real_home):
    listed = json.loads(_gongqing(real_home, "tables", "--json"))
    found = {(row["table"], row["partition"]): (row["rows"], row["dropped"]) for row in listed}
    assert {place: rows for place, rows in found.items() if place in EXPECTED} == EXPECTED
    answered = {table: rows for (table, partition), (rows, _) in found.items() if (table, partition) not in EXPECTED}
    assert len(answered) == 19
    assert {table for table, rows in answered.items() if not rows} == {
        "sft_cer",
        "agreements",
    }  # nobody has labelled anything


def test_a_prompt_is_one_that_a_counsellor_could_answer(real_home):
    """A system prompt with the grammar, then the conversation up to the seeker; the reply waits in extra_info."""
    (row,) = json.loads(_gongqing(real_home, "show", "grpo_cer", "-n", "1", "--json"))
    system, *conversation = row["prompt"]
    assert all(f"<{tag}>" in system["content"] for tag in CER_TAGS)
    assert [message["role"] for message in conversation] == ["user", "assistant"] * (len(conversation) // 2) + ["user"]
    assert [turn["text"] for turn in row["extra_info"]["dialogue"]] == [message["content"] for message in conversation]
    assert row["extra_info"]["references"] == [row["reward_model"]["ground_truth"]]


def test_one_case_told_29_times_does_not_end_in_29_rewrites_of_one_persona(real_store):
    """One of them is left after the search for near-duplicates, with one rewrite of its own."""
    told = real_store.read("unique_dialogues").filter(pl.col("cluster_size") == 29).collect()
    again = real_store.read_dropped("unique_dialogues").filter(pl.col("reason") == "near_duplicate").collect()
    assert (told.height, again.height) == (1, 28)
    one_case = {*told["dialogue_id"], *again["row_id"]}
    for table, of in (("disc_profiles", "dialogue_id"), ("rewrite_drafts", "row_id")):
        rows = pl.concat(
            [real_store.read(table).select(of), real_store.read_dropped(table).select(pl.col("row_id").alias(of))]
        )
        named = {row.partition("/")[0] for row in rows.collect()[of]}
        assert named & one_case <= set(told["dialogue_id"])
    rewritten = real_store.read("rewritten_dialogues").filter(pl.col("source_dialogue_id").is_in(one_case)).collect()
    assert rewritten.height <= 1


def test_no_persona_stands_for_many_dialogues(real_store):
    """519 rewrites: dialogues of one theme draw from all of their cluster."""
    rows = real_store.read("rewritten_dialogues").collect()
    for column in ("persona_id", "supporter_persona_id"):
        of_each = rows.group_by("lang", column).len()
        assert of_each["len"].max() <= 8
        for (lang,), drawn in of_each.group_by("lang"):
            assert drawn.height >= 0.5 * rows.filter(lang=lang).height
    of_group = rows.filter(pl.len().over("group_id") > 1).group_by("group_id", "persona_id").len()
    assert of_group["len"].max() <= 2
