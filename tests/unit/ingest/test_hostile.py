"""What is broken is a row with its place, never a crash, and never a quotation."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from importing_fixtures import Importing

from pipelines.errors import RequestError, UnknownName, UnreadableFile
from pipelines.ingest.importing import read
from pipelines.ingest.records import MAX_RECORD_CHARS

SECRET = "我叫王小明电话一三八"
GOOD = {"conversation": [{"input": SECRET, "output": "我在听。"}]}
LINE = json.dumps(GOOD, ensure_ascii=False)
ESCAPED = '{"conversation": [{"input": "半个表情%s", "output": "嗯"}]}'


def reasons(importing: Importing, content: Any, **settings: Any) -> list[tuple[str, str]]:
    imported = importing("emollm", content, **settings)
    assert imported.n_records == imported.kept.height + imported.dropped.height
    assert not any(SECRET[:4] in str(cell) for row in imported.dropped.rows() for cell in row)
    return imported.dropped.select("row_id", "reason").rows()


@pytest.mark.drill("data")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (LINE[:-4], "bad_json"),
        (LINE + LINE, "bad_json"),
        (f'{{"conversation": {"[" * 100_000}', "bad_json"),
        (f'{{"conversation": {"9" * 5000}}}', "bad_json"),
        ("null", "not_an_object"),
        (f'["{SECRET}"]', "not_an_object"),
        (f'"{SECRET}"', "not_an_object"),
        ("{}", "wrong_form"),
        ('{"conversation": null}', "wrong_type"),
        ('{"conversation": []}', "no_turns"),
        ('{"conversation": [null]}', "wrong_type"),
        ('{"conversation": [{"input": 5, "output": "x"}]}', "wrong_type"),
        ('{"conversation": [{"input": " ", "output": "\\n"}]}', "no_turns"),
        ('{"conversation": [{"input": "a", "output": "b"}, {"input": "c"}]}', "missing_field"),
        (ESCAPED % "\\ud83d", "bad_unicode"),
        (ESCAPED % "\\ude00", "bad_unicode"),
        (ESCAPED % "\\u0000", "bad_unicode"),
        (ESCAPED % "\0", "bad_unicode"),
        (LINE, "duplicate_id"),
    ],
)
def test_one_bad_line_costs_one_record(importing: Importing, line: str, reason: str) -> None:
    assert reasons(importing, f"{LINE}\n{line}\n", file="set.jsonl") == [("set.jsonl:2", reason)]


def test_an_emoji_in_two_escapes_is_whole(importing: Importing) -> None:
    imported = importing("emollm", ESCAPED % "\\ud83d\\ude00", file="set.jsonl")
    assert imported.kept["turns"][0][0]["text"] == "半个表情😀"


def test_only_a_line_feed_ends_a_line(importing: Importing) -> None:
    odd = json.dumps({"conversation": [{"input": "a\u2028b\x85c\x0cd", "output": "e"}]}, ensure_ascii=False)
    imported = importing("emollm", f"\ufeff{odd}\r\n\r\n{LINE}", file="set.jsonl")
    assert (imported.kept.height, imported.dropped.height) == (2, 0)
    assert imported.kept["turns"][0][0]["text"] == "a\u2028b\x85c\x0cd"


@pytest.mark.drill("data")
@pytest.mark.parametrize(
    ("text", "kept", "broken"),
    [
        (f"[{LINE}, {LINE[:20]}", 1, [("set.json[1]", "bad_json")]),
        (f"[{LINE},", 1, [("set.json[1]", "bad_json")]),
        (f"[{LINE}", 1, [("set.json[1]", "bad_json")]),
        (f"[{LINE} {LINE}]", 1, [("set.json[1]", "bad_json")]),
        (f"[{LINE}] and more", 1, [("set.json[1]", "bad_json")]),
        (f"[{LINE}, 7]", 1, [("set.json[1]", "not_an_object")]),
        (json.dumps(GOOD, indent=1), 1, []),
        (f"{LINE}\n{LINE[:9]}\n{LINE.replace('听', '看')}", 2, [("set.json:2", "bad_json")]),
        ("[", 0, [("set.json[0]", "bad_json")]),
        ("hello", 0, [("set.json", "bad_json")]),
    ],
)
def test_a_list_is_read_as_far_as_it_goes(
    importing: Importing, text: str, kept: int, broken: list[tuple[str, str]]
) -> None:
    assert reasons(importing, text) == broken
    assert importing("emollm", text).kept.height == kept


@pytest.mark.parametrize("content", [b"", b" \n", b"[]", b"\xef\xbb\xbf"])
def test_a_file_without_records(importing: Importing, content: bytes) -> None:
    with pytest.raises(UnreadableFile):
        importing("emollm", content)


@pytest.mark.drill("data")
def test_a_folder_of_which_some_files_are_broken(importing: Importing) -> None:
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
            "8.json": good.encode().replace("喂".encode(), b"\xe5\x96"),
            "deep/1.json": [*turns, *turns],
            ".hidden/9.json": good,
            "readme.md": "no",
        },
    )
    assert imported.kept["dialogue_id"].to_list() == ["smile:1"]
    assert imported.dropped.select("row_id", "reason").rows() == [
        ("2.json", "bad_json"),
        ("3.json", "empty_file"),
        ("4.json", "unknown_encoding"),
        ("5.json", "wrong_form"),
        ("6.json", "unknown_role"),
        ("7.json", "missing_field"),
        ("8.json", "unknown_encoding"),
        ("deep/1.json", "duplicate_id"),
    ]
    assert SECRET not in "".join(imported.dropped["detail"].drop_nulls())


def test_text_before_the_first_speaker(importing: Importing) -> None:
    imported = importing("cpsycoun", {"case_1.txt": "来访者：喂", "case_2.txt": f"{SECRET}\n来访者：喂"})
    assert imported.dropped.select("reason", "detail").rows() == [
        ("unlabelled_text", "line 1 stands before the first speaker")
    ]


@pytest.mark.drill("data")
def test_a_stray_quotation_mark_swallows_lines_and_says_so(importing: Importing) -> None:
    text = 'title,answer\na,b\nc,"d\ne,f\n'
    imported = importing("qa_csv", text, file="qa.csv")
    assert imported.kept["title"].to_list() == ["a"]
    [(row_id, detail)] = imported.dropped.select("row_id", "detail").rows()
    assert row_id == "qa.csv:3"
    assert "up to line 4" in detail


def test_a_csv_without_the_columns_names_them(importing: Importing) -> None:
    with pytest.raises(UnreadableFile, match="no column for answer") as caught:
        importing("qa_csv", f"title,{SECRET}\na,b\n", file="qa.csv")
    assert SECRET not in str(caught.value)
    assert "回答" in caught.value.hint


@pytest.mark.parametrize("head", ['"a"b,c', "title,answer,title"])
def test_a_csv_whose_header_cannot_be_read(importing: Importing, head: str) -> None:
    with pytest.raises(UnreadableFile, match="no CSV with a header"):
        importing("qa_csv", f"{head}\n1,2,3\n", file="qa.csv")


def test_an_empty_line_of_a_csv_is_no_row(importing: Importing) -> None:
    assert importing("qa_csv", "title,answer\n\na,b\n", file="qa.csv").n_records == 1


def test_details_name_keys_and_types(importing: Importing) -> None:
    record = {"conversation": [GOOD["conversation"][0], {"input": [SECRET], "output": "x"}]}
    [detail] = importing("emollm", [record]).dropped["detail"]
    assert detail == "`conversation[1].input` is a list, not a text"
    with pytest.raises(UnreadableFile) as caught:
        importing("psyqa", [{SECRET: 1, "I am John Smith": 2, "ok_key": 3}])
    assert caught.match("needs `question`, `answers`; has a name of 10 characters, a name of 15 characters, `ok_key`")


def test_mesc_refuses_its_own_json(importing: Importing) -> None:
    with pytest.raises(UnreadableFile, match="mix a model's description"):
        importing("mesc", [{"dialog": []}], file="test.json")


def test_requests_that_cannot_be(importing: Importing, tmp_path: Any) -> None:
    with pytest.raises(UnknownName, match="there is no data set 'psyqq'") as caught:
        importing("psyqq", [])
    assert "did you mean 'psyqa'" in caught.value.hint
    with pytest.raises(RequestError, match="cannot be called"):
        importing("emollm", [GOOD], data_set="my set:1")
    with pytest.raises(RequestError, match="takes no mapping"):
        importing("emollm", [GOOD], mapping=tmp_path / "m.toml")
    with pytest.raises(RequestError, match="needs a mapping"):
        importing("mapped", [GOOD])
    with pytest.raises(RequestError, match="too short"):
        importing("emollm", [GOOD], author_key=b"short")


MESC = "Utterance,Speaker,Dialogue_ID,Utterance_ID,Season,Episode,StartTime,EndTime\n"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a,Client,1,0,1,1,now,then", "wrong_value"),
        ("a,Client,1,x,1,1,,", "wrong_type"),
        ('a,Client,1,0,one,1,"00:00:01,000","00:00:02,000"', "wrong_type"),
        ("a,Client,,0,1,1,,", "missing_field"),
        ("a,Client,1,0,1,1,,\nb,Client,1,0,1,1,,", "wrong_order"),
        ("a,Paul,1,0,1,1,,", "unknown_role"),
        ("a,Client", "bad_csv"),
    ],
)
def test_mesc_rows(importing: Importing, row: str, reason: str) -> None:
    imported = importing("mesc", f"{MESC}ok,Client,0,0,1,1,,\n{row}\n", file="MESC.csv")
    assert imported.kept["modality"].to_list() == ["text"]
    assert imported.dropped.select("row_id", "reason").rows() == [("MESC.csv:3", reason)]


@pytest.mark.parametrize(
    ("name", "record", "reason"),
    [
        ("cpsycoune", ["求助者：喂", "没有标签"], "unknown_role"),
        ("cpsycoune", ["求助者：喂", None], "unknown_role"),
        ("cpsycoune", {"a": 1}, "wrong_form"),
        ("cpsycoune", [{"a": 1}], "wrong_form"),
        ("smile", {"a": 1}, "wrong_form"),
    ],
)
def test_files_of_one_record(importing: Importing, name: str, record: Any, reason: str) -> None:
    good = {"smile": [{"role": "client", "content": "喂"}], "cpsycoune": ["求助者：喂"]}[name]
    imported = importing(name, {"a.json": good, "b.json": record})
    assert imported.dropped.select("row_id", "reason").rows() == [("b.json", reason)]


@pytest.mark.parametrize(
    ("name", "record", "reason"),
    [
        ("llama_factory", {"instruction": "a", "output": "b", "history": [["c"]]}, "wrong_type"),
        ("esconv", {"dialog": [{"speaker": "usr", "content": "a", "annotation": {"feedback": "9"}}]}, "wrong_value"),
        ("esconv", {"dialog": [{"speaker": "usr", "content": "a", "annotation": {"strategy": 9}}]}, "wrong_type"),
        ("avamerg", {"conversation_id": "1", "turns": [{"dialogue_history": []}]}, "missing_field"),
        (
            "avamerg",
            {
                "conversation_id": "1",
                "turns": [{"dialogue_history": [{"index": 3, "role": "speaker", "utterance": "a"}]}],
            },
            "wrong_order",
        ),
    ],
)
def test_records_of_a_list(importing: Importing, name: str, record: Any, reason: str) -> None:
    assert importing(name, [record]).dropped.select("row_id", "reason").rows() == [("set.json[0]", reason)]


def test_large_sets_are_packed_as_they_come(importing: Importing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.ingest.rows._BATCH", 2)
    records = [{"conversation": [{"input": f"第{i}个", "output": "嗯"}]} for i in range(5)]
    imported = importing("emollm", [*records, records[0]])
    assert [turns[0]["text"] for turns in imported.kept["turns"]] == [f"第{i}个" for i in range(5)]
    assert imported.dropped["reason"].to_list() == ["duplicate_id"]


def test_two_members_of_one_name_are_two_drops(tmp_path: Path) -> None:
    archive = tmp_path / "smile.tar"
    with tarfile.open(archive, "w") as tar:
        good = json.dumps(
            [{"role": "client", "content": "我很烦"}, {"role": "counselor", "content": "怎么了"}]
        ).encode()
        for name, data in (("1.json", b"["), ("1.json", b"{"), ("2.json", good)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    imported = read("smile", archive)
    assert (imported.kept.height, imported.dropped.height) == (1, 2)
    assert imported.dropped["row_id"].n_unique() == 2


def test_a_turn_that_shows_nothing_is_an_empty_one(importing: Importing) -> None:
    turns = [("client", "\u200b"), ("client", "我很烦"), ("counselor", "怎么了"), ("client", "\u2060\ufeff")]
    imported = importing("smile", {"1.json": [{"role": role, "content": text} for role, text in turns]})
    assert imported.notes["empty_turns"] == 2
    assert [turn["text"] for turn in imported.kept["turns"][0]] == ["我很烦", "怎么了"]


def long(chars: int) -> dict[str, Any]:
    return {"conversation": [{"input": "长" * chars, "output": "嗯"}]}


LONG = json.dumps(long(MAX_RECORD_CHARS), ensure_ascii=False)


OTHER = LINE.replace("听", "看")


@pytest.mark.drill("data")
@pytest.mark.parametrize(
    ("file", "text", "place", "kept"),
    [
        ("set.jsonl", f"{LINE}\n{LONG}\n{OTHER}", "set.jsonl:2", 2),
        ("set.json", f"[{LINE}, {LONG}, {OTHER}]", "set.json[1]", 2),
        ("set.json", f'[{LINE}, "{"[" * MAX_RECORD_CHARS}", {OTHER}]', "set.json[1]", 2),
        ("set.json", f"[{LINE}, {'[' * MAX_RECORD_CHARS}, {OTHER}]", "set.json[1]", 1),
        ("set.json", f"[{LINE}, {LONG}", "set.json[1]", 1),
        ("set.json", LONG, "set.json", 0),
    ],
    ids=["lines", "list", "brackets in a text", "brackets that never close", "cut", "one object"],
)
def test_a_record_too_long_is_dropped_and_the_others_are_read(
    importing: Importing, file: str, text: str, place: str, kept: int
) -> None:
    imported = importing("emollm", text, file=file)
    assert (place, "too_long") in imported.dropped.select("row_id", "reason").rows()
    assert imported.kept.height == kept


@pytest.mark.drill("data")
def test_no_row_is_made_of_what_stands_in_a_field_too_long(importing: Importing, tmp_path: Path) -> None:
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(
        'kind = "posts"\ntitle = "x"\nlicence = "CC0-1.0"\nconsent = "invented"\nlang = "zh"\norigin = "model"\n'
        '[columns]\nid = "id"\ntitle = "title"\n',
        encoding="utf-8",
    )
    csv = f'id,title\n1,短\n"{"x" * (MAX_RECORD_CHARS + 1)}\nmade,up\nrow,too",end\n3,短\n'
    imported = importing("mapped", csv, file="set.csv", mapping=mapping)
    assert imported.kept["source_id"].to_list() == ["1", "3"]
    assert imported.dropped["reason"].to_list() == ["too_long"]


def test_what_is_wrong_deep_in_a_long_list_is_told_by_line_and_column(importing: Importing) -> None:
    bad = '{"conversation":\n  oops}'
    records = ",\n".join([json.dumps(long(100_000), ensure_ascii=False)] * 30 + [bad] + [OTHER] * 3)
    [*_, detail] = importing("emollm", f"[{records}]").dropped["detail"]
    assert detail == "Expecting value at line 32, column 3; the list was read no further"


@pytest.mark.drill("data")
@pytest.mark.parametrize("chars", [150_000, MAX_RECORD_CHARS + 1])
def test_every_form_has_the_same_bound(importing: Importing, tmp_path: Path, chars: int) -> None:
    """A field of a CSV file may be as long as one of JSON, and falls for the same reason."""
    text = "长" * chars
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(
        'kind = "posts"\ntitle = "x"\nlicence = "CC0-1.0"\nconsent = "invented"\nlang = "zh"\norigin = "model"\n'
        '[columns]\nid = "id"\ntitle = "title"\n',
        encoding="utf-8",
    )
    rows = [{"id": "1", "title": "短"}, {"id": "2", "title": text}, {"id": "3", "title": "短"}]
    frame = io.BytesIO()
    pl.DataFrame(rows).write_parquet(frame)
    csv = "id,title\n" + "".join(f"{row['id']},{row['title']}\n" for row in rows)
    for file, content in (
        ("set.json", rows),
        ("set.jsonl", "\n".join(json.dumps(row) for row in rows)),
        ("set.csv", csv),
        ("set.parquet", frame.getvalue()),
    ):
        imported = importing("mapped", content, file=file, mapping=mapping)
        reasons = imported.dropped["reason"].to_list()
        assert reasons == (["too_long"] if chars > MAX_RECORD_CHARS else []), file
        assert imported.kept["source_id"].to_list() == (["1", "3"] if reasons else ["1", "2", "3"])


@pytest.mark.drill("data")
def test_a_dialogue_that_its_rows_make_too_long_is_dropped(importing: Importing) -> None:
    text = "长" * (MAX_RECORD_CHARS // 4)
    rows = "".join(f"{text},Client,1,{i},1,1,,\n" for i in range(5))
    imported = importing("mesc", f"{MESC}ok,Client,0,0,1,1,,\n{rows}", file="MESC.csv")
    assert imported.kept.height == 1
    assert imported.dropped["reason"].to_list() == ["too_long"]
    imported = importing("cpsycoun", {"case_1.txt": "来访者：喂", "case_2.txt": f"来访者：{'长' * MAX_RECORD_CHARS}"})
    assert imported.dropped["reason"].to_list() == ["too_long"]
