"""Languages: sentences written for this test, and real sets whose language is known."""

import csv
import json
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from columns import anything, over
from hypothesis import given
from hypothesis import strategies as st

from pipelines.clean.language import LANGUAGES, language
from pipelines.clean.normalise import normalised
from pipelines.text.script import simplified

SENTENCES = tomllib.loads(Path(__file__).with_name("languages.toml").read_text(encoding="utf-8"))


def test_languages_are_recognised():
    texts = {text: name for name, sentences in SENTENCES.items() if name != "classical" for text in sentences}
    assert {*texts.values(), "classical"} == set(LANGUAGES)
    assert dict(zip(texts, over(language, *texts), strict=True)) == texts


def test_classical_chinese_is_recognised_where_its_particles_are_dense():
    """Recall on ten passages written for this: verse and plain narrative without particles pass as Mandarin."""
    languages = Counter(over(language, *SENTENCES["classical"]))
    assert languages["classical"] >= 7
    assert set(languages) <= {"classical", "mandarin"}


def test_nothing_is_unknown():
    assert over(language, None, "", "  ") == ["unknown"] * 3


def _texts(shared: Path) -> Iterator[tuple[str, list[str]]]:
    with (shared / "noisy" / "COLDataset_dev.csv").open(encoding="utf-8-sig") as rows:
        yield "COLDataset", [row["TEXT"] for row in csv.DictReader(rows)]
    yield "cdial", (shared / "noisy" / "cdial_toy_valid.txt").read_text(encoding="utf-8").splitlines()
    talks = json.loads((shared / "noisy" / "emollm_aiwei_part.json").read_text(encoding="utf-8"))
    yield "EmoLLM", [turn["output"] for talk in talks for turn in talk["conversation"]]
    openings = (shared / "near_dup" / "smile_first_turns.jsonl").read_text(encoding="utf-8").splitlines()
    yield "SMILE", [json.loads(line)["text"] for line in openings]
    articles = json.loads((shared / "zh_hant" / "DRCD_dev_part.json").read_text(encoding="utf-8"))["data"]
    yield "DRCD, Traditional", [one["context"] for article in articles for one in article["paragraphs"]]


# Rows that are in truth something else: comments in Cantonese, replies that slip into German, rows without words.
FOREIGN = {"COLDataset": 4, "EmoLLM": 2}


def test_real_mandarin_is_mandarin(shared: Path):
    for name, texts in _texts(shared):
        assert texts, name
        for written in (texts, over(lambda text: simplified(normalised(text)), *texts)):
            languages = Counter(over(language, *written))
            assert languages.total() - languages["mandarin"] <= FOREIGN.get(name, 0), name


def test_real_english_is_english(shared: Path):
    talks = json.loads((shared / "en_strategy" / "FailedESConv.json").read_text(encoding="utf-8"))
    languages = Counter(over(language, *(" ".join(turn["content"] for turn in talk["dialog"]) for talk in talks)))
    # The others are three in which someone has struck keys at random.
    assert languages["english"] == len(talks) - 3 == 193


@given(st.lists(anything, max_size=8))
def test_it_is_always_one_of_them(texts: list[str]):
    assert set(over(language, *texts)) <= set(LANGUAGES)


def test_ten_megabytes_in_one_row():
    assert over(language, "我很累" * 1_200_000, "我") == ["mandarin", "mandarin"]
