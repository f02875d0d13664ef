"""The samples show every rule at work, and are what their README says: invented, of all topics, belonging to nobody."""

import json
import re

from pipelines.settings import ROOT
from schemas.taxonomy import TAXONOMY


def _read(name: str) -> list[dict]:
    return [json.loads(line) for line in (ROOT / "samples" / name).read_text(encoding="utf-8").splitlines()]


POSTS, DIALOGUES = _read("posts.jsonl"), _read("dialogues.jsonl")


def _tagged(tag: str) -> set[str]:
    return {f"sample:{row['id']}" for row in (*POSTS, *DIALOGUES) if tag in row["shows"]}


def _dropped(store, table: str) -> dict[str, str]:
    return dict(store.read_dropped(table).select("row_id", "reason").collect().iter_rows())


def _ids(store, table: str) -> set[str]:
    return set(store.read(table).collect().to_series(0))


def test_every_topic_has_ordinary_posts_and_dialogues_and_no_two_have_one_id():
    for topic in TAXONOMY:
        assert sum(row["topic"] == topic and not row["shows"] for row in POSTS) >= 8, topic
        assert sum(row["topic"] == topic for row in DIALOGUES) >= 3, topic
    assert len({row["id"] for row in (*POSTS, *DIALOGUES)}) == len(POSTS) + len(DIALOGUES)


def test_contact_data_belong_to_nobody():
    """Unassigned numbers, example domains."""
    whole = json.dumps([POSTS, DIALOGUES], ensure_ascii=False)
    mobiles = set(re.findall(r"(?<!\d)1[3-9]\d{9}(?!\d)", whole))
    assert set() < mobiles <= {"13800138000", "19900000000"}
    hosts = re.findall(r"(?:@|https?://)([\w-]+(?:\.[\w-]+)+)", whole, flags=re.ASCII)
    assert hosts
    assert [host for host in hosts if not re.search(r"(^|\.)example\.(com|org)$", host)] == []


def test_posts_that_are_no_trouble_in_mandarin_are_dropped_with_their_reason(sample_store):
    dropped = _dropped(sample_store, "clean_posts")
    reasons = {tag: tag for tag in ("too_short", "english", "japanese", "cantonese")}
    for tag, reason in {**reasons, "notice": "not_user_content"}.items():
        rows = {row for row in _tagged(tag) if row.startswith("sample:p")}
        assert rows, tag
        assert {dropped[row] for row in rows} == {reason}, tag
    assert {row: dropped.get(row) for row in _tagged("advertisement")} == {
        **dict.fromkeys(("sample:p024", "sample:p076", "sample:p150"), "advertisement"),
        "sample:p115": "recruitment",
    }


def test_posts_that_are_not_psychological_are_dropped_or_asked_about(sample_store):
    """The recipe has hardly a person in it; of the printer and the homework a model decides."""
    dropped = _dropped(sample_store, "clean_posts")
    doubts = dict(sample_store.read("clean_posts").select("post_id", "doubts").collect().iter_rows())
    assert {row: dropped.get(row) or doubts[row] for row in _tagged("not_psychological")} == {
        "sample:p102": "little_emotional_context",
        "sample:p030": ["not_psychological"],
        "sample:p137": ["not_psychological"],
    }


def test_no_contact_datum_is_left(sample_store):
    for table, column in (("clean_posts", "text"), ("clean_posts", "answers"), ("clean_dialogues", "turns")):
        whole = json.dumps(sample_store.read(table).collect()[column].to_list(), ensure_ascii=False, default=str)
        assert not re.search(r"13800138000|19900000000|https?://|@example|example\.(com|org)", whole), (table, column)
    posts = sample_store.read("clean_posts").collect()
    counted = dict(posts.select("post_id", "pii").iter_rows())
    assert all(counted[row] for row in _tagged("personal_data") & counted.keys())


def test_signatures_and_credentials_are_cut_and_recorded(sample_store):
    of = (("unique_posts", "signature", "signature"), ("clean_posts", "credential_claim", "credential"))
    for table, tag, rule in of:
        edits = dict(sample_store.read(table).select("post_id", "edits").collect().iter_rows())
        rows = _tagged(tag) & edits.keys()
        assert rows
        assert [row for row in rows if rule not in {edit["rule"] for edit in edits[row]}] == []


def test_minors_are_marked(sample_store):
    posts = dict(sample_store.read("clean_posts").select("post_id", "under_18").collect().iter_rows())
    minors = _tagged("minor")
    assert {posts[row] for row in minors & posts.keys()} == {True}
    assert {_dropped(sample_store, "clean_posts")[row] for row in minors - posts.keys()} <= {"under_14"}


def test_each_pair_of_repeats_leaves_one(sample_store):
    for table, prefix, pairs in (("unique_posts", "sample:p", 4), ("unique_dialogues", "sample:d", 2)):
        repeats = {row for row in _tagged("exact_repeat") if row.startswith(prefix)}
        gone = {row for row, reason in _dropped(sample_store, table).items() if reason == "duplicate"} & repeats
        assert (len(repeats), len(gone)) == (2 * pairs, pairs)
        assert repeats - gone <= _ids(sample_store, table)


def test_no_prompt_is_made_of_a_post_or_dialogue_at_risk_or_of_a_minor_or_of_a_round_that_needs_a_clip(sample_store):
    tables = ("grpo_ecot", "grpo_coe", "grpo_cer")
    prompts = {re.split("[#~]", row)[0] for table in tables for row in _ids(sample_store, table)}
    for tag in ("crisis", "harm_to_others", "abuse", "minor"):
        assert _tagged(tag)
        assert _tagged(tag).isdisjoint(prompts)
    dropped = _dropped(sample_store, "grpo_cer")
    clips = {re.split("[#~]", row)[0] for row, reason in dropped.items() if reason == "needs_media"}
    assert clips == _tagged("needed_media") != set()
    assert set() < _tagged("media") <= prompts, "what is said of these clips does"


def test_rewritings_of_training_dialogues_are_asked_beside_them_and_none_of_a_held_out_one(sample_store):
    prompts = sample_store.read("grpo_cer").collect()
    by_variant = {str(variant): rows for (variant,), rows in prompts.group_by("variant")}
    assert set(by_variant) == {"none", "P"}
    assert set(by_variant["none"]["split"]) == {"train", "validation", "test"}
    assert set(by_variant["P"]["split"]) == {"train"}
    split = dict(sample_store.read("splits").select("group_id", "split").collect().iter_rows())
    groups = dict(sample_store.read("unique_dialogues").select("dialogue_id", "group_id").collect().iter_rows())
    sources = {row.split("~")[0] for row in by_variant["P"]["row_id"]}
    assert {split[groups[source]] for source in sources} == {"train"}
    assert {row.replace("~P", "") for row in by_variant["P"]["row_id"]} <= set(by_variant["none"]["row_id"])


def test_same_openings_and_quoted_posts_share_their_group(sample_store):
    group = dict(sample_store.read("unique_dialogues").select("dialogue_id", "group_id").collect().iter_rows())
    group |= dict(sample_store.read("unique_posts").select("post_id", "group_id").collect().iter_rows())
    openings: set[tuple[str, str]] = set()
    for row in DIALOGUES:
        if "same_opening" in row["shows"]:
            first = next(turn["text"] for turn in row["turns"] if turn["role"] == "seeker")
            openings.add((first, group[f"sample:{row['id']}"]))
    assert len(openings) == len({first for first, _ in openings}) == 2
    for row in DIALOGUES:
        if "quotes_post" in row["shows"]:
            quoted = next(post for post in POSTS if post["description"] == row["turns"][0]["text"])
            assert group[f"sample:{row['id']}"] == group[f"sample:{quoted['id']}"]
