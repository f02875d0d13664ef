"""The page for people in a real browser: labelled by keys and by mouse, saved to a file, opened again."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import review_tasks
from web_ui import chromium, wait_until

from pipelines.review.contract import Kind, Label, Task
from pipelines.review.pages import write_page

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser"), pytest.mark.timeout(300)]


class Reader:
    """A person before the page."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self.browser, self.folder = browser, folder

    def open(self, kind: Kind, tasks: list[Task], calibration: list[Task] | None = None) -> None:
        path = self.folder / f"{kind}.html"
        write_page(tasks, path, calibration or [])
        self.browser.get(path.as_uri())

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.by import By

        for key in keys:
            self.browser.find_element(By.TAG_NAME, "body").send_keys(key)

    def find(self, selector: str) -> Any:
        from selenium.webdriver.common.by import By

        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def saved(self, name: str) -> list[Label]:
        """The labels of the file that a click on `save` brings."""
        path = self.folder / "downloads" / name
        path.unlink(missing_ok=True)
        self.find("#save").click()
        wait_until(path.exists, 30, lambda: "no file was saved")
        lines = wait_until(lambda: path.read_text(encoding="utf-8"), 30).split("\n")
        assert lines.pop() == ""
        assert len(lines) == len("\n".join(lines).splitlines())  # no end of a line within one
        return [Label.model_validate_json(line) for line in lines]

    def complaints(self) -> list[Any]:
        return self.browser.get_log("browser")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile"), "--window-size=1280,863") as started:
        yield started


@pytest.fixture
def reader(browser: Any, tmp_path: Path) -> Reader:
    folder = str(tmp_path / "downloads")
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": folder})
    return Reader(browser, tmp_path)


WIDE = "[...document.querySelectorAll('#context, #work, body')].filter((e) => e.scrollWidth > e.clientWidth).length"
ENTER, UP = "\ue007", "\ue013"


def test_three_items_by_keys(reader: Reader) -> None:
    tasks = review_tasks.batch("cer", 3)
    began = time.monotonic()
    reader.open("cer", tasks, tasks[2:])
    assert "12356" in reader.find("main:not([hidden])").text
    reader.press(ENTER)
    assert "怎么选" in reader.find("main:not([hidden])").text
    reader.press(ENTER)
    assert reader.find("#where").text == "练习 1 / 1"
    reader.press("1", "2", "1", "4")
    first = time.monotonic() - began
    reader.press(ENTER, *"2221", ENTER)
    reader.press(*"113", UP, *"223", ENTER)  # no step has a third choice; the second step is answered anew
    assert "所有题都完成了" in reader.find("main:not([hidden])").text
    labels = reader.saved("labels-cer-p07.jsonl")
    assert [(label.task_id, label.answers) for label in labels] == [
        ("cer-2.p07", {"step1": True, "step2": False, "step3": True, "preference": "neither", "comment": ""}),
        ("cer-0.p07", {"step1": False, "step2": False, "step3": False, "preference": "first", "comment": ""}),
        ("cer-1.p07", {"step1": True, "step2": False, "step3": False, "preference": "both", "comment": ""}),
    ]
    assert [label.shown for label in labels] == [tasks[n].shown for n in (2, 0, 1)]
    assert all(label.at and label.at.tzinfo and 0 < (label.seconds or 0) < time.monotonic() - began for label in labels)
    assert first < 60
    assert reader.complaints() == []


def test_a_chain_is_mended_by_hand_and_a_comment_is_typed(reader: Reader) -> None:
    tasks = review_tasks.batch("coe", 3)
    reader.open("coe", tasks)
    reader.press(ENTER, ENTER, "2")
    assert "至少改一层" in reader.find("#state").text
    area = reader.find('textarea[data-field="edit.L3"]')
    assert area.get_property("value") == tasks[0].content["L3"]
    area.clear()
    area.send_keys("第1行，3件事\n=1+1")  # digits and Enter are text here
    reader.find('textarea[data-field="comment"]').send_keys("  看了两遍 2  ")
    assert reader.find("#state").text == "这一题已完整，按回车继续"
    reader.find("#next").click()
    reader.press("1", ENTER)
    reader.find('.question button[title^="看错"]').click()
    reader.press(ENTER)
    answers = [label.answers for label in reader.saved("labels-coe-p07.jsonl")]
    assert answers == [
        {"verdict": "mend", "edits": {"L3": "第1行，3件事\n=1+1"}, "comment": "看了两遍 2"},
        {"verdict": "accept", "edits": {}, "comment": ""},
        {"verdict": "reject", "edits": {}, "comment": ""},
    ]


def test_what_was_answered_is_still_there_and_only_whole_items_are_saved(reader: Reader) -> None:
    tasks = review_tasks.batch("rank", 3)
    reader.open("rank", tasks)
    reader.press(ENTER, ENTER, "2", "1", "3", ENTER, "1", "1", "1", ENTER)
    reader.browser.refresh()
    reader.press(ENTER, ENTER)
    assert reader.find("#where").text == "第 2 题 / 共 3 题"  # the first that is not whole: a place is given once
    [label] = reader.saved("labels-rank-p07.jsonl")
    assert (label.task_id, label.answers) == ("rank-0.p07", {"places": [2, 1, 3], "comment": ""})
    assert reader.find("#done").text == "已完成 1 / 3"


def test_another_export_begins_without_the_answers_of_this_one(reader: Reader) -> None:
    tasks = review_tasks.batch("compare", 1)
    reader.open("compare", tasks)
    reader.press(ENTER, ENTER, "1")
    assert reader.find("#done").text.startswith("已完成 1 / 1")
    reader.open("compare", [review_tasks.compare("compare-0", answers=["换了", "也换了"])])
    assert reader.find("#done").text == "已完成 0 / 1"


@pytest.mark.drill("data")
@pytest.mark.parametrize("kind", ["coe", "cer", "rank", "compare"])
def test_hostile_texts_are_shown_and_do_nothing(reader: Reader, kind: Kind) -> None:
    tasks = review_tasks.hostile(kind)
    reader.open(kind, tasks)
    title = reader.browser.title
    reader.press(ENTER, ENTER)
    for text in review_tasks.HOSTILE:
        shown = [block.get_property("textContent") for block in reader.browser.find_elements("css selector", ".text")]
        assert text in shown, json.dumps(text)
        wide = reader.browser.execute_script(f"return {WIDE}")
        assert wide == 0, json.dumps(text[:40])
        reader.press(*{"coe": "3", "cer": "1114", "rank": "213", "compare": "3"}[kind], ENTER)
    assert len(reader.saved(f"labels-{kind}-p07.jsonl")) == len(tasks)
    assert reader.browser.title == title
    assert reader.complaints() == []


@pytest.mark.drill("data")
def test_the_page_can_reach_no_address_even_where_a_script_would(reader: Reader) -> None:
    reader.open("coe", review_tasks.batch("coe", 1))
    tried = reader.browser.execute_async_script("""
        const done = arguments[0];
        const blocked = [];
        document.addEventListener("securitypolicyviolation", (event) => blocked.push(event.effectiveDirective));
        const image = new Image();
        image.src = "http://192.0.2.1/x.png";
        const script = document.createElement("script");
        script.textContent = "document.title = 'run'";
        document.body.append(script);
        fetch("http://192.0.2.1/").catch(() => setTimeout(() => done([blocked.sort(), document.title]), 200));
    """)
    assert tried == [["connect-src", "img-src", "script-src-elem"], "审阅共情思维链（L1–L4）"]
