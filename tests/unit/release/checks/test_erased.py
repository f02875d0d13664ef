"""What the takedown list names is not released, whatever version it stands in."""

import pytest
from released_rows import few_rows
from unique_rows import post

from pipelines.release.checks.people import erased
from pipelines.store.suppression import SuppressionList

POSTS = (
    post(1, "我最近睡不好，总是想工作上的事情。"),
    post(12, "和室友吵架了，不想回宿舍。"),
    post("t:9", "最近总是很累。"),
)


@pytest.mark.parametrize(("line", "row_id"), [("s:1  # its writer asked", "s:1"), ("1", "s:1"), ("t:9", "s:t:9")])
def test_a_listed_row_is_refused(tmp_path, line, row_id):
    assert list(erased(few_rows(*POSTS, split_of={"g1": "train"}, home=tmp_path))) == []
    (tmp_path / "takedown.txt").write_text(f"# asked for\n\n{line}\n", encoding="utf-8-sig")
    (found,) = erased(few_rows(*POSTS, split_of={"g1": "train"}, home=tmp_path))
    assert (found.severity, found.count, found.examples) == ("refuse", 1, [row_id])


def test_a_row_that_was_erased_and_came_back_is_refused(tmp_path):
    SuppressionList(tmp_path).add(["s:12"])
    (found,) = erased(few_rows(*POSTS, split_of={"g1": "train"}, home=tmp_path))
    assert (found.severity, found.examples) == ("refuse", ["s:12"])
