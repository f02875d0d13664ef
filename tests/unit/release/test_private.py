"""Texts that may not be printed: dialogues under an agreement, words in another dress, and English that is chance."""

from typing import Any

import polars as pl
import pytest
from published_rows import come_back
from release_rows import made, triplets
from sample_rows import dialogue, unique_dialogues
from unique_rows import post, posts

from pipelines.errors import PrivateText
from pipelines.operations.release import export
from pipelines.release.publish.folder import export_folder, restore_folder
from pipelines.release.publish.private import read_private
from pipelines.release.publish.public import require_no_private_text
from pipelines.store import Store
from pipelines.store.release_manifest import Finding, Source
from pipelines.store.releases import Releases, rows_of
from schemas.tables import TABLES

SEEKER = "我最近总是睡不着觉，一想到明天要上班就心慌得厉害，不知道该怎么办才好。"
SUPPORTER = "听起来这段时间你一直绷得很紧，连晚上都没有办法放松下来，一定很累吧。"
CRAWLED = "孩子上初中以后就不爱说话了，我问他什么他都说没事，我很担心他是不是出了什么事。"
ENGLISH = "I have no answer to any question of my support group at one moment: not before they are here, nor after."
STEPS = "<emotion>情感：消极；情绪：焦虑；强度：4\n对方很着急</emotion>"


TALKS = (
    ("agreed", 1, SEEKER, SUPPORTER, {"consent": "agreement"}),
    ("agreed", 2, ENGLISH, "I see.", {"consent": "agreement", "lang": "en"}),
    ("ours", 1, "我想换一份工作，又怕家里人不同意。", "你在两边都很在意。", {"consent": "given"}),
)


@pytest.fixture
def store(store: Store) -> Store:
    rows = [
        dialogue(
            number, f"seeker: {said}", f"supporter: {reply}", source=source, dialogue_id=f"{source}:{number}", **of
        )
        for source, number, said, reply, of in TALKS
    ]
    store.write("unique_dialogues", unique_dialogues(*rows))
    store.write("unique_posts", posts(post("1", CRAWLED, consent="not_asked")))
    return store


def chat(row_id: str, said: str, answer: str, system: str = "你是一位善于倾听的人。") -> dict[str, Any]:
    messages = [("system", system), ("user", said), ("assistant", answer)]
    return {
        **{"row_id": row_id, "made_from": row_id, "group_id": "g1", "split": "train", "variant": "none"},
        **{"providers": ["openai"], "messages": [{"role": role, "content": text} for role, text in messages]},
    }


def released(tmp_path, store, *chats, **more):
    consents = {"agreed": "agreement", "ours": "given", "s": "not_asked"}
    sources = [
        Source(name=name, licence="CC0-1.0", consent=consent, lineage=[], rows=9, collected="imported 2026-11-22")
        for name, consent in consents.items()
    ]
    pins = {table: store.version(table).version for table in ("unique_posts", "unique_dialogues")}
    rows = pl.DataFrame(list(chats), schema=TABLES["sft_cer"].polars_schema())
    made(tmp_path, "v1", {"sft_cer": rows}, sources=sources, pins=pins, **more)
    return Releases(tmp_path)


def exported(tmp_path, store, *chats, **more):
    published = export_folder(released(tmp_path, store, *chats, **more), "v1", store, tmp_path / "out")
    return published, {row["row_id"]: row for path in (tmp_path / "out").glob("*/*.parquet") for row in rows_of(path)}


def content(row, place):
    return row["messages"][place]["content"]


def test_of_a_dialogue_under_an_agreement_the_labels_are_published_and_come_back_whole(tmp_path, store):
    asked, answer = f"求助者：{SEEKER}", f"{STEPS}<answer>{SUPPORTER}</answer>"
    _, rows = exported(tmp_path, store, chat("agreed:1#1/1/sft_cer", asked, answer))
    (row,) = rows.values()
    assert row["withheld"]
    assert content(row, 1).startswith("求助者：⟦")
    assert content(row, 2).startswith(f"{STEPS}<answer>⟦"), "what a model wrote stays"
    reader = come_back(tmp_path / "reader", tmp_path / "out")
    _, missing = restore_folder(reader, "v1", store, tmp_path / "whole")
    (whole,) = rows_of(next((tmp_path / "whole").glob("*/*.parquet")))
    assert missing == []
    assert (content(whole, 1), content(whole, 2), whole["withheld"]) == (asked, answer, False)


def test_a_row_that_repeats_a_text_in_another_dress_is_left_out(tmp_path, store):
    dressed = [
        "孩子上初中 以后就不爱 说话了 我问他什么 他都说没事",
        "孩子上初中以後就不愛說話了，我問他什麼他都說沒事",
        "孩子上初中\n以后就\n不爱说\n话了我问他什么\n他都说没事",
    ]
    chats = [chat(f"ours:1#{n}/1/a", "我想换一份工作。", text) for n, text in enumerate(dressed, 1)]
    published, rows = exported(tmp_path, store, *chats, chat("ours:1#1/1/b", "我想换工作。", "好。"))
    assert list(rows) == ["ours:1#1/1/b"]
    assert [("other marks" in one.what, one.count) for one in published.findings] == [(True, 3)]
    assert [source.rows for source in published.sources] == [0, 1, 0], "the card counts what is published"


def test_the_last_look_sees_another_dress_and_a_text_cut_in_two(tmp_path, store):
    private = read_private(store)
    for place, text in enumerate(["孩子上初中以後就不愛說話了，我問他什麼他都說沒事", CRAWLED]):
        folder = tmp_path / str(place)
        made(folder, "x", {"rm_triplets": triplets(("ours:1", "train"), negative=text)})
        with pytest.raises(PrivateText, match="ours:1") as caught:
            require_no_private_text(folder / "releases", private)
        assert text[:15] not in str(caught.value)
    cut = {"row_id": "ours:2", "references": [CRAWLED[:12], CRAWLED[12:24]]}
    (tmp_path / "cut").mkdir()
    pl.DataFrame([cut]).write_parquet(tmp_path / "cut" / "a.parquet")
    with pytest.raises(PrivateText, match="ours:2"):
        require_no_private_text(tmp_path / "cut", private)
    (tmp_path / "chat").mkdir()  # in other characters: an exact quotation is seen in the file's strings as well
    rows = [chat("ours:3", "孩子上初中以後就不愛說話了，我問他什麼他都說沒事", "好。")]
    pl.DataFrame(rows).write_parquet(tmp_path / "chat" / "a.parquet")
    with pytest.raises(PrivateText, match="ours:3"):
        require_no_private_text(tmp_path / "chat", private)


def test_english_that_a_corpus_has_by_chance_stops_no_export(tmp_path, store):
    """The card says "at one moment: ", a prompt "before they are"; no tag and no label is a word of the seeker's."""
    prompt = "Help before they are alone."
    told = '{"dialogue": [{"role": "seeker"}]} <answer>Strategy: Question</answer>'
    found = Finding(check="x", severity="warn", count=1, what="see at one moment: this", hint="", examples=["ours:1"])
    row_id = "agreed:2#1/1/sft_cer"
    published, rows = exported(tmp_path, store, chat(row_id, ENGLISH, told, prompt), findings=[found])
    assert content(rows[row_id], 0) == prompt
    assert content(rows[row_id], 1).startswith("⟦")
    assert content(rows[row_id], 2) == told
    assert "see at one moment: this" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert [one.examples for one in published.findings if one.check == "x"] == [[]], "whose story it is: not published"
    longer = found.model_copy(update={"what": ENGLISH[:60]})
    with pytest.raises(PrivateText, match=r"README\.md, manifest\.json"):
        exported(tmp_path / "longer", store, chat("ours:1#1/1/a", "我想换工作。", "好。"), findings=[longer])


def test_a_publication_from_elsewhere_is_passed_on_as_it_came(tmp_path, store):
    """Its tables are not in this home; and rows that lack words, or have all of them, stay as they were."""
    chats = [chat("agreed:1#1/1/sft_cer", SEEKER, SUPPORTER), chat("ours:1#1/1/a", "我想换工作。", "好。")]
    published, rows = exported(tmp_path, store, *chats)
    home = come_back(tmp_path / "reader", tmp_path / "out").home
    assert export(home, "v1", tmp_path / "again") == published
    again = {row["row_id"]: row for path in (tmp_path / "again").glob("*/*.parquet") for row in rows_of(path)}
    assert again == rows
    assert "M Table 1" not in (tmp_path / "again" / "README.md").read_text(encoding="utf-8")


def test_a_file_named_after_a_person_is_not_published(tmp_path, store):
    release = released(tmp_path, store, chat("ours:1#1/1/a", "我想换工作。", "好。"))
    named = [source.model_copy(update={"collected": "read from 某某.jsonl"}) for source in release.read("v1").sources]
    home = tmp_path / "earlier"
    rows = release.frame("v1", "sft_cer").collect()
    made(home, "v1", {"sft_cer": rows}, sources=named, pins=release.read("v1").pins)
    export_folder(Releases(home), "v1", store, tmp_path / "out")
    assert not [path for path in (tmp_path / "out").glob("*.*") if "某某" in path.read_text(encoding="utf-8")]
