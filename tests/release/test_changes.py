"""What changed between two releases: counts that add up, and nothing where nothing did."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from release_rows import made, prompts, triplets

from pipelines.errors import UnknownName
from pipelines.release.changelog import markdown
from pipelines.release.changes import Lengths, Rows, changes
from pipelines.release.manifest import Finding, Source, Spend
from schemas.labels import SPLITS

IDS = st.dictionaries(st.sampled_from([f"s:{number}" for number in range(12)]), st.sampled_from(SPLITS))


@settings(max_examples=25)
@given(before=IDS, after=IDS, edited=st.booleans())
def test_counts_add_up(tmp_path_factory, before, after, edited):
    home = tmp_path_factory.mktemp("home")
    one = made(home, "v1", {"rm_triplets": triplets(*before.items())})
    other = made(home, "v2", {"rm_triplets": triplets(*after.items(), query="另问" if edited else "问")})
    told = changes(home, "v1", "v2")
    for rows in told.rows:
        assert rows.before == one.rows(rows.config, rows.split)
        assert rows.after == other.rows(rows.config, rows.split)
        assert rows.changed == (rows.kept if edited else 0)
    assert {rows.split for rows in told.rows} == {*before.values(), *after.values()}
    # What is added on the way there is removed on the way back.
    back = changes(home, "v2", "v1")
    assert [(rows.added, rows.removed, rows.kept) for rows in told.rows] == [
        (rows.removed, rows.added, rows.kept) for rows in back.rows
    ]


@settings(max_examples=10)
@given(IDS)
def test_a_release_differs_in_nothing_from_itself(tmp_path_factory, rows):
    home = tmp_path_factory.mktemp("home")
    made(home, "v1", {"rm_triplets": triplets(*rows.items())}, spend=[Spend(stage="a", model="m", calls=1, usd="1")])
    told = changes(home, "v1", "v1")
    assert told.empty
    assert markdown(told).endswith("Nothing changed.\n")


SOURCE = Source(name="s", licence="CC0", consent="invented", lineage=[], rows=2, collected="read from a.jsonl")
WARNING = Finding(check="empty", severity="warn", count=1, what="sets without a row", remedy="none")


@pytest.fixture
def two(tmp_path):
    """A home with a release, and another in which everything is different."""
    rows = prompts(("s:1", "train", "一二三四五六", "职业"), ("s:2", "test", "一二", "家庭"))
    made(
        tmp_path,
        "v1",
        {"grpo_ecot": rows},
        prompts={"ecot": "ecot@1-aa"},
        settings={"seed": 0, "sampling": {"n_samples": 3}},
        spend=[Spend(stage="topics", model="qwen-plus", calls=10, usd="0.25")],
        sources=[SOURCE],
    )
    rows = prompts(("s:1", "train", "一二三四五六七八", "职业"), ("s:3", "train", "一二三四", "职业"))
    made(
        tmp_path,
        "v2",
        {"grpo_ecot": rows, "rm_triplets": triplets(("s:1/a", "train"))},
        prompts={"ecot": "ecot@2-bb"},
        settings={"seed": 0, "sampling": {"n_samples": 2}},
        spend=[Spend(stage="topics", model="qwen-plus", calls=14, usd="0.4")],
        sources=[SOURCE.model_copy(update={"rows": 3})],
        findings=[WARNING],
    )
    return tmp_path


def test_everything_that_differs_is_told(two):
    told = changes(two, "v1", "v2")
    assert told.rows == [
        Rows("grpo_ecot", "train", added=1, removed=0, kept=1, changed=1),
        Rows("grpo_ecot", "test", added=0, removed=1, kept=0, changed=0),
        Rows("rm_triplets", "train", added=1, removed=0, kept=0, changed=0),
    ]
    assert told.topics == {"职业": (1, 2), "家庭": (1, None)}
    assert told.lengths["grpo_ecot", "seeker"] == (Lengths(2, 4.0, 4.0, 5.8), Lengths(2, 6.0, 6.0, 7.8))
    assert told.prompts == {"ecot": ("ecot@1-aa", "ecot@2-bb")}
    assert told.settings == {"sampling.n_samples": (3, 2)}
    assert told.spend["topics", "qwen-plus"][1].calls == 14
    assert [one.rows for one in told.sources["s"]] == [2, 3]
    assert told.findings == {"empty": (None, ["sets without a row"])}
    assert set(told.tables) == {"rm_triplets"}
    assert not told.empty


def test_it_is_plain_json_too(two):
    told = json.loads(json.dumps(changes(two, "v1", "v2").as_dict()))
    assert told["rows"][0] == {
        "config": "grpo_ecot",
        "split": "train",
        "added": 1,
        "removed": 0,
        "kept": 1,
        "changed": 1,
    }
    assert told["topics"]["家庭"] == [1, None]
    assert told["lengths"]["grpo_ecot/seeker"][0]["mean"] == 4.0
    assert told["spend"]["topics/qwen-plus"][1]["usd"] == "0.4"


def test_it_reads_as_a_section_of_a_changelog(two):
    told = markdown(changes(two, "v1", "v2"))
    assert told.startswith("## v2\n\nCompared with v1.\n\n### Rows\n\n| set | split |")
    assert "| grpo_ecot | train | 1 | 1 | 0 | 1 | 2 |" in told
    assert "| topics | qwen-plus | 4 | 0.15 |" in told
    assert "| sampling.n_samples | 3 | 2 |" in told
    assert "| 家庭 | 1 | – |" in told
    assert "| empty | – | sets without a row |" in told


def test_only_what_changed_is_told(tmp_path):
    rows = {"rm_triplets": triplets(("s:1", "train"))}
    made(tmp_path, "v1", rows)
    made(tmp_path, "v2", rows, prompts={"a|b": "a|b@1"})
    told = markdown(changes(tmp_path, "v1", "v2"))
    assert [line for line in told.splitlines() if line.startswith("#")] == ["## v2", "### Prompts"]
    assert r"| a\|b | – | a\|b@1 |" in told


def test_what_was_paid_in_another_currency_stands_apart(tmp_path):
    rows = {"rm_triplets": triplets(("s:1", "train"))}
    paid = [Spend(stage="topics", model="m", calls=1, usd=usd) for usd in ("0.5", "3 CNY")]
    made(tmp_path, "v1", rows)
    made(tmp_path, "v2", rows, spend=paid)
    told = markdown(changes(tmp_path, "v1", "v2"))
    assert "| topics | m | 1 | 0.5 |" in told
    assert "| topics | m CNY | 1 | 3 CNY |" in told


def test_a_name_that_is_none_is_told_with_the_nearest(two):
    with pytest.raises(UnknownName, match="v1"):
        changes(two, "v1", "v11")
