"""What changed between two releases: counts that add up, and nothing where nothing did."""

import hashlib
import json

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from release_rows import made, prompts, triplets

from pipelines.errors import UnknownName
from pipelines.release.changes import Lengths, Rows, changes, markdown
from pipelines.store.release_manifest import Finding, Source, Spend
from pipelines.store.releases import Releases
from schemas.labels import SPLITS

IDS = st.dictionaries(st.sampled_from([f"s:{number}" for number in range(12)]), st.sampled_from(SPLITS))


@settings(max_examples=25)
@given(before=IDS, after=IDS, edited=st.booleans())
def test_counts_add_up(tmp_path_factory, before, after, edited):
    home = tmp_path_factory.mktemp("home")
    one = made(home, "v1", {"rm_triplets": triplets(*before.items())})
    other = made(home, "v2", {"rm_triplets": triplets(*after.items(), query="另问" if edited else "问")})
    there, back = changes(home, "v1", "v2").rows, changes(home, "v2", "v1").rows
    for rows in there:
        assert rows.kept + rows.removed == one.rows(rows.config, rows.split)
        assert rows.kept + rows.added == other.rows(rows.config, rows.split)
        assert rows.changed == (rows.kept if edited else 0)
    assert {rows.split for rows in there} == {*before.values(), *after.values()}
    assert changes(home, "v1", "v1").empty
    assert [(rows.added, rows.removed) for rows in there] == [(rows.removed, rows.added) for rows in back]


SOURCE = Source(name="s", licence="CC0", consent="invented", lineage=[], rows=2, collected="read from a.jsonl")
WARNING = Finding(check="empty", severity="warn", count=1, what="sets without a row", hint="none")


@pytest.fixture
def two(tmp_path):
    """A home with a release, and another in which everything is different."""

    def make(name, version, samples, calls, usd, n, sets, **more):
        spend = [Spend(stage="topics", model="qwen-plus", calls=calls, usd=usd)]
        used = {"prompts": {"ecot": version}, "settings": {"seed": 0, "sampling": {"n_samples": samples}}}
        made(tmp_path, name, sets, **used, spend=spend, sources=[SOURCE.model_copy(update={"rows": n})], **more)

    rows = prompts(("s:1", "train", "一二三四五六", "职业"), ("s:2", "test", "一二", "家庭"))
    make("v1", "ecot@1-aa", 3, 10, "0.25", 2, {"grpo_ecot": rows})
    rows = prompts(("s:1", "train", "一二三四五六七八", "职业"), ("s:3", "train", "一二三四", "职业"))
    sets = {"grpo_ecot": rows, "rm_triplets": triplets(("s:1/a", "train"))}
    make("v2", "ecot@2-bb", 2, 14, "0.4", 3, sets, findings=[WARNING])
    return tmp_path


def test_everything_that_differs_is_listed_and_reads_as_a_section_of_a_changelog(two):
    difference = changes(two, "v1", "v2")
    assert difference.rows == [
        Rows("grpo_ecot", "train", added=1, removed=0, kept=1, changed=1),
        Rows("grpo_ecot", "test", added=0, removed=1, kept=0, changed=0),
        Rows("rm_triplets", "train", added=1, removed=0, kept=0, changed=0),
    ]
    assert difference.topics == {"职业": (1, 2), "家庭": (1, None)}
    assert difference.lengths["grpo_ecot", "seeker"] == (Lengths(2, 4.0, 4.0, 5.8), Lengths(2, 6.0, 6.0, 7.8))
    assert difference.prompts == {"ecot": ("ecot@1-aa", "ecot@2-bb")}
    assert difference.settings == {"sampling.n_samples": (3, 2)}
    assert difference.spend["topics", "qwen-plus"][1].calls == 14
    assert [one.rows for one in difference.sources["s"]] == [2, 3]
    assert difference.findings == {"empty": (None, ["sets without a row"])}
    assert set(difference.tables) == {"rm_triplets"}
    assert not difference.empty
    plain = json.loads(json.dumps(difference.as_dict()))
    assert plain["topics"]["家庭"] == [1, None]
    assert plain["lengths"]["grpo_ecot/seeker"][0]["mean"] == 4.0
    assert plain["spend"]["topics/qwen-plus"][1]["usd"] == "0.4"
    told = markdown(difference)
    assert told.startswith("## v2\n\nCompared with v1.\n\n### Rows\n\n| set | split |")
    assert "| grpo_ecot | train | 1 | 1 | 0 | 1 | 2 |" in told
    for line in ("topics | qwen-plus | 4 | 0.15", "sampling.n_samples | 3 | 2", "家庭 | 1 | –"):
        assert f"| {line} |" in told
    assert "| empty | – | sets without a row |" in told


def test_only_what_changed_is_listed(tmp_path):
    rows = {"rm_triplets": triplets(("s:1", "train"))}
    made(tmp_path, "v1", rows)
    paid = [Spend(stage="topics", model="m", calls=1, usd=usd) for usd in ("0.5", "3 CNY")]
    made(tmp_path, "v2", rows, prompts={"a|b": "a|b@1"}, spend=paid)
    told = markdown(changes(tmp_path, "v1", "v2"))
    assert [line for line in told.splitlines() if line.startswith("#")] == ["## v2", "### Prompts", "### Spend since"]
    assert r"| a\|b | – | a\|b@1 |" in told
    assert "| topics | m | 1 | 0.5 |" in told
    assert "| topics | m CNY | 1 | 3 CNY |" in told, "another currency stands apart"


def _remade(home, name, change, config="grpo_ecot", into="grpo_ecot"):
    """A copy of v1 as another version of the project would have written it."""
    releases = Releases(home)
    first = releases.read("v1")
    with releases.staging() as folder:
        shards = []
        for shard in first.configs[config]:
            path = f"{into}/{shard.path.partition('/')[2]}"
            (folder / into).mkdir(exist_ok=True)
            change(pl.read_parquet(releases.folder("v1") / shard.path)).write_parquet(folder / path)
            content = (folder / path).read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            shards.append(shard.model_copy(update={"path": path, "bytes": len(content), "sha256": digest}))
        releases.publish(folder, first.model_copy(update={"name": name, "configs": {into: shards}}))


def _without_topic(rows):
    fields = [field.name for field in rows.schema["extra_info"].fields if field.name != "topic"]
    return rows.with_columns(extra_info=pl.struct(pl.col("extra_info").struct.field(name) for name in fields))


OTHER_FORMS = (
    (lambda rows: rows.drop("ability"), "grpo_ecot.ability", (None, "String")),
    (lambda rows: rows.with_columns(more=pl.lit(1)), "grpo_ecot.more", ("Int32", None)),
    (_without_topic, "grpo_ecot.extra_info.topic", (None, "String")),
    (lambda rows: rows.with_columns(ability=pl.lit(1)), "grpo_ecot.ability", ("Int32", "String")),
)


def test_a_release_of_another_schema_differs_in_its_columns_and_not_in_its_rows(two):
    for number, (change, column, pair) in enumerate(OTHER_FORMS):
        _remade(two, f"old{number}", change)
        difference = changes(two, f"old{number}", "v1")
        assert difference.columns == {column: pair}
        assert [(rows.kept, rows.empty) for rows in difference.rows] == [(1, True)] * 2, column
        assert changes(two, "v1", f"old{number}").columns == {column: pair[::-1]}
        assert f"| {column} | {pair[0] or '–'} | {pair[1] or '–'} |" in markdown(difference)


def test_a_removed_set_is_listed_by_its_rows(two):
    _remade(two, "old", lambda rows: rows, into="grpo_older")
    listed = [(rows.config, rows.added, rows.removed) for rows in changes(two, "old", "v1").rows]
    assert listed == [("grpo_older", 0, 1)] * 2 + [("grpo_ecot", 1, 0)] * 2
    assert markdown(changes(two, "old", "old")).endswith("Nothing changed.\n")
    with pytest.raises(UnknownName, match="v1"):
        changes(two, "v1", "v11")
