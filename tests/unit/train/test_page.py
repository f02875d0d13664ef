"""The page of a run: one file, no network, and whatever a policy writes stays text."""

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rollout_lines import BY_VARIANT, ROWS, run_of, scored_line, step_line, table

from pipelines.store import Store
from pipelines.train.alarms import Alarm
from pipelines.train.page import report, write_page
from pipelines.train.trainers import TRAINERS

HOSTILE = "</pre><script>alert(1)</script><img src=https://example.com/x onerror=alert(2)> {{ 7 * 7 }} & \"'"
METRICS = {
    step: {"critic/score/mean": step / 10, "actor/entropy": 1.0, "actor/kl_loss": 0.01, "response_length/mean": 40.0}
    for step in range(1, 11)
}


class Parsed(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    steps = {step: [step_line(f"u{step}", session, HOSTILE, session / 4, HOSTILE) for session in range(4)]
             for step in METRICS}  # fmt: skip
    scored = {"1": [scored_line(f"u{step}", session, HOSTILE, words=HOSTILE, r_format=0.5, judge_ok=1.0)
                    for step in steps for session in range(4)]}  # fmt: skip
    folder = tmp_path_factory.mktemp("page")
    return report(Store(folder / "data"), run_of(folder / "training" / "run", steps, scored, METRICS)).page


def test_words_of_a_policy_a_prompt_or_a_judge_stay_text(page: Path):
    parsed = Parsed(page.read_text(encoding="utf-8"))
    assert "script" not in {tag for tag, _ in parsed.tags}
    assert not [name for _, attributes in parsed.tags for name in attributes if name.startswith("on")]
    assert parsed.text.count(HOSTILE) == 3 * 2 * 5, "prompt, output and verdict; two outputs of each of five steps"


def test_the_page_asks_no_network_and_lets_no_script_run(page: Path):
    parsed = Parsed(page.read_text(encoding="utf-8"))
    addresses = [value for _, named in parsed.tags for name, value in named.items() if name in {"src", "href"}]
    assert addresses
    assert all(address.startswith("data:image/png;base64,") for address in addresses)
    [policy] = [one["content"] for _, one in parsed.tags if one.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")


def test_it_shows_the_curves_there_are(page: Path):
    parsed = Parsed(page.read_text(encoding="utf-8"))
    images = {attributes["alt"]: attributes["src"] for tag, attributes in parsed.tags if tag == "img"}
    titles = "reward|terms of the reward|KL to the reference|length of outputs, tokens|entropy"
    assert list(images) == [*titles.split("|"), "share of outputs with the judge's verdict"]
    for source in images.values():
        assert base64.b64decode(source.partition(",")[2]).startswith(b"\x89PNG")


def test_it_shows_what_the_run_was_made_of_what_differs_from_the_paper_and_how_its_rows_are(page: Path):
    text = Parsed(page.read_text(encoding="utf-8")).text
    assert "MindChat-R0" in text
    assert "Mean reward of a step: 0.10 at first, 1.00 at last." in text
    assert TRAINERS["grpo"].smoke in text
    assert "v1, content c0ffee" in text
    assert re.search(r"actor_rollout_ref\.rollout\.n\s*4\s*8", text)
    assert all(line in text for line in (ROWS["text_only"], BY_VARIANT, *ROWS["lengths"]))


def test_it_says_how_many_chains_nobody_has_reviewed(tmp_path: Path):
    run = run_of(tmp_path / "training" / "run", {})
    (run / "rows.json").write_text(json.dumps(ROWS | {"unreviewed": 1_234}))
    text = Parsed(write_page(run, table([]), []).read_text(encoding="utf-8")).text
    assert "unreviewed chains: 1,234 (E's were all reviewed by professionals)" in text


def test_it_has_the_figures_of_every_step_and_is_for_its_owner_alone(page: Path):
    cells = re.findall(r'<td class="figure">([^<]*)</td>', page.read_text(encoding="utf-8"))
    assert cells[:5] == ["1", "0.1", "0.01", "40", "1"]
    assert len(cells) == 10 * 5
    assert page.stat().st_mode & 0o077 == 0


def test_what_an_encoder_reaches_on_validation_stands_by_kind(tmp_path: Path):
    figures = {"validation/auc/mismatched_emotion": 0.8125, "validation/auc/mismatched_emotion/same_topic": 0.75}
    run = run_of(tmp_path / "training" / "run", {}, metrics={1: {"train/loss": 0.5}, 2: figures})
    text = Parsed(write_page(run, table([]), []).read_text(encoding="utf-8")).text
    assert re.search(
        r"On validation\s+auc/mismatched_emotion\s*0\.812\s+auc/mismatched_emotion/same_topic\s*0\.750", text
    )


def test_alarms_come_first_with_what_to_do(tmp_path: Path):
    run = run_of(tmp_path / "training" / "run", {}, metrics=METRICS)
    alarm = Alarm("echo", 7, "<b>12 %</b> of the outputs", {"share": 0.12}, "read them")
    text = write_page(run, table([]), [alarm]).read_text(encoding="utf-8")
    assert "&lt;b&gt;12 %&lt;/b&gt; of the outputs</strong>, since step 7" in text
    assert "What to do: read them." in text
    assert text.index("since step 7") < text.index("What it was made of")


def test_a_run_that_failed_before_its_first_step_has_a_page(tmp_path: Path):
    run = run_of(tmp_path / "training" / "run", {})
    (run / "rows.json").unlink()
    outcome = report(Store(tmp_path / "data"), run)
    assert outcome.rollouts is None
    text = Parsed(outcome.page.read_text(encoding="utf-8")).text
    assert "0 steps; it has not come to its end" in text
    assert "Its rows" not in text


def test_the_same_run_gives_the_same_page(tmp_path: Path):
    run = run_of(tmp_path / "training" / "run", {1: [step_line("a", 0, "甲")]}, metrics=METRICS)
    pages = [report(Store(tmp_path / "data"), run).page.read_bytes() for _ in range(2)]
    assert pages[0] == pages[1]
