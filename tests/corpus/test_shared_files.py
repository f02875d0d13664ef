"""The real files: every record of them arrives, and is what the file says."""

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from pipelines.errors import UnreadableFile
from pipelines.ingest.importing import Imported, read
from schemas.dialogues import ImportedDialogues
from schemas.posts import ImportedPosts


def turns(imported: Imported) -> pl.DataFrame:
    return imported.kept.select("dialogue_id", "turns").explode("turns").unnest("turns")


@pytest.mark.parametrize(
    ("name", "file", "records", "encoding"),
    [
        ("psyqa", "zh_qa/PsyQA_example.json", 100, "utf-8"),
        ("smile", "zh_multiturn/smile_raw.tar.gz", 267, "utf-8"),
        ("cpsycoun", "zh_multiturn/cpsycound_raw.tar.gz", 359, "utf-8"),
        ("esconv", "en_strategy/FailedESConv.json", 196, "utf-8"),
        ("esconv_tsv", "en_strategy/esconv_devWithStrategy_short.tsv", 211, "utf-8"),
        ("emollm", "noisy/emollm_aiwei_part.json", 250, "utf-8"),
    ],
)
def test_every_record_arrives(shared: Path, name: str, file: str, records: int, encoding: str) -> None:
    imported = read(name, shared / file)
    assert (imported.n_records, imported.kept.height, imported.dropped.height) == (records, records, 0)
    assert imported.encoding == encoding
    schema = ImportedPosts if imported.table == "imported_posts" else ImportedDialogues
    assert schema.is_valid(imported.kept)


def test_psyqa(shared: Path) -> None:
    file = shared / "zh_qa/PsyQA_example.json"
    imported = read("psyqa", file)
    assert imported.n_answers == 268
    assert imported.unknown_strategies == {"Interpretation": 425}
    first, said = imported.kept.row(0, named=True), json.loads(file.read_text(encoding="utf-8"))[0]
    assert [answer["text"] for answer in first["answers"]] == [answer["answer_text"] for answer in said["answers"]]
    spans = imported.kept.select("answers").explode("answers").unnest("answers").explode("spans").unnest("spans")
    ours = Counter(spans.drop_nulls("source_strategy").select("source_strategy", "strategy").rows())
    assert (ours["Direct Guidance", "Providing Suggestions"], ours["Interpretation", None]) == (295, 425)
    assert ours.total() == 888


def test_smile_keeps_the_dialogue_of_one_side_for_the_filters(shared: Path) -> None:
    file = shared / "zh_multiturn/smile_raw.tar.gz"
    imported = read("smile", file)
    assert read("smile", file).kept.equals(imported.kept), "the same every time"
    assert imported.notes == {"joined_turns": 6, "one_sided": 1}
    assert imported.kept.filter(n_rounds=0)["dialogue_id"].to_list() == ["smile:16110"]
    assert imported.kept["lineage"][0].to_list() == ["psyqa", "xinli001"]
    assert set(turns(imported)["origin"]) == {"model"}


def test_cpsycoun_goes_on_with_the_turn_above(shared: Path) -> None:
    imported = read("cpsycoun", shared / "zh_multiturn/cpsycound_raw.tar.gz")
    assert "cpsycoun:10" in imported.kept["dialogue_id"]
    assert turns(imported).filter(pl.col("text").str.contains("\r")).is_empty()
    # 2,938 and 2,903 labels, fewer those of the same speaker in a row.
    assert turns(imported).height == 2938 + 2903 - imported.notes["joined_turns"]
    texts = pl.col("text").str.contains("(?s)1. 多观察孩子们的行为.*4. 关注自己的情绪和心理需求")
    listing = turns(imported).filter(texts)
    assert listing["role"].to_list() == ["supporter"]


def test_failed_esconv(shared: Path) -> None:
    file = shared / "en_strategy/FailedESConv.json"
    imported = read("esconv", file)
    assert imported.unknown_strategies == {}
    raw = json.loads(file.read_text(encoding="utf-8"))
    written = Counter(turn["annotation"].get("strategy") for one in raw for turn in one["dialog"])
    assert (written["Direct Guidance"], written["Question"], written["Approval and Reassurance"]) == (11, 8, 7)
    ours = set(turns(imported).explode("strategies")["strategies"].drop_nulls())
    assert len(ours) == 8
    assert "Direct Guidance" not in ours


def test_esconv_windows_come_together(shared: Path) -> None:
    imported = read("esconv_tsv", shared / "en_strategy/esconv_devWithStrategy_short.tsv")
    attributes = imported.kept.select("attributes").explode("attributes").unnest("attributes")
    assert attributes.filter(name="windows")["value"].cast(pl.Int64).sum() == 2985
    assert attributes.filter(name="missing_utterances").height == 8
    assert imported.unknown_strategies == {}


def test_medical_questions_in_gb18030(shared: Path) -> None:
    imported = read("qa_csv", shared / "zh_qa/medical_qa_gb18030.csv")
    assert imported.encoding == "gb18030"
    assert (imported.n_records, imported.kept.height, imported.n_answers) == (1436, 1436, 1500)
    assert imported.dropped["reason"].to_list() == ["duplicate_answer"] * 64
    assert imported.kept.select("title", "topic").row(0) == ("高血压患者能吃党参吗？", "心血管科")


def test_the_wrong_name_is_told_the_right_one_and_a_file_of_another_form_is_refused(shared: Path) -> None:
    psyqa, esconv = shared / "zh_qa/PsyQA_example.json", shared / "en_strategy/FailedESConv.json"
    emollm = shared / "noisy/emollm_aiwei_part.json"
    looks = {("psyqa", esconv): "esconv", ("esconv", psyqa): "psyqa", ("soulchat", emollm): "emollm"}
    for (name, file), looks_like in looks.items():
        with pytest.raises(UnreadableFile, match=f"looks like {looks_like}, not {name}") as caught:
            read(name, file)
        assert f"gongqing import {looks_like}" in caught.value.hint
    for name in ("smile", "cpsycoun", "cpsycoune", "esconv_tsv", "mesc", "qa_csv", "avamerg"):
        with pytest.raises(UnreadableFile):
            read(name, psyqa)
