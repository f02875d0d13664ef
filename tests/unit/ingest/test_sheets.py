"""Spreadsheets: values as they were stored, dates as dates, and nothing that a hostile one may do."""

import zipfile
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from spreadsheet import Raw, workbook

from pipelines.core.workbooks import FaultyCell
from pipelines.errors import UnreadableFile
from pipelines.ingest import files
from pipelines.ingest.importing import Imported, read
from pipelines.ingest.mapped import sheet_rows
from pipelines.ingest.records import Source
from pipelines.settings import ROOT

MAPPING = """kind = "posts"
licence = "CC0-1.0"
consent = "given"
lang = "zh"
columns = { id = "编号", title = "标题", description = "正文", posted_at = "时间" }
answers = { text = "回答", likes = "有用", recommended = "推荐" }
"""
HEADER = ["编号", "标题", "正文", "时间", "回答", "有用", "推荐", None, "备注"]
POST = [100841638, "睡不着", "一行\n两行", datetime(2025, 3, 4, 21, 15), "喝牛奶。", 3, True, "无名的列", "从不读"]


def run(folder: Path, sheets: dict[str, Any], mapping: str = MAPPING, **parts: str | None) -> Imported:
    (folder / "map.toml").write_text(mapping, encoding="utf-8")
    (folder / "set.xlsx").write_bytes(workbook(sheets, parts))
    return read("mapped", folder / "set.xlsx", mapping=folder / "map.toml")


def cells(*values: Any, **parts: str | None) -> list[Any]:
    """The values of a row of cells."""
    header = [f"c{n}" for n in range(len(values))]
    [row] = sheet_rows(Source("set.xlsx", workbook({"一": [header, values]}, parts), "", "xlsx"), None)
    return [row.values[name] for name in header]


def test_posts_of_a_spreadsheet(tmp_path: Path) -> None:
    imported = run(tmp_path, {"帖子": [[], HEADER, POST, [], ["a-2", "只有标题", None, date(2025, 3, 5)]]})
    first, second = imported.kept.rows(named=True)
    assert (first["post_id"], first["title"], first["description"]) == ("mapped:100841638", "睡不着", "一行\n两行")
    assert (first["posted_at"], first["posted_at_precision"]) == (datetime(2025, 3, 4, 13, 15, tzinfo=UTC), "second")
    assert [(one["text"], one["likes"], one["recommended"]) for one in first["answers"]] == [("喝牛奶。", 3, True)]
    assert (second["source_id"], second["posted_at_precision"], second["answers"]) == ("a-2", "day", [])
    assert imported.encoding == "xlsx"
    assert imported.dropped.select("unit", "row_id", "reason").rows() == [("answer", "set.xlsx:5", "empty_answer")]


def test_the_example_of_the_docs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "mapping.md").read_text(encoding="utf-8")
    mapping = page.partition("## A spreadsheet")[2].partition("```toml\n")[2].partition("```")[0]
    sheets = {"说明": [["来自哪里"]], "帖子": [["编号", "标题", "正文", "标签", "时间", "回答", "有用"],
              [1, "睡不着", "三个晚上了", "情绪", date(2025, 3, 4), "先下床走走。", 2]]}  # fmt: skip
    [row] = run(tmp_path, sheets, mapping).kept.rows(named=True)
    assert (row["title"], row["topic"], row["answers"][0]["text"]) == ("睡不着", "情绪", "先下床走走。")
    assert row["posted_at"] == datetime(2025, 3, 3, 16, tzinfo=UTC)


def test_values_are_those_that_were_stored_last() -> None:
    inline = '<c t="inlineStr"><is><r><t>粗</t></r><r><t>体</t></r><rPh><t>cuti</t></rPh></is></c>'
    formulas = Raw('<c t="str"><f>A1&amp;B1</f><v>公式的字</v></c>'), Raw("<c><f>1+1</f><v>2</v></c>")
    assert cells(Raw(inline), *formulas) == ["粗体", "公式的字", 2]
    stored = ["=HYPERLINK(1)", 5.0, 5.5, False, None, "a_x000D_b_x005F_c"]
    assert cells(*stored) == ["=HYPERLINK(1)", 5, 5.5, False, "", "a\rb_c"]
    later = '<workbook xmlns:r="r"><workbookPr date1904="1"/><sheets><sheet name="一" r:id="rId1"/></sheets></workbook>'
    assert cells(Raw('<c s="2"><v>45720</v></c>'), **{"xl/workbook.xml": later}) == [date(2029, 3, 5)]


def test_a_faulty_cell_costs_a_row_that_needs_it_and_no_other(tmp_path: Path) -> None:
    for faulty in (
        '<c t="e"><v>#N/A</v></c>',
        "<c><f>1+1</f></c>",
        '<c t="s"><v>9999</v></c>',
        '<c t="s"><v>-1</v></c>',
        "<c><v>many</v></c>",
        "<c><v>1e999</v></c>",
        '<c s="1"><v>0.5</v></c>',
        '<c s="1"><v>1e12</v></c>',
    ):
        assert isinstance(cells(Raw(faulty), "x")[0], FaultyCell), faulty
        sheet = [HEADER, [1, Raw(faulty)], POST, [2, "好", None, Raw(faulty)], [3, "好", *[None] * 6, Raw(faulty)]]
        imported = run(tmp_path, {"一": sheet})
        assert imported.kept["source_id"].to_list() == ["100841638", "3"], faulty
        lost = imported.dropped.filter(unit="record").select("row_id", "reason").rows()
        assert lost == [("set.xlsx:2", "wrong_type"), ("set.xlsx:4", "bad_time")]


def test_a_sheet_may_be_named_and_one_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    sheets = {"first": [HEADER, POST], "second": [HEADER, [7, *POST[1:]]]}
    assert run(tmp_path, sheets).kept["source_id"].to_list() == ["100841638"]
    assert run(tmp_path, sheets, f'sheet = "second"\n{MAPPING}').kept["source_id"].to_list() == ["7"]
    with pytest.raises(UnreadableFile, match="no sheet 'third'; its sheets: `first`, `second`"):
        run(tmp_path, sheets, f'sheet = "third"\n{MAPPING}')
    with pytest.raises(UnreadableFile, match="two columns of the sheet have the same name"):
        run(tmp_path, {"a": [["编号", "标题", "标题"], [1, "x", "y"]]})


ENTITIES = '<!DOCTYPE x [<!ENTITY host SYSTEM "file:///etc/hostname"><!ENTITY a "共情">{more}]>'
LAUGHS = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
SHARED = '<sst xmlns="x"><si><t>{text}</t></si></sst>'


@pytest.mark.drill("data")
@pytest.mark.parametrize(
    "parts",
    [
        {"xl/sharedStrings.xml": ENTITIES.format(more="") + SHARED.format(text="&host;")},
        {"xl/sharedStrings.xml": ENTITIES.format(more=LAUGHS) + SHARED.format(text="&i;")},
        {"xl/sharedStrings.xml": "<!DOCTYPE x SYSTEM 'http://192.0.2.1/x.dtd'>" + SHARED.format(text="x")},
        {"xl/sharedStrings.xml": f"<sst>{'<si>' * 5_000}{'</si>' * 5_000}</sst>"},
        {"xl/workbook.xml": None},
        {"xl/_rels/workbook.xml.rels": None},
        {"xl/worksheets/sheet1.xml": None},
        {"xl/worksheets/sheet1.xml": "<worksheet><sheetData><row"},
        {"xl/worksheets/sheet1.xml": "<worksheet><sheetData><row r='x'><c/></row></sheetData></worksheet>"},
        {"xl/_rels/workbook.xml.rels": "<Relationships><Relationship Id='rId1' Type='/worksheet' "
                                       "Target='../../../etc/hostname'/></Relationships>"},
    ],
    ids=[
        "external entity", "entities in entities", "external definition", "depth", "no workbook", "no links",
        "no sheet", "cut", "no number of a row", "a path outside",
    ],
)  # fmt: skip
def test_a_hostile_spreadsheet_is_a_clear_error(tmp_path: Path, parts: dict[str, str | None]) -> None:
    with pytest.raises(UnreadableFile, match=r"no spreadsheet of the form \.xlsx, or is damaged"):
        run(tmp_path, {"a": [HEADER, POST]}, MAPPING, **parts)


@pytest.mark.drill("data")
def test_what_is_absurdly_large_once_unpacked_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 1_000_000)
    bomb = workbook({"a": [HEADER, POST]}, {"xl/media/nothing.xml": "x" * 2_000_000})
    assert len(bomb) < 10_000
    (tmp_path / "map.toml").write_text(MAPPING, encoding="utf-8")
    (tmp_path / "set.xlsx").write_bytes(bomb)
    with pytest.raises(UnreadableFile, match="absurdly large"):
        read("mapped", tmp_path / "set.xlsx", mapping=tmp_path / "map.toml")


def test_an_older_or_a_locked_file_says_how_to_save_it(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(MAPPING, encoding="utf-8")
    for data, hint in (
        (b"\xd0\xcf\x11\xe0" + bytes(600), "without a password"),
        (b"PK\x03\x04 half", "save it as .xlsx again"),
    ):
        (tmp_path / "set.xlsx").write_bytes(data)
        with pytest.raises(UnreadableFile) as refused:
            read("mapped", tmp_path / "set.xlsx", mapping=tmp_path / "map.toml")
        assert hint in refused.value.hint


def test_spreadsheets_in_a_folder_and_in_an_archive(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(MAPPING, encoding="utf-8")
    folder = tmp_path / "sets"
    folder.mkdir()
    with zipfile.ZipFile(tmp_path / "sets.zip", "w") as archive:
        for n in (1, 2):
            data = workbook({"a": [HEADER, [n, *POST[1:]]]})
            (folder / f"{n}.xlsx").write_bytes(data)
            archive.writestr(f"{n}.xlsx", data)
    for path in (folder, tmp_path / "sets.zip"):
        assert read("mapped", path, mapping=tmp_path / "map.toml").kept["source_id"].to_list() == ["1", "2"]
