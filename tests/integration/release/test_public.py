"""What leaves the house: whole rows of those who allowed it, and of the others not one run of words."""

import polars as pl
import pytest
from every_byte import strings
from jinja2 import UndefinedError
from published_rows import CRAWLED, NAME, come_back, make_release, training_sets

from pipelines.errors import RequestError
from pipelines.release.publish.folder import export_folder, restore_folder
from pipelines.release.publish.private import PUBLISHABLE, read_private
from pipelines.release.publish.public import publish_rows
from pipelines.release.readings import Readings
from pipelines.store import Store
from pipelines.store.release_manifest import Finding
from pipelines.store.releases import Releases, rows_of
from schemas.labels import CONSENTS


@pytest.fixture(scope="module")
def folder(mixed, tmp_path_factory):
    target = tmp_path_factory.mktemp("public") / "out"
    export_folder(mixed.releases, NAME, mixed.store, target)
    return target


def rows(folder, config):
    return {row["row_id"]: row for path in sorted(folder.glob(f"{config}/*.parquet")) for row in rows_of(path)}


def is_crawled(row_id):
    return row_id.startswith(f"{CRAWLED}:")


def windows_of(store):
    """Every 15 characters that stand in a crawled post or an answer to it, by the plainest way there is."""
    posts = store.read("unique_posts").filter(pl.col("source") == CRAWLED).collect()
    answers = posts["answers"].explode(empty_as_null=False).struct.field("text")
    texts = {*posts["text"], *posts["title"], *posts["description"], *answers}
    return {text[at : at + 15] for text in texts for at in range(len(text) - 14)}


def repeats(value, windows):
    return any(text[at : at + 15] in windows for text in strings(value) for at in range(len(text) - 14))


def assert_equal_but_for_names(public, whole):
    """The rows are whole, but for a few in which a word that reads like a name is a placeholder now."""
    changed = [row["row_id"] for row in whole if public[row["row_id"]] != {**row, "withheld": False}]
    assert len(changed) < len(whole) / 4
    assert all("[" in "".join(strings(public[row_id])) for row_id in changed)


def test_rows_of_those_who_allowed_it_are_published_as_they_are(mixed, folder):
    public, windows = rows(folder, "sft_coe"), windows_of(mixed.store)
    whole = mixed.releases.frame(NAME, "sft_coe").collect().to_dicts()
    ours = [row for row in whole if not is_crawled(row["row_id"]) and not repeats(row, windows)]
    assert len(ours) > 20
    assert_equal_but_for_names(public, ours)
    assert public.keys() == {row["row_id"] for row in whole}, "every row is there, with its labels"
    assert all(public[row["row_id"]]["split"] == row["split"] for row in whole)
    assert set(CONSENTS) - set(PUBLISHABLE) == {"agreement", "not_asked"}


def test_no_fifteen_characters_of_a_crawled_post_stand_in_any_file(mixed, folder):
    windows = windows_of(mixed.store)
    assert len(windows) > 5_000
    for config in mixed.release.configs:
        assert not [row_id for row_id, row in rows(folder, config).items() if repeats(row, windows)]
    assert not [name for name in ("README.md", "manifest.json") if repeats((folder / name).read_text("utf-8"), windows)]


def test_a_chain_keeps_what_the_model_wrote_and_loses_what_it_quoted(folder):
    row = next(row for row in rows(folder, "sft_coe").values() if is_crawled(row["row_id"]))
    asked, told = (message["content"] for message in row["messages"][1:])
    assert (row["withheld"], asked[0], asked[-1]) == (True, "⟦", "⟧")
    assert "<L1>对方说：“⟦" in told
    assert "<L2>想法之间</L2><L3>想被听见</L3><L4>先共情</L4></empathy_think><answer>⟦" in told


def test_an_answer_of_a_crawled_post_is_taken_out_of_a_row_that_is_ours(mixed, folder):
    public, windows = rows(folder, "rm_triplets"), windows_of(mixed.store)
    whole = mixed.releases.frame(NAME, "rm_triplets").collect().to_dicts()
    lent = [row for row in whole if not is_crawled(row["row_id"]) and repeats(row["negative"], windows)]
    assert lent
    for row in lent:
        assert public[row["row_id"]]["negative"].startswith("⟦")
        assert public[row["row_id"]]["withheld"]
        kept = [name for name in ("query", "positive") if not repeats(row[name], windows)]
        assert all(public[row["row_id"]][name] == row[name] for name in kept)


def test_the_manifest_counts_what_is_withheld_and_names_nobody(mixed, tmp_path):
    found = Finding(check="risk", severity="warn", count=1, what="told", hint="mend it", examples=[f"{CRAWLED}:1"])
    told = mixed.release.model_copy(update={"findings": [found]})
    private = read_private(mixed.store, told.pins)
    published = publish_rows(told, mixed.releases.folder(NAME), tmp_path, private, Readings(mixed.releases.home))
    assert [one.examples for one in published.findings if one.what == "told"] == [[]]
    counts = {one.what.split()[2]: one.count for one in published.findings if one.check == "withheld"}
    assert counts == {
        config: sum(row["withheld"] for row in rows(tmp_path, config).values()) for config in mixed.release.configs
    }
    assert published.pins == mixed.release.pins


def test_rewrites_of_private_texts_and_rows_whose_text_is_unknown_are_left_out(mixed, tmp_path):
    sets = training_sets(mixed.store)
    chats = sets["sft_coe"].head(3)
    assert all(map(is_crawled, chats["row_id"].head(2)))
    ids = [chats["row_id"][0] + "~P", "gone:1/1", chats["row_id"][2] + "~D"]
    odd = chats.with_columns(row_id=pl.Series(ids), variant=pl.Series(["P", "none", "D"]))
    make_release(tmp_path, mixed.store, {"sft_coe": pl.concat([chats, odd])})
    published = export_folder(Releases(tmp_path), NAME, mixed.store, tmp_path / "out")
    left_out = {one.what: one.examples for one in published.findings if one.check == "left_out"}
    assert [ids for what, ids in left_out.items() if "rewrites" in what] == [[odd["row_id"][0]]]
    assert [ids for what, ids in left_out.items() if "not in this home" in what] == [["gone:1/1"]]
    assert published.rows("sft_coe") == sum(source.rows for source in published.sources) == 4
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "4 rows in 1 configs; by language: zh 4." in card, "its numbers are of what is published"
    assert rows(tmp_path / "out", "sft_coe")[odd["row_id"][2]]["withheld"], "a copy is withheld like its source"


def test_with_the_posts_every_word_is_restored(mixed, folder, tmp_path):
    reader = come_back(tmp_path / "reader", folder)
    restored, missing = restore_folder(reader, NAME, mixed.store, tmp_path / "whole")
    assert missing == []
    for config in mixed.release.configs:
        assert restored.rows(config) == reader.read(NAME).rows(config)
        whole = mixed.releases.frame(NAME, config).collect().to_dicts()
        assert_equal_but_for_names(rows(tmp_path / "whole", config), whole)


def test_a_changed_post_is_not_restored_and_a_home_without_texts_restores_nothing(mixed, folder, tmp_path):
    reader = come_back(tmp_path / "reader", folder)
    theirs = Store(tmp_path / "data")
    posts = mixed.store.read("unique_posts").collect()
    first = posts.filter(pl.col("source") == CRAWLED)["post_id"][0]
    changed = pl.when(post_id=first).then(pl.lit("改过了")).otherwise("text")
    theirs.write("unique_posts", posts.with_columns(text=changed))
    _, missing = restore_folder(reader, NAME, theirs, tmp_path / "most")
    assert missing == [first]
    withheld = {row["row_id"] for row in rows(tmp_path / "most", "grpo_ecot").values() if row["withheld"]}
    assert withheld <= {first}
    with pytest.raises(RequestError, match="nothing can be restored"):
        restore_folder(reader, NAME, Store(tmp_path / "none"), tmp_path / "whole")
    assert not (tmp_path / "whole").exists()


def test_an_export_is_whole_or_not_there(mixed, folder, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something.txt").touch()
    with pytest.raises(RequestError, match="not empty"):
        export_folder(mixed.releases, NAME, mixed.store, tmp_path / "full")
    with pytest.raises(UndefinedError):
        export_folder(mixed.releases, NAME, mixed.store, tmp_path / "broken", tables=[None])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full"]
    export_folder(mixed.releases, NAME, mixed.store, tmp_path / "again")
    before, after = (
        {path.relative_to(place): path.read_bytes() for path in place.rglob("*") if path.is_file()}
        for place in (folder, tmp_path / "again")
    )
    assert before == after, "the same release is the same files"


def test_what_reads_like_a_name_is_replaced_and_counted(mixed, tmp_path):
    chats = training_sets(mixed.store)["sft_coe"].filter(~pl.col("row_id").str.starts_with(CRAWLED)).head(2)
    said = [[{"role": "user", "content": "昨天程雪在门口，程雪哭了"}], [{"role": "user", "content": "我很难过"}]]
    named = chats.with_columns(messages=pl.Series(said, dtype=chats.schema["messages"]))
    make_release(tmp_path, mixed.store, {"sft_coe": named})
    published = export_folder(Releases(tmp_path), NAME, mixed.store, tmp_path / "out")
    public = rows(tmp_path / "out", "sft_coe")
    assert [public[row_id]["messages"][0]["content"] for row_id in chats["row_id"]] == [
        "昨天[姓名]在门口，[姓名]哭了",
        "我很难过",
    ]
    [renamed] = [one for one in published.findings if one.check == "renamed"]
    assert (renamed.count, renamed.examples) == (1, [chats["row_id"][0]])


def test_so_is_what_a_source_calls_its_topic(mixed, tmp_path):
    prompts = training_sets(mixed.store)["grpo_ecot"].filter(~pl.col("row_id").str.starts_with(CRAWLED)).head(1)
    info = pl.col("extra_info").struct.with_fields(topic=pl.lit("和程雪吵架，程雪哭了"))
    make_release(tmp_path, mixed.store, {"grpo_ecot": prompts.with_columns(extra_info=info)})
    export_folder(Releases(tmp_path), NAME, mixed.store, tmp_path / "out")
    [public] = rows(tmp_path / "out", "grpo_ecot").values()
    assert public["extra_info"]["topic"] == "和[姓名]吵架，[姓名]哭了"
