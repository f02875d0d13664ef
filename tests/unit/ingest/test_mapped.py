"""Any file by a mapping: the samples, every form, and mappings that are wrong."""

import json
import re
import tomllib
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from pages import blocks

from pipelines.errors import RequestError, UnreadableFile
from pipelines.ingest.forms import Unfit
from pipelines.ingest.importing import Imported, read
from pipelines.ingest.mapped import read_time
from pipelines.ingest.mapping import Answers, AuthorRoles, Clips, Columns, Mapping, Roles, Sides, Turns
from schemas.ids import pseudonym
from schemas.labels import CONSENTS

KEY = b"sixteen bytes or more"
SAMPLES = Path(__file__).resolve().parents[3] / "samples"
HEAD = 'licence = "CC0-1.0"\nconsent = "given"\nlang = "zh"\n'

POSTS = f"""kind = "posts"
{HEAD}origin = {{ seeker = "human", supporter = "model" }}
lineage = ["forum"]
author_roles = {{ professional = ["咨询师"] }}
columns = {{ id = "meta.id", title = "t", description = "d", topic = "meta.topic", subtopics = "tags", author = "who",\
 posted_at = "when" }}
answers = {{ list = "replies", id = "n", text = "body", author = "who", author_role = "badge", posted_at = "when",\
 likes = "likes", recommended = "best" }}
"""
POST = {
    "meta": {"id": 7, "topic": "情绪"},
    "t": "我很累",
    "d": None,
    "tags": ["压力管理", "焦虑"],
    "who": "小林",
    "when": "2025-03-04 21:15",
    "replies": [
        {
            **{"n": "7-1", "body": "歇一歇。", "who": "阿木", "badge": "咨询师"},
            **{"when": "2025-03-05", "likes": 3, "best": True},
        },
        {"n": "7-2", "body": "抱抱。", "who": "", "badge": "路人"},
        {"n": "7-3", "body": "嗯。", "who": None, "likes": None},
        {"n": "7-4", "body": "好。", "likes": "many"},
    ],
}

DIALOGUES = f"""kind = "dialogues"
{HEAD}origin = "human"
columns = {{ id = "id", lang = "language", modality = "mode" }}
roles = {{ seeker = ["caller"], supporter = ["we"] }}
attributes = {{ shows = "shows" }}
turns = {{ list = "said", role = "by", text = "what", strategies = "how", feedback = "stars",\
 media = {{ list = "clips", uri = "file", kind = "sort", end_ms = "until" }} }}
"""
DIALOGUE = {
    "id": "a",
    "language": "en",
    "said": [
        {"by": "caller", "what": "hello", "clips": [{"file": "a.wav", "sort": "audio", "until": 900}]},
        {"by": "we", "what": "hi", "how": "Questions", "stars": None},
        {"by": "user", "what": "thanks", "stars": 5},
    ],
    "shows": ["media", {"x": 1}],
}


def run(folder: Path, mapping: str, record: Any, file: str = "set.jsonl", **settings: Any) -> Imported:
    (folder / "map.toml").write_text(mapping, encoding="utf-8")
    path = folder / file
    if isinstance(record, bytes):
        path.write_bytes(record)
    else:
        path.write_text(json.dumps(record, ensure_ascii=False), encoding="utf-8")
    return read("mapped", path, mapping=folder / "map.toml", author_key=KEY, **settings)


def test_posts(tmp_path: Path) -> None:
    imported = run(tmp_path, POSTS, POST, data_set="forum")
    [row] = imported.kept.rows(named=True)
    assert (row["post_id"], row["title"], row["description"]) == ("forum:7", "我很累", "")
    assert (row["topic"], row["subtopics"], row["lineage"]) == ("情绪", ["压力管理", "焦虑"], ["forum"])
    assert row["author"] == pseudonym("forum", "小林", KEY)
    assert row["posted_at"] == datetime(2025, 3, 4, 13, 15, tzinfo=UTC)
    assert row["posted_at_precision"] == "minute"
    first, last = row["answers"]
    assert (first["answer_id"], first["author_role"]) == ("forum:7/7-1", "professional")
    assert (first["likes"], first["recommended"]) == (3, True)
    assert first["posted_at"] == datetime(2025, 3, 4, 16, tzinfo=UTC)
    assert (last["author"], last["likes"], last["author_role"]) == (None, None, "unknown")
    assert imported.dropped.select("unit", "row_id", "reason").rows() == [
        ("answer", "set.jsonl:1.replies[1]", "wrong_value"),
        ("answer", "set.jsonl:1.replies[3]", "wrong_type"),
    ]
    assert "小林" not in str(imported.kept.rows())


def test_dialogues(tmp_path: Path) -> None:
    [row] = run(tmp_path, DIALOGUES, DIALOGUE).kept.rows(named=True)
    assert (row["dialogue_id"], row["lang"], row["modality"]) == ("mapped:a", "en", "text+audio")
    assert [turn["role"] for turn in row["turns"]] == ["seeker", "supporter", "seeker"]
    assert row["turns"][0]["media"][0]["end_ms"] == 900
    assert row["turns"][0]["media"][0]["needed"] is None
    assert row["turns"][1]["strategies"] == ["Question"]
    assert row["turns"][2]["feedback"] == 5
    assert row["attributes"] == [{"name": "shows.0", "value": "media"}, {"name": "shows.1.x", "value": "1"}]


def test_a_clip_is_needed_where_its_field_says_so_or_the_mapping_says_so_of_every_clip(tmp_path: Path) -> None:
    def needed(value: str, **clip: Any) -> bool | None:
        said = [DIALOGUE["said"][0] | {"clips": [{"file": "a.wav", "sort": "audio", **clip}]}]
        mapping = DIALOGUES.replace('end_ms = "until"', f"needed = {value}")
        [row] = run(tmp_path, mapping, DIALOGUE | {"said": said}).kept.rows(named=True)
        found: bool | None = row["turns"][0]["media"][0]["needed"]
        return found

    assert [needed('"must"', must=said) for said in ("yes", False, None)] == [True, False, None]
    assert [needed('"must"'), needed("true"), needed("true", must="no"), needed("false")] == [None, True, True, False]


def test_a_wrong_record(tmp_path: Path) -> None:
    for mapping, good, change, reason in (
        (DIALOGUES, DIALOGUE, {"language": "fr"}, "wrong_value"),
        (DIALOGUES, DIALOGUE, {"said": None}, "wrong_type"),
        (DIALOGUES, DIALOGUE, {"said": [{"by": "caller", "what": "x", "stars": 9}]}, "wrong_value"),
        (DIALOGUES, DIALOGUE, {"said": [{"by": "we", "what": "x", "clips": [{"sort": "audio"}]}]}, "missing_field"),
        (DIALOGUES, DIALOGUE, {"said": [{"by": "dog", "what": "x"}]}, "unknown_role"),
        (DIALOGUES, DIALOGUE, {"id": ["a"]}, "wrong_type"),
        (POSTS, POST, {"when": "yesterday"}, "bad_time"),
        (POSTS, POST, {"tags": [1]}, "wrong_type"),
        (POSTS, POST, {"meta": 5}, "wrong_type"),
        (POSTS, POST, {"t": "", "d": ""}, "empty_post"),
        (POSTS, POST, {"replies": "none"}, "wrong_type"),
    ):
        imported = run(tmp_path, mapping, [good, good | change], file="set.json")
        lost = imported.dropped.filter(unit="record").select("row_id", "reason").rows()
        assert lost == [("set.json[1]", reason)], change


FLAT = f"""kind = "posts"
{HEAD}encoding = "big5"
columns = {{ id = "id", title = "q.title" }}
answers = {{ text = "a", recommended = "best" }}
"""


def test_csv_in_a_stated_encoding(tmp_path: Path) -> None:
    data = "id,q.title,a,best\n1,睡不著,喝牛奶,1\n2,很煩,,否\n3,很累,歇歇,maybe\n".encode("big5")
    imported = run(tmp_path, FLAT, data, file="set.csv")
    assert imported.encoding == "big5"
    assert imported.kept["post_id"].to_list() == ["mapped:1", "mapped:2", "mapped:3"]
    assert [len(answers) for answers in imported.kept["answers"]] == [1, 0, 0]
    assert imported.kept["answers"][0][0]["recommended"] is True
    assert imported.dropped["reason"].to_list() == ["empty_answer", "wrong_type"]


def test_answers_may_be_texts_and_csv_may_have_a_column_without_a_name(tmp_path: Path) -> None:
    head, answers = POSTS[: POSTS.index("answers = ")], ["抱抱。", "", {"body": "嗯。"}]
    listed = head + 'answers = { list = "replies" }\n'
    imported = run(tmp_path, listed, [POST | {"replies": answers}], file="set.json")
    assert [answer["text"] for answer in imported.kept["answers"][0]] == ["抱抱。"]
    assert sorted(imported.dropped["reason"]) == ["empty_answer", "wrong_type"]
    imported = run(tmp_path, head, ",t\n0,我很烦\n1,睡不着\n".encode(), file="set.csv")
    assert imported.kept["title"].to_list() == ["我很烦", "睡不着"]
    assert imported.kept["url"].is_null().all()


@pytest.mark.drill("data")
def test_a_parquet_file_is_bounded_by_what_it_unpacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repeats, nulls = [str(n) * 1000 for n in range(200)], [None] * 100_000
    for column, packed, bound in ((repeats, 100_000, 200_000), (nulls, 10_000, 1_000_000)):
        pl.DataFrame({"id": column}, schema={"id": pl.String}).write_parquet(tmp_path / "made.parquet")
        data = (tmp_path / "made.parquet").read_bytes()
        monkeypatch.setattr("pipelines.ingest.files.MAX_FILE_BYTES", bound)
        assert len(data) < packed
        with pytest.raises(UnreadableFile, match="absurdly large"):
            run(tmp_path, POSTS, data, file="set.parquet")


def test_parquet(tmp_path: Path) -> None:
    moment = datetime(2025, 3, 4, 13, 15, tzinfo=UTC)
    record = POST | {"when": moment, "replies": POST["replies"][:1]}
    pl.DataFrame([record]).write_parquet(tmp_path / "made.parquet")
    imported = run(tmp_path, POSTS, (tmp_path / "made.parquet").read_bytes(), file="set.parquet")
    [row] = imported.kept.rows(named=True)
    assert (imported.encoding, row["posted_at"], row["posted_at_precision"]) == ("parquet", moment, "second")
    assert len(row["answers"]) == 1
    with pytest.raises(UnreadableFile, match="no Parquet"):
        run(tmp_path, POSTS, b"PAR1", file="set.parquet")


def test_a_wrong_mapping(tmp_path: Path) -> None:
    for mapping, says in (
        (POSTS.replace("title =", "titel ="), "no key `columns.titel`; did you mean `title`"),
        (POSTS.replace("licence", "license"), "did you mean `licence`"),
        (POSTS.replace('"given"', '"yes"'), "`consent`"),
        (POSTS.replace('title = "t", ', ""), "posts need `title`"),
        (POSTS.replace('"posts"', '"dialogues"'), r"dialogues need \[turns\]"),
        (f'timezone = "Asia/Beijing"\n{POSTS}', "`timezone`: invalid timezone: Asia/Beijing"),
        (FLAT.replace('text = "a", ', ""), "needs `text`, or a `list` of texts"),
        ("kind =", "no TOML"),
    ):
        with pytest.raises(UnreadableFile, match=says):
            run(tmp_path, mapping, POST)


def test_authors_need_a_key(tmp_path: Path) -> None:
    run(tmp_path, POSTS, POST)
    with pytest.raises(RequestError, match="no key for their pseudonyms"):
        read("mapped", tmp_path / "set.jsonl", mapping=tmp_path / "map.toml")
    with pytest.raises(UnreadableFile, match="mapping file cannot be read"):
        read("mapped", tmp_path / "set.jsonl", mapping=tmp_path / "none.toml")


def test_consents_are_those_of_the_schema() -> None:
    assert set(get_args(Mapping.model_fields["consent"].annotation)) == set(CONSENTS)


def test_the_page_of_mappings_shows_every_key(tmp_path: Path) -> None:
    found = blocks("mapping.md", "toml")
    for block in found:
        Mapping.model_validate(tomllib.loads(block))
    sections = (Mapping, Columns, Answers, Turns, Clips, Roles, AuthorRoles, Sides)
    keys = {name for section in sections for name in section.model_fields}
    assert [key for key in keys if not re.search(rf"\b{key}\b( =|\])", "".join(found))] == []


@pytest.mark.parametrize("kind", ["posts", "dialogues"])
def test_the_samples(kind: str) -> None:
    path = SAMPLES / f"{kind}.jsonl"
    imported = read("mapped", path, data_set="samples", mapping=SAMPLES / f"{kind}.toml", author_key=KEY)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert (imported.n_records, imported.kept.height, imported.dropped.height) == (len(lines), len(lines), 0)
    assert imported.table == f"imported_{kind}"
    assert set(imported.kept["consent"]) == {"invented"}


def test_times() -> None:
    for written, instant, precision in (
        ("2025/3/4 7:05", datetime(2025, 3, 3, 23, 5, tzinfo=UTC), "minute"),
        ("2025-03-04T21:15:06", datetime(2025, 3, 4, 13, 15, 6, tzinfo=UTC), "second"),
        ("2025-03-04T21:15:06.25Z", datetime(2025, 3, 4, 21, 15, 6, 250_000, tzinfo=UTC), "second"),
        ("2025-03-04 21:15 +01:00", datetime(2025, 3, 4, 20, 15, tzinfo=UTC), "minute"),
        ("2025-03-04", datetime(2025, 3, 3, 16, tzinfo=UTC), "day"),
        ("2025-03", datetime(2025, 2, 28, 16, tzinfo=UTC), "month"),
        ("2025", datetime(2024, 12, 31, 16, tzinfo=UTC), "year"),
        (date(2025, 3, 4), datetime(2025, 3, 3, 16, tzinfo=UTC), "day"),
        (datetime(2025, 3, 4, 21, 15), datetime(2025, 3, 4, 13, 15, tzinfo=UTC), "second"),
        (datetime(2025, 3, 4, 21, tzinfo=timezone(timedelta(hours=9))), datetime(2025, 3, 4, 12, tzinfo=UTC), "second"),
    ):
        assert read_time(written, ZoneInfo("Asia/Shanghai"), "when") == (instant, precision)
    for written in ("3 days ago", "2025-13-01", "2025-03-04 25:00", 1741094100, "", "0000", "0001"):
        with pytest.raises(Unfit):
            read_time(written, ZoneInfo("Asia/Shanghai"), "when")
