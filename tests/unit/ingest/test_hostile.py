"""What is broken is a row with its place, never a crash, and never a quotation."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipelines.errors import RequestError, UnknownName, UnreadableFile
from pipelines.ingest.importing import read
from pipelines.ingest.records import MAX_RECORD_CHARS

SECRET = "我叫王小明电话一三八"
GOOD = {"conversation": [{"input": SECRET, "output": "我在听。"}]}
LINE = json.dumps(GOOD, ensure_ascii=False)
OTHER = LINE.replace("听", "看")
ESCAPED = '{"conversation": [{"input": "半个表情%s", "output": "嗯"}]}'


def reasons(importing: Any, content: Any, **settings: Any) -> list[tuple[str, str]]:
    imported = importing("emollm", content, **settings)
    assert imported.n_records == imported.kept.height + imported.dropped.height
    assert not any(SECRET[:4] in str(cell) for row in imported.dropped.rows() for cell in row)
    return imported.dropped.select("row_id", "reason").rows()


@pytest.mark.drill("data")
def test_one_bad_line_costs_one_record(importing: Any) -> None:
    for line, reason in (
        (LINE[:-4], "bad_json"),
        (LINE + LINE, "bad_json"),
        (f'{{"conversation": {"[" * 100_000}', "bad_json"),
        (f'{{"conversation": {"9" * 5000}}}', "bad_json"),
        (f'"{SECRET}"', "not_an_object"),
        ("{}", "wrong_form"),
        ('{"conversation": null}', "wrong_type"),
        ('{"conversation": []}', "no_turns"),
        ('{"conversation": [{"input": 5, "output": "x"}]}', "wrong_type"),
        ('{"conversation": [{"input": "a", "output": "b"}, {"input": "c"}]}', "missing_field"),
        (ESCAPED % "\\ud83d", "bad_unicode"),
        (ESCAPED % "\\u0000", "bad_unicode"),
        (LINE, "duplicate_id"),
    ):
        assert reasons(importing, f"{LINE}\n{line}\n", file="set.jsonl") == [("set.jsonl:2", reason)], line[:40]


def test_only_a_line_feed_ends_a_line(importing: Any) -> None:
    odd = json.dumps({"conversation": [{"input": "a\u2028b\x85c\x0cd", "output": "e"}]}, ensure_ascii=False)
    imported = importing("emollm", "\ufeff" + odd + "\r\n\r\n" + ESCAPED % "\\ud83d\\ude00", file="set.jsonl")
    assert imported.dropped.is_empty()
    assert [turns[0]["text"] for turns in imported.kept["turns"]] == ["a\u2028b\x85c\x0cd", "半个表情😀"]


@pytest.mark.drill("data")
def test_a_list_is_read_as_far_as_it_goes(importing: Any) -> None:
    for end in (f", {LINE[:20]}", ",", "", f" {LINE}]", "] and more"):
        assert reasons(importing, f"[{LINE}{end}") == [("set.json[1]", "bad_json")], end
        assert importing("emollm", f"[{LINE}{end}").kept.height == 1
    assert reasons(importing, json.dumps(GOOD, indent=1)) == []
    assert reasons(importing, f"{LINE}\n{LINE[:9]}\n{OTHER}") == [("set.json:2", "bad_json")]
    assert reasons(importing, "[") == [("set.json[0]", "bad_json")]
    assert reasons(importing, "hello") == [("set.json", "bad_json")]


def test_a_file_without_records(importing: Any) -> None:
    for content in (b"", b" \n", b"[]", b"\xef\xbb\xbf"):
        with pytest.raises(UnreadableFile):
            importing("emollm", content)


@pytest.mark.drill("data")
def test_a_folder_of_which_some_files_are_broken(importing: Any) -> None:
    turns = [{"role": "client", "content": "喂"}, {"role": "counselor", "content": "在"}]
    good = json.dumps(turns, ensure_ascii=False)
    imported = importing(
        "smile",
        {
            "1.json": good,
            "2.json": good[:-3],
            "3.json": "",
            "4.json": b"\xff\xfe\xfd",
            "5.json": {"messages": turns},
            "6.json": [*turns, {"role": SECRET, "content": "x"}],
            "7.json": [*turns, {"role": "client"}],
            "9.json": [{"role": "client", "content": "\u200b\ufeff"}],
            "8.json": good.encode().replace("喂".encode(), b"\xe5\x96"),
            "deep/1.json": [*turns, *turns],
            ".hidden/9.json": good,
            "readme.md": "no",
        },
    )
    assert imported.kept["dialogue_id"].to_list() == ["smile:1"]
    assert dict(imported.dropped.select("row_id", "reason").rows()) == {
        **{"2.json": "bad_json", "3.json": "empty_file", "4.json": "unknown_encoding", "5.json": "wrong_form"},
        **{"6.json": "unknown_role", "7.json": "missing_field", "8.json": "unknown_encoding", "9.json": "no_turns"},
        "deep/1.json": "duplicate_id",
    }
    assert SECRET not in "".join(imported.dropped["detail"].drop_nulls())


@pytest.mark.drill("data")
def test_a_stray_quotation_mark_swallows_lines_and_says_so(importing: Any) -> None:
    imported = importing("qa_csv", 'title,answer\n\na,b\nc,"d\ne,f\n', file="qa.csv")
    assert imported.kept["title"].to_list() == ["a"]
    [(row_id, detail)] = imported.dropped.select("row_id", "detail").rows()
    assert row_id == "qa.csv:4"
    assert "up to line 5" in detail


def test_a_csv_without_a_header_of_the_right_columns(importing: Any) -> None:
    for text, message in (
        ('"a"b,c\n1,2', "no CSV with a header"),
        ("title,answer,title\n1,2,3", "no CSV with a header"),
        (f"title,{SECRET}\na,b", "no column for answer"),
    ):
        with pytest.raises(UnreadableFile, match=message) as caught:
            importing("qa_csv", text, file="qa.csv")
        assert SECRET not in str(caught.value)


def test_details_name_keys_and_types(importing: Any) -> None:
    record = {"conversation": [GOOD["conversation"][0], {"input": [SECRET], "output": "x"}]}
    [detail] = importing("emollm", [record]).dropped["detail"]
    assert detail == "`conversation[1].input` is a list, not a text"
    with pytest.raises(UnreadableFile) as caught:
        importing("psyqa", [{SECRET: 1, "I am John Smith": 2, "ok_key": 3}])
    assert caught.match(
        "needs `question`, `answers`, `questionID`; has a name of 10 characters, a name of 15 characters, `ok_key`"
    )


def test_requests_that_cannot_be(importing: Any, tmp_path: Any) -> None:
    with pytest.raises(UnknownName, match="there is no data set 'psyqq'") as caught:
        importing("psyqq", [])
    assert "did you mean 'psyqa'" in caught.value.hint
    for name, request, says in (
        ("emollm", {"data_set": "my set:1"}, "cannot be called"),
        ("emollm", {"mapping": tmp_path / "m.toml"}, "takes no mapping"),
        ("mapped", {}, "needs a mapping"),
        ("emollm", {"author_key": b"short"}, "too short"),
    ):
        with pytest.raises(RequestError, match=says):
            importing(name, [GOOD], **request)


MESC = "Utterance,Speaker,Dialogue_ID,Utterance_ID,Season,Episode,StartTime,EndTime\n"


def test_mesc_rows(importing: Any) -> None:
    for row, reason in (
        ("a,Client,1,0,1,1,now,then", "wrong_value"),
        ("a,Client,1,x,1,1,,", "wrong_type"),
        ("a,Client,,0,1,1,,", "missing_field"),
        ("a,Client,1,0,1,1,,\nb,Client,1,0,1,1,,", "wrong_order"),
        ("a,Paul,1,0,1,1,,", "unknown_role"),
        ("a,Client", "bad_csv"),
    ):
        imported = importing("mesc", f"{MESC}ok,Client,0,0,1,1,,\n{row}\n", file="MESC.csv")
        assert imported.kept["modality"].to_list() == ["text"]
        assert imported.dropped.select("row_id", "reason").rows() == [("MESC.csv:3", reason)]
    with pytest.raises(UnreadableFile, match="mix a model's description"):
        importing("mesc", [{"dialog": []}], file="test.json")


FEEDBACK = {"dialog": [{"speaker": "usr", "content": "a", "annotation": {"feedback": "9"}}]}
VIEW = {"dialogue_history": [{"index": 3, "role": "speaker", "utterance": "a"}]}


@pytest.mark.parametrize(
    ("name", "record", "reason"),
    [
        ("llama_factory", {"instruction": "a", "output": "b", "history": [["c"]]}, "wrong_value"),
        ("esconv", FEEDBACK, "wrong_value"),
        ("esconv", {"dialog": [{"speaker": "usr", "content": "a", "annotation": {"strategy": 9}}]}, "wrong_type"),
        ("avamerg", {"conversation_id": "1", "turns": [{"dialogue_history": []}]}, "wrong_value"),
        ("avamerg", {"conversation_id": "1", "turns": [VIEW]}, "wrong_order"),
        ("cpsycoune", ["求助者：喂", None], "unknown_role"),
        ("cpsycoune", [{"a": 1}], "wrong_form"),
        ("cpsycoun", "喂\n来访者：喂", "unlabelled_text"),
    ],
)
def test_records_of_each_source(importing: Any, name: str, record: Any, reason: str) -> None:
    good: dict[str, Any] = {"cpsycoune": ("json", ["求助者：喂"]), "cpsycoun": ("txt", "来访者：喂")}
    suffix, first = good.get(name, ("", None))
    imported = importing(name, {f"1.{suffix}": first, f"2.{suffix}": record} if first else [record])
    assert imported.dropped["reason"].to_list() == [reason]


def test_a_large_archive_is_packed_as_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its members may have the same name twice."""
    monkeypatch.setattr("pipelines.ingest.rows._BATCH", 2)
    archive = tmp_path / "emollm.tar"
    records = [f'{{"conversation": [{{"input": "{i}", "output": "b"}}]}}' for i in range(5)]
    with tarfile.open(archive, "w") as tar:
        for name, text in (("1.json", "["), ("1.json", "{"), ("2.json", "\n".join(records))):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    imported = read("emollm", archive)
    assert [turns[0]["text"] for turns in imported.kept["turns"]] == [*"01234"]
    assert imported.dropped["row_id"].n_unique() == 2


LONG = LINE.replace("我在听。", "长" * MAX_RECORD_CHARS)


@pytest.mark.drill("data")
def test_a_record_too_long_is_dropped_and_the_others_are_read(importing: Any) -> None:
    for file, text, place, kept in (
        ("set.jsonl", f"{LINE}\n{LONG}\n{OTHER}", "set.jsonl:2", 2),
        ("set.json", f"[{LINE}, {LONG}, {OTHER}]", "set.json[1]", 2),
        ("set.json", f'[{LINE}, "{"[" * MAX_RECORD_CHARS}", {OTHER}]', "set.json[1]", 2),
        ("set.json", f"[{LINE}, {'[' * MAX_RECORD_CHARS}, {OTHER}]", "set.json[1]", 1),
        ("set.json", f"[{LINE}, {LONG}", "set.json[1]", 1),
        ("set.json", LONG, "set.json", 0),
    ):
        imported = importing("emollm", text, file=file)
        assert (place, "too_long") in imported.dropped.select("row_id", "reason").rows(), text[-40:]
        assert imported.kept.height == kept, text[-40:]


def test_an_error_deep_in_a_long_list_has_line_and_column(importing: Any) -> None:
    bad = '{"conversation":\n  oops}'
    records = ",\n".join([LINE.replace("我在听。", "长" * 100_000)] * 30 + [bad] + [OTHER] * 3)
    [*_, detail] = importing("emollm", f"[{records}]").dropped["detail"]
    assert detail == "Expecting value at line 32, column 3; the list was read no further"


@pytest.mark.drill("data")
@pytest.mark.parametrize("chars", [150_000, MAX_RECORD_CHARS + 1])
def test_every_form_has_the_same_bound(importing: Any, tmp_path: Path, chars: int) -> None:
    """A field of CSV may be as long as one of JSON; nothing is read from inside one that is too long."""
    mapping = tmp_path / "mapping.toml"
    head = 'kind = "posts"\ntitle = "x"\nlicence = "CC0-1.0"\nconsent = "invented"\nlang = "zh"\n'
    mapping.write_text(f'{head}[columns]\nid = "id"\ntitle = "title"\n', encoding="utf-8")
    rows = [{"id": "1", "title": "短"}, {"id": "2", "title": "长" * chars + "\nmade,up"}, {"id": "3", "title": "短"}]
    pl.DataFrame(rows).write_parquet(frame := io.BytesIO())
    csv = "id,title\n" + "".join(f'{row["id"]},"{row["title"]}"\n' for row in rows)
    lines = "\n".join(json.dumps(row) for row in rows)
    kept = ["1", "3"] if chars > MAX_RECORD_CHARS else ["1", "2", "3"]
    for suffix, content in (("json", rows), ("jsonl", lines), ("csv", csv), ("parquet", frame.getvalue())):
        imported = importing("mapped", content, file=f"set.{suffix}", mapping=mapping)
        assert imported.dropped["reason"].to_list() == ["too_long"] * (3 - len(kept)), suffix
        assert imported.kept["source_id"].to_list() == kept, suffix


@pytest.mark.drill("data")
def test_a_dialogue_of_many_rows_has_the_bound_too(importing: Any) -> None:
    rows = "".join(f"{'长' * (MAX_RECORD_CHARS // 4)},Client,1,{i},1,1,,\n" for i in range(5))
    imported = importing("mesc", f"{MESC}ok,Client,0,0,1,1,,\n{rows}", file="MESC.csv")
    assert imported.kept.height == 1
    assert imported.dropped["reason"].to_list() == ["too_long"]
