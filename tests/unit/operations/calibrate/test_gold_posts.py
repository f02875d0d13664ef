"""How a file of labelled posts is read: its forms, and what is no such post, by its line and without its words."""

import json
from pathlib import Path

import pytest

from pipelines.errors import UnreadableFile
from pipelines.operations.calibrate.gold import GoldPost, Span, read_gold

TEXT = "我叫周海燕，海燕这名字是外婆起的。"


def written(tmp_path: Path, *lines: object) -> Path:
    path = tmp_path / "gold.jsonl"
    texts = (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines)
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def test_a_post_is_a_text_with_labels_spans_or_readers(tmp_path):
    lines = (
        {"id": "1", "text": TEXT, "labels": ["under_18"], "spans": [{"kind": "name", "text": "海燕"}]},
        "",
        {"id": "2", "text": TEXT, "readers": {"A": {"labels": []}, "B": {"labels": ["self_harm"]}}},
        {"id": "3", "text": TEXT, "labels": ["abuse"], "readers": {"A": {"labels": []}}, "posted_at": "2025-03-01"},
    )
    posts = read_gold(written(tmp_path, *lines), "risk")
    assert [post.id for post in posts] == ["1", "2", "3"]
    assert [post.truth("risk").labels for post in posts] == [["under_18"], [], ["abuse"]]
    assert posts[2].posted_at.isoformat() == "2025-03-01"


def test_a_span_has_its_words_wherever_they_stand_or_its_place_and_both_have_to_agree():
    assert Span(kind="name", text="海燕").places(TEXT) == [(3, 5), (6, 8)]
    assert Span(kind="name", start=2, end=5).places(TEXT) == [(2, 5)]
    assert Span(kind="name", start=2, end=5, text="周海燕").places(TEXT) == [(2, 5)]
    for elsewhere in ({"text": "张"}, {"start": 2, "end": 5, "text": "张"}, {"start": 2, "end": 99}):
        assert Span(kind="name", **elsewhere).places(TEXT) == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{no json", "Invalid JSON"),
        ({"id": "1", "text": TEXT, "label": []}, "label: Extra inputs are not permitted"),
        ({"text": TEXT, "labels": []}, "id: Field required"),
        ({"id": "1", "labels": []}, "a post has a text, or the row_id"),
        ({"id": "1", "text": TEXT, "row_id": "s:1", "labels": []}, "a post has a text, or the row_id"),
        ({"id": "1", "text": TEXT, "labels": ["selfharm"]}, "did you mean 'self_harm'"),
        ({"id": "1", "text": TEXT, "labels": ["any"]}, "there is no label 'any'"),
        ({"id": "1", "text": TEXT, "labels": [], "spans": [{"kind": "nam", "text": "周"}]}, "did you mean 'name'"),
        ({"id": "1", "text": TEXT, "labels": [], "spans": [{"kind": "name"}]}, "a span has a text, or a start and an"),
        ({"id": "1", "text": TEXT, "labels": [], "spans": [{"kind": "name", "start": 3}]}, "a span has a text, or a"),
        ({"id": "1", "text": TEXT, "labels": [], "spans": [{"kind": "name", "start": 3, "end": 3}]}, "a span ends af"),
        ({"id": "1", "text": TEXT, "labels": [], "spans": [{"kind": "name", "text": "张"}]}, "spans.0: the post does"),
        ({"id": "0", "text": TEXT, "labels": []}, "the id '0' is there already"),
        ({"id": "1", "text": TEXT, "spans": []}, "risk needs labels (where there are none: an empty list)"),
        ({"id": "1", "row_id": "s:1", "labels": []}, "no row of raw_posts or imported_posts has the id 's:1'"),
    ],
)
def test_what_is_no_labelled_post_names_its_line_and_quotes_nobody(tmp_path, line, problem):
    path = written(tmp_path, {"id": "0", "text": TEXT, "labels": []}, line)
    with pytest.raises(UnreadableFile) as caught:
        read_gold(path, "risk")
    assert problem in str(caught.value)
    assert "gold.jsonl, line 2" in str(caught.value)
    assert "海燕" not in str(caught.value)
    assert "docs/calibrating.md" in caught.value.hint


def test_personal_data_need_spans(tmp_path):
    with pytest.raises(UnreadableFile, match="personal_data needs spans"):
        read_gold(written(tmp_path, {"id": "1", "text": TEXT, "labels": []}), "personal_data")


def test_a_file_that_is_missing_empty_or_no_text_is_refused(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "missing", tmp_path / "binary", written(tmp_path)):
        with pytest.raises(UnreadableFile):
            read_gold(path, "risk")


def test_posts_of_the_home_have_the_text_that_came(sample_store, tmp_path):
    row = sample_store.read("imported_posts").collect().row(0, named=True)
    (post,) = read_gold(written(tmp_path, {"id": "1", "row_id": row["post_id"], "labels": []}), "risk", sample_store)
    assert isinstance(post, GoldPost)
    assert post.title == row["title"]
    assert post.text.startswith(row["title"])
    assert post.text.endswith(row["description"])
