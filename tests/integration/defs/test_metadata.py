"""What Dagster shows of a version."""

import base64
import re
from typing import Any

import dagster as dg
import polars as pl
import pytest
from erase_home import frame

from pipelines.defs.metadata import column_schema, describe
from pipelines.defs.plots import plots
from pipelines.defs.samples import TEXTS, presentable, samples
from pipelines.operations.paper_tables import dialogue_diversity
from pipelines.store import Store
from schemas.table import Dropped
from schemas.tables import PARTITIONED, TABLES

PEOPLES = ("clean_posts", "clean_dialogues", "unique_posts", "unique_dialogues")
PICTURED = [*PEOPLES, "splits", "sampled_turns", "sampled_rewrites", "grpo_ecot", "grpo_coe", "grpo_cer"]


def test_columns_have_types_and_descriptions():
    for table in TABLES:
        columns = column_schema(TABLES[table]).columns
        assert [column.name for column in columns] == TABLES[table].column_names()
        assert all(column.description and column.type for column in columns), table
        assert any(column.constraints.unique for column in columns) == (len(TABLES[table].key()) == 1), table


def test_a_row_of_every_table_but_the_raw_ones_is_shown(tmp_path):
    for table in TABLES.keys() - PARTITIONED:
        assert len(samples(table, frame(table, {}), Store(tmp_path))["sample"].records) == 1, table


def png_of(drawn: str) -> bytes:
    return base64.b64decode(re.fullmatch(r"!\[.+\]\(data:image/png;base64,(.+)\)", drawn)[1])


@pytest.mark.parametrize("home", ["sample_store", "real_store"])
def test_pictures_are_small_pngs(home, request):
    store = request.getfixturevalue(home)
    for table in PICTURED:
        rows, dropped = store.read(table).collect(), store.read_dropped(table).collect()
        drawn = plots(table, rows, dropped)
        assert ("cluster_sizes" in drawn) == table.startswith("unique_")
        assert ("drops_by_source" in drawn) == (dropped.height > 0)
        assert "picture" in drawn
        for one in drawn.values():
            assert png_of(one).startswith(b"\x89PNG")
            assert len(png_of(one)) < 50_000
    assert plots("unique_posts", TABLES["unique_posts"].create_empty(), Dropped.create_empty()) == {}


def test_a_table_that_drops_from_many_sources_for_many_reasons_is_still_drawn():
    rows = [("t", "post", f"{source}:{n}", f"reason_{n % 20}", None) for source in "abcdefgh" for n in range(60)]
    rows.append(("t", "record", "a file, line 7", "unreadable", None))
    dropped = pl.DataFrame(rows, Dropped.polars_schema(), orient="row")
    drawn = plots("clean_posts", pl.DataFrame(), dropped)["drops_by_source"]
    assert png_of(drawn).startswith(b"\x89PNG")


def test_rewritten_dialogues_show_how_varied_they_are(sample_store):
    version = sample_store.version("rewritten_dialogues")
    shown, figures = describe(version, sample_store), dialogue_diversity(sample_store, version)
    assert [record.data["figure"] for record in shown["diversity"].records] == figures["figure"].to_list()
    [pictures] = [name for name in shown if name.startswith("pictures: ")]
    for lang in figures["lang"].unique():
        assert f"Diversity before and after ({lang})" in pictures


def test_all_pictures_of_an_asset_are_one_entry_named_by_what_they_show(sample_store):
    described = describe(sample_store.version("unique_posts"), sample_store)
    [name] = [one for one in described if isinstance(described[one], dg.MarkdownMetadataValue)]
    clusters, drops = "Near-duplicates: rows by size of cluster", "Dropped, by reason and source"
    titles = ["Posts by category (M Table 1)", clusters, drops]
    assert name == f"pictures: {'; '.join(titles)}"
    drawn = described[name].md_str.split("\n\n")
    assert [one.partition("](")[0] for one in drawn] == [f"![{title}" for title in titles]
    assert all(png_of(one).startswith(b"\x89PNG") for one in drawn)


def shown(store: Store, table: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The texts of the rows of a sample, and their other fields."""
    described = describe(store.version(table), store)
    texts, fields = ([record.data for record in described[name].records] for name in ("sample", "sample_fields"))
    return texts, fields


def test_a_sample_shows_ten_rows_as_they_were_cleaned(sample_store):
    """Texts in one table, all else in another: in one they would leave each other no room."""
    texts, fields = shown(sample_store, "unique_posts")
    rows = sample_store.read("unique_posts").collect()
    words = dict(rows.filter(presentable(rows)).select("post_id", "text").iter_rows())
    assert len(texts) == 10
    assert [record["post_id"] for record in texts] == [record["post_id"] for record in fields]
    repeated = {"title", "description"}  # they are the text
    left_out = {"source_id", "url", "posted_at", "fetched_at", "answers", "edits"}
    assert {*texts[0], *fields[0]} >= set(rows.columns) - left_out - repeated
    assert not {*texts[0], *fields[0]} & repeated
    assert texts[0].keys() & fields[0].keys() == {"post_id"}
    for record in texts:
        text = words[record["post_id"]]
        assert record["text"].startswith(f"【text】{text if len(text) <= 200 else text[:200] + '…'}\n【")
        assert "\n【answers】" in record["text"]
    for record in fields:
        assert record["topic"].endswith(" characters")  # private still: the source's own words
        assert all(len(str(cell)) <= 40 for cell in record.values())


def test_a_sample_is_drawn_and_neither_the_order_of_rows_nor_other_rows_move_it(sample_store):
    rows = sample_store.read("unique_posts").collect()
    ids = [
        [one.data["post_id"] for one in samples("unique_posts", some, sample_store)["sample"].records]
        for some in (rows, rows.reverse(), rows.filter(pl.int_range(pl.len()) % 2 == 0))
    ]
    assert ids[0] == ids[1] != rows.filter(presentable(rows))["post_id"].head(10).to_list()
    even = set(rows["post_id"].gather_every(2))
    both = [name for name in ids[0] if name in even]
    assert ids[2][: len(both)] == both, "without the others, those that are left come first"


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("coe_chains", ("L1", "L2", "L3", "L4", "answer")),
        ("ecot_chains", ("situation", "motivation", "strategy", "answer")),
        ("cer_candidates", ("history_reasoning", "emotion_reasoning", "strategy_reasoning", "response")),
        ("rm_triplets", ("query", "positive", "negative")),
        ("grpo_ecot", ("last_turn", "reference")),
        ("grpo_cer", ("last_turn", "reference")),
        ("sft_coe", ("last_turn", "reply")),
    ],
)
def test_what_is_made_of_cleaned_texts_is_shown_as_they_are(labelled_store, table, columns):
    texts, fields = shown(labelled_store, table)
    rows = labelled_store.read(table).collect()
    key = TABLES[table].key()
    assert list(texts[0]) == ["text", *key], "a browser cuts off what is further right"
    expected = {row[: len(key)]: row[len(key) :] for row in rows.select(*key, **TEXTS[table]).iter_rows()}
    for record in texts:
        said = zip(columns, expected[tuple(record[name] for name in key)], strict=True)
        whole = [f"【{column}】{text if len(text) <= 200 else text[:200] + '…'}" for column, text in said]
        assert record["text"] == "\n".join(whole)
    assert not {"prompt", "messages", "reward_model"} & fields[0].keys()


def test_of_a_prompt_the_last_turn_and_the_answer_of_the_source_are_shown(sample_store):
    texts, _ = shown(sample_store, "grpo_cer")
    rows = {row["row_id"]: row for row in sample_store.read("grpo_cer").collect().iter_rows(named=True)}
    for record in texts:
        row = rows[record["row_id"]]
        turn, _, reference = record["text"].removeprefix("【last_turn】").partition("\n【reference】")
        assert row["prompt"][-1]["content"].startswith(turn.rstrip("…"))
        assert row["reward_model"]["ground_truth"].startswith(reference.rstrip("…"))


def test_no_text_of_any_table_is_a_hash_and_no_hash_is_shown_whole(labelled_store):
    seen = 0
    for table in (name for name in TABLES if name not in PARTITIONED and labelled_store.pointer(name) is not None):
        texts, fields = shown(labelled_store, table)
        for record in [*texts, *fields]:
            seen += 1
            assert not [cell for cell in record.values() if re.search("[0-9a-f]{64}", str(cell))], table
        names = {name for record in texts for name in record} - set(TABLES[table].key())
        assert not names & {"request_key", "members", "given_at", "vector", "curve"}, table
    assert seen


def test_reasoning_and_portraits_of_speakers_are_lengths(sample_store):
    for table, column in (("disc_profiles", "description"), ("personas", "description"), ("coe_chains", "reasoning")):
        texts, fields = shown(sample_store, table)
        assert column not in texts[0]
        assert all(record[column] is None or record[column].endswith(" characters") for record in fields)


def test_what_is_made_from_a_row_with_risk_is_shown_nowhere_whatever_a_setting_lets_through(sample_store, tmp_path):
    """Of a post that a model's second opinion or a rule doubts, its prompt is not shown though it may stand there."""
    store = Store(tmp_path / "data")
    for table in ("unique_posts", "grpo_coe"):
        store.write(table, sample_store.read(table).collect())
    before = [record["row_id"] for record in shown(store, "grpo_coe")[0]]
    posts = store.read("unique_posts").collect()
    signs = [{"kind": "self_harm", "rule": "r"}]
    at_risk = pl.when(pl.col("post_id") == before[0]).then(pl.lit(signs, posts.schema["risk"])).otherwise("risk")
    minor = pl.when(pl.col("post_id") == before[1]).then(pl.lit(True)).otherwise("under_18")
    store.write("unique_posts", posts.with_columns(risk=at_risk, under_18=minor))
    after = [record["row_id"] for record in shown(store, "grpo_coe")[0]]
    assert after[:8] == before[2:]


@pytest.mark.parametrize("table", PEOPLES)
def test_no_row_with_risk_or_by_a_minor_is_shown(sample_store, table):
    rows = sample_store.read(table).collect()
    hidden = rows.filter((pl.col("risk").list.len() > 0) | pl.col("under_18"))
    assert hidden.height > 0
    shown = describe(sample_store.version(table), sample_store)
    tables = [shown[name] for name in ("sample", "sample_fields", "merged_pairs") if name in shown]
    keys = {rows.columns[0], "row", "survivor"}
    ids = {value for one in tables for record in one.records for name, value in record.data.items() if name in keys}
    assert ids
    assert ids.isdisjoint(hidden[rows.columns[0]])
    at_risk = rows.with_columns(pl.lit([{"kind": "abuse", "rule": "r"}]).alias("risk"))
    assert at_risk.filter(presentable(at_risk)).is_empty()


def test_merged_pairs_stand_side_by_side_with_their_similarity(real_store):
    version = real_store.version("unique_dialogues")
    pairs = [record.data for record in describe(version, real_store)["merged_pairs"].records]
    assert len(pairs) == 10
    dropped = dict(real_store.read_dropped("unique_dialogues").collect().select("row_id", "detail").iter_rows())
    for pair in pairs:
        assert dropped[pair["row"]] == f"{pair['similarity']:.2f} like {pair['survivor']}"
        assert pair["row_text"] != pair["survivor_text"]
    assert [pair["similarity"] for pair in pairs] == sorted(pair["similarity"] for pair in pairs)


def test_figures_that_one_wants_over_time_are_numbers(sample_store):
    """The web UI plots numbers and no words."""
    for table in ("clean_posts", "unique_posts", "unique_dialogues", "coe_chains", "grpo_coe", "splits"):
        version = sample_store.version(table)
        rows = sample_store.read(table).collect()
        values = {name: one for name, one in describe(version, sample_store).items() if isinstance(one, (int, float))}
        reasons = version.manifest.reasons
        if table in ("clean_posts", "unique_posts"):
            lost = sum(count for reason, count in reasons.items() if reason.startswith("post: "))
            assert values["kept_share"] == round(version.rows / (version.rows + lost), 4)
            assert 0 < values["kept_share_answer"] <= 1
            counts = rows["pii"].explode(empty_as_null=False).struct.field("count")
            assert values["personal_data"] == counts.sum() > 0
            assert values["mean_chars"] == pytest.approx(rows["text"].str.len_chars().mean(), abs=0.1)
        if table.startswith("unique_"):
            near = sum(count for reason, count in reasons.items() if reason.endswith(": near_duplicate"))
            assert values["duplicates"] == near
        if "split" in rows.columns:
            splits = {split: values[f"rows_{split}"] for split in ("train", "validation", "test")}
            assert splits == {split: rows["split"].to_list().count(split) for split in splits}
        assert values["dropped"] == version.dropped
        assert values["dagster/row_count"] == version.rows


def test_the_raw_zone_shows_no_sample_at_all(sample_store):
    version = sample_store.version("imported_posts", partition="sample")
    assert {"sample", "sample_fields", "merged_pairs", "drops_by_source"}.isdisjoint(describe(version, sample_store))
