"""The page that needs no network: one file, no address in it, one script, and texts that are data."""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import get_args

import pytest
import review_tasks

from pipelines.errors import RequestError
from pipelines.review.contract import Kind
from pipelines.review.pages import write_page

KINDS: tuple[Kind, ...] = get_args(Kind)


def sha256(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@pytest.mark.parametrize("kind", KINDS)
def test_the_policy_allows_its_one_script_and_style_and_no_address(tmp_path: Path, kind: Kind) -> None:
    tasks = review_tasks.batch(kind, 2)
    write_page(tasks, tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert re.findall(r"https?:|//[a-z]|\bsrc=|\bhref=|@import|url\(", html) == []
    [style] = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    [script] = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    rest = "base-uri 'none'; form-action 'none'"
    assert policy == (f"default-src 'none'; script-src '{sha256(script)}'; style-src '{sha256(style)}'; {rest}")
    assert html.index("Content-Security-Policy") < html.index("<style>") < html.index("<script")
    assert " style=" not in html
    assert not re.search(r"\son[a-z]+=", html)


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_text_holds_it_stays_data(tmp_path: Path, kind: Kind) -> None:
    tasks = review_tasks.hostile(kind)
    write_page(tasks, tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert html.count("<script") == html.count("</script>") == 2
    [data] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    items = json.loads(data)["items"]
    assert [item["task_id"] for item in items] == [task.task_id for task in tasks]
    for item, text in zip(items, review_tasks.HOSTILE, strict=True):
        assert text in [passage["text"] for passage in item["passages"]]
    assert data.isascii()


def test_calibration_first_and_the_crisis_before_all(tmp_path: Path) -> None:
    tasks = review_tasks.batch("coe", 3)
    write_page(tasks, tmp_path / "page.html", tasks[2:])
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    shown = re.findall(r'<main id="(\w+)"[^>]*?( hidden)?>', html)
    assert shown == [("crisis", ""), ("guide", " hidden"), ("item", " hidden"), ("end", " hidden")]
    assert "<tr><th>12356</th><td>全国统一心理援助热线</td></tr>" in html
    [data] = re.findall(r'id="data">(.*?)</script>', html, re.DOTALL)
    headings = [(item["task_id"], item["heading"]) for item in json.loads(data)["items"]]
    assert headings[:2] == [("coe-2.p07", "练习 1 / 1"), ("coe-0.p07", "第 1 题 / 共 2 题")]


def test_no_task_no_page(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no task"):
        write_page([], tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []
