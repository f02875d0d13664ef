"""The report of a home: what it shows, what it never shows, and that nothing in it is alive."""

import asyncio
import json
import re
import shutil
import tomllib
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
from erase_home import make_home
from hypothesis import given
from hypothesis import strategies as st
from table_rows import frame, row_of
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.core.home import Home
from pipelines.defs.releases import report
from pipelines.defs.resources import HomeResource
from pipelines.errors import RequestError, UnknownName
from pipelines.ingest.import_file import import_file
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Answer, Call
from pipelines.llm.money import Usage
from pipelines.operations.report.page import sections, write_report
from pipelines.operations.report.samples import marked
from pipelines.operations.report.section import Section
from pipelines.settings import ROOT
from pipelines.store import Store
from schemas.dropped import Lost, dropped
from schemas.labels import SPLITS
from schemas.posts import CleanPosts, RawPosts

SECTIONS = (
    "release",
    "funnel",
    "sets",
    "cleaned",
    "dropped",
    "merged",
    "days",
    "personal",
    "papers",
    "models",
    "people",
    "walked",
)


@pytest.fixture(scope="module")
def page(released_home: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_report(released_home, file=tmp_path_factory.mktemp("page") / "page.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def whole(released_home: Path) -> list[Section]:
    """All sections of it."""
    return list(sections(released_home))


def test_every_section_has_its_title_its_command_and_something_to_show(page: str, whole: list[Section]):
    assert [one.key for one in whole if not one.empty] == [
        key for key in SECTIONS if key in re.findall(r'<h2 id="(\w+)">', page)
    ]
    assert re.findall(r'<h2 id="(\w+)">', page)[-1] == "limits"
    assert page.count("<code>gongqing ") >= len(re.findall(r"<h2", page)) - 1
    assert len(page.encode()) < 2_000_000


def test_in_chinese_every_title_and_head_is_chinese(whole: list[Section]):
    words = tomllib.loads((ROOT / "pipelines" / "operations" / "report" / "words.toml").read_text(encoding="utf-8"))
    tables = [table for one in whole for table in one.tables]
    tables += [one.steps for section in whole for one in section.samples if one.steps]
    assert tables
    heads = {head for table in tables for head in table.columns} - {"", "%", "C", "posts: %"}
    assert not heads - words["zh"]["heads"].keys()
    assert not {table.title for table in tables} - {"", *words["zh"]["titles"]}
    assert words["en"].keys() == words["zh"].keys()


def test_a_damaged_table_costs_its_own_section_alone(released_home: Path, tmp_path: Path):
    home = tmp_path / "home"
    shutil.copytree(released_home, home, symlinks=True)
    version = Store(home / "data").version("unique_posts")
    file = home / "data" / "unique_posts" / version.version / "rows" / "part-00000.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    damaged = {one.key: one.problem for one in sections(home) if one.problem}
    assert {"days", "merged", "papers"} <= damaged.keys()
    assert {"release", "cleaned", "models", "people"}.isdisjoint(damaged)
    assert all("unique_posts" in problem for problem in damaged.values())
    assert "unique_posts" in write_report(home, lang="zh").read_text(encoding="utf-8")


def test_each_section_is_reprinted_by_its_command(page: str, released_home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GONGQING_HOME", str(released_home))
    commands = re.findall(r"<code>gongqing (report --section \w+)</code>", page)
    assert len(commands) == page.count("<h2 id=") - 1
    for command in commands:
        ran = CliRunner().invoke(app, command.split())
        assert ran.exit_code == 0, command
    [funnel] = list(sections(released_home, key="funnel"))
    printed = CliRunner().invoke(app, ["report", "--section", "funnel"], terminal_width=300).stdout
    assert all(f"{row[3]:,}" in printed for row in funnel.tables[-1].rows if row[3])
    with pytest.raises(UnknownName, match="did you mean 'funnel'"):
        next(sections(released_home, key="funel"))


def test_a_place_that_is_no_file_is_refused(released_home: Path, tmp_path: Path):
    for place in (tmp_path, tmp_path / "nowhere" / "page.html"):
        with pytest.raises(RequestError, match="the report cannot be written"):
            write_report(released_home, file=place)
    assert not list(tmp_path.iterdir())


def test_the_sets_are_counted_by_split(whole: list[Section], released_home: Path):
    [sets] = [one for one in whole if one.key == "sets"]
    rows = Store(released_home / "data").read("grpo_cer").collect()
    counted = [row for row in sets.tables[0].rows if row[0] == "grpo_cer"]
    assert [sum(row[3 + place] for row in counted) for place in range(3)] == [
        rows.filter(split=split).height for split in SPLITS
    ]
    assert {row[1] for row in counted} == set(rows["variant"])


def test_the_funnel_adds_up_for_each_source(whole: list[Section], released_home: Path):
    store = Store(released_home / "data")
    [funnel] = [one for one in whole if one.key == "funnel"]
    rows = {row[:3]: row[3:6] for row in funnel.tables[-1].rows}
    [source] = {name for table, name, _ in rows if table == "clean_posts"}
    posts, answers = (rows["clean_posts", source, unit] for unit in ("post", "answer"))
    imported = pl.concat(
        store.read(one.table, one.version, one.partition).select("answers") for one in store.current("imported_posts")
    ).collect()
    assert sum(posts) == imported.height
    assert sum(answers) == imported["answers"].list.len().sum()
    assert posts[0] == store.read("clean_posts").collect().height
    not_train = store.read_dropped("ecot_chains").filter(reason="not_train").collect().height
    assert rows["ecot_chains", source, "post"][2] >= not_train > 0


def test_figures_about_judges_are_rows_of_no_source(tmp_path: Path):
    make_home(tmp_path)
    [funnel] = [one for one in sections(tmp_path, None) if one.key == "funnel"]
    assert {row[0] for row in funnel.tables[-1].rows} >= {"clean_posts", "rankings"}


def test_three_rows_are_walked_with_who_made_them_and_who_labelled_them(whole: list[Section]):
    [walked] = [one for one in whole if one.key == "walked"]
    assert len(walked.samples) == 3
    by_table = [{row[1]: row[4] for row in sample.steps.rows} for sample in walked.samples if sample.steps]
    assert all("provider" in steps["coe_chains"] for steps in by_table[:2])
    assert "annotators" in by_table[2]["cer_labels"]
    assert all(sample.command == f"gongqing why {sample.title}" for sample in walked.samples)
    assert [one.texts[-1].label for one in walked.samples] == ["grpo_coe", "grpo_coe", "grpo_cer"]


def test_the_cost_of_a_chain_stands_beside_it(whole: list[Section], released_home: Path, tmp_path: Path):
    home = tmp_path / "home"
    shutil.copytree(released_home, home)
    [walked] = [one for one in whole if one.key == "walked"]
    row_id = walked.samples[0].title
    [chain] = Store(home / "data").read("coe_chains").filter(post_id=row_id).collect().to_dicts()
    call = Call(chain["request_key"], "coe_chains", "r1", "deepseek-reasoner", b"{}", currency="CNY")
    with Ledger(Home(home).ledger) as ledger:
        attempt = asyncio.run(ledger.begin(call, reserve=12_000_000, budget=None))
        asyncio.run(ledger.answered(attempt, Answer(b"{}", "deepseek-reasoner", "stop", Usage(1, 0, 1), 12_000_000)))
    [walked] = sections(home, key="walked")
    [costs] = [[row[5] for row in sample.steps.rows if row[1] == "coe_chains"] for sample in walked.samples[:1]]
    assert costs == ["0.012 CNY"]


def test_nobody_at_risk_and_nobody_under_18_is_shown(page: str, released_home: Path):
    store = Store(released_home / "data")
    never = set[str]()
    for table, key in (("clean_posts", "post_id"), ("clean_dialogues", "dialogue_id")):
        rows = store.read(table).filter(pl.col("under_18") | (pl.col("risk").list.len() > 0))
        never |= set(rows.select(key).collect()[key])
        dropped = store.read_dropped(table).filter(pl.col("reason").str.starts_with("under_"))
        never |= set(dropped.select("row_id").collect()["row_id"])
    assert len(never) > 10
    assert {row_id for row_id in never if row_id in page} == set()


def test_what_is_to_be_taken_down_is_not_shown_either(page: str, released_home: Path, tmp_path: Path):
    def owners(html: str) -> set[str]:
        """Whose texts are shown: a title begins with the row, or of a dropped one ends with it."""
        titles = re.findall(r'<div class="sample">\n<p class="quiet">([^<]+) <code>', html)
        ids = [(title, re.findall(r"(?:replica|sample):\w+", title)) for title in titles]
        return {found[0] if title.startswith(found[0]) else found[-1] for title, found in ids}

    home = tmp_path / "home"
    shutil.copytree(released_home, home)
    shown = owners(page)
    (home / "takedown.txt").write_text("\n".join(shown), encoding="utf-8")
    left = owners(write_report(home).read_text(encoding="utf-8"))
    assert min(len(shown), len(left)) > 10
    assert not left & shown


def test_what_somebody_wrote_is_text_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    hostile = '<script>alert(1)</script><img src="https://example.com/x.png">'
    post = json.loads((ROOT / "samples" / "posts.jsonl").read_text(encoding="utf-8").split("\n")[0])
    text = "我今年三十二岁，已经很久没有睡好了，也不知道该和谁说，每天都觉得很累，心里堵得慌，想找个人聊聊。"
    file = tmp_path / "posts.jsonl"
    file.write_text(json.dumps({**post, "title": hostile, "description": text}, ensure_ascii=False), encoding="utf-8")
    home = tmp_path / "home"
    monkeypatch.setenv("GONGQING_HOME", str(home))
    monkeypatch.setenv("GONGQING_AUTHOR_KEY", "5" * 64)
    mapping = ROOT / "samples" / "posts.toml"
    import_file(Store(home / "data"), home, "mapped", file, data_set="mine", mapping=mapping)
    assert CliRunner().invoke(app, ["refresh"]).exit_code == 0
    html = write_report(home).read_text(encoding="utf-8")
    assert "default-src 'none'" in html
    assert "alert(1)" in html, "it is shown"
    assert not re.search(r"<(script|img|link|iframe)", html)
    assert oct((home / "report-en.html").stat().st_mode & 0o777) == "0o600"


def test_what_hides_a_text_is_shown(tmp_path: Path):
    store = Store(tmp_path / "data")
    store.write(
        "clean_posts",
        frame(CleanPosts, row_of(CleanPosts, post_id="s:1", source_id="1", text="甲\u202e乙\u200d\u200b")),
    )
    raw = row_of(RawPosts, post_id="s:1", source_id="1", title="", description="甲丙\u202e乙")
    store.write("raw_posts", frame(RawPosts, raw), partition="s@2026-01-01")
    html = write_report(tmp_path).read_text(encoding="utf-8")
    assert "⟨U+202E⟩乙\u200d⟨U+200B⟩" in re.sub("</?(ins|del)>", "", html)
    assert not {"\u202e", "\u200b"} & set(html)


def test_what_is_not_there_is_named(tmp_path: Path, released_home: Path):
    with pytest.raises(RequestError, match="nothing to report"):
        write_report(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(UnknownName, match="language"):
        write_report(released_home, lang="fr", file=tmp_path / "x.html")
    with pytest.raises(RequestError, match="release"):
        write_report(released_home, release="v9", file=tmp_path / "x.html")


def test_the_command_and_the_asset_write_it_in_both_languages(
    released_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home = tmp_path / "home"
    shutil.copytree(released_home, home)
    monkeypatch.setenv("GONGQING_HOME", str(home))
    shown = CliRunner().invoke(app, ["report", "--lang", "zh"])
    assert shown.exit_code == 0, shown.output
    assert "从采集到训练" in (home / "report-zh.html").read_text(encoding="utf-8")
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize([report], instance=instance, resources={"home": HomeResource(path=str(home))})
        assert result.success
    assert {path.name for path in home.glob("report-*.html")} == {"report-en.html", "report-zh.html"}


SHORT = st.text(alphabet="甲乙丙，。\n", max_size=60)


@given(SHORT, SHORT)
def test_a_marked_text_holds_all_of_what_was_and_all_of_what_is(before: str, after: str):
    pieces = marked(before, after)
    assert "".join(text for mark, text in pieces if mark != "ins") == before
    assert "".join(text for mark, text in pieces if mark != "del") == after


def test_far_from_a_change_a_text_is_cut():
    long = "一" * 500
    pieces = marked(f"{long}甲{long}", f"{long}乙{long}")
    assert [mark for mark, _ in pieces] == ["", "del", "ins", ""]
    assert all(len(text) < 100 for _, text in pieces)


def test_of_a_post_by_a_minor_not_even_a_dropped_answer_is_shown(tmp_path: Path):
    store = Store(tmp_path / "data")
    young, grown = (row_of(CleanPosts, post_id=f"s:{n}", source_id=str(n), under_18=n == 1) for n in (1, 2))
    lost = [Lost("answer", f"s:{n}/1", "too_short", "9 characters") for n in (1, 2)]
    store.write("clean_posts", frame(CleanPosts, young, grown), dropped("clean_posts", lost))
    answers = [
        {"answer_id": f"s:{n}/1", "text": f"给{n}号的一句话", "author_role": "unknown", "spans": []} for n in (1, 2)
    ]
    posts = [row_of(RawPosts, post_id=f"s:{n}", source_id=str(n), answers=[one]) for n, one in enumerate(answers, 1)]
    store.write("raw_posts", frame(RawPosts, *posts), partition="s@2026-01-01")
    [section] = sections(tmp_path, key="dropped")
    assert [sample.title.rpartition(" ")[2] for sample in section.samples] == ["s:2/1"]


def test_a_long_text_of_one_character_is_compared_at_once():
    pieces = marked("哈" * 20_000, "哈" * 19_000 + "呀")
    assert {mark for mark, _ in pieces} <= {"", "del", "ins"}
