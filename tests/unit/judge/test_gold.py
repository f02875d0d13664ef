"""What costs points with M's judge stands in its prompt, and is shown by pairs of replies (M §3.2.2, papers.md §6)."""

import re
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from pipelines import judge
from pipelines.errors import UnreadableFile
from pipelines.judge.gold import FAULTS, read_pairs
from pipelines.judge.judging import Scores
from pipelines.llm.prompts import prompt
from pipelines.text.pii import redact

PAIRS = read_pairs()


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_each_fault_stands_in_the_prompt_in_its_dimension(lang: str):
    text = prompt(f"mindchat.{lang}", judge.__file__).text
    assert list(FAULTS) == [name for name in Scores.model_fields if name != "why"]
    for dimension, faults in FAULTS.items():
        [line] = re.findall(rf"^- {dimension}\b.*$", text, re.MULTILINE)
        listed = re.split("扣分的毛病：|Its faults: ", line)[1]
        named = [fault.zh if lang == "zh" else fault.en for fault in faults]
        assert [re.split(r"（| \(", part)[0] for part in re.split("；|; ", listed)] == named


def test_nothing_in_the_prompt_praises_what_costs_points():
    """An earlier one asked for a step to take, and said that style does not count."""
    zh, en = (prompt(f"mindchat.{lang}", judge.__file__).text for lang in ("zh", "en"))
    assert not re.findall("一小步|文采|挑战", zh)
    assert not re.findall("small step|style|gentle challenge", en)


def test_the_pairs_show_every_fault_in_both_languages_each_in_its_dimension():
    assert len(PAIRS) == 40
    dimension_of = {fault.en: dimension for dimension, faults in FAULTS.items() for fault in faults}
    assert {pair.id for pair in PAIRS if dimension_of[pair.fault] != pair.dimension} == set()
    assert min(Counter(pair.fault for pair in PAIRS).values()) >= 4
    assert {(pair.fault, pair.lang) for pair in PAIRS} == {
        (fault, lang) for fault in dimension_of for lang in ("zh", "en")
    }


def test_a_pair_is_one_post_and_two_replies_about_as_long():
    """A judge that likes length finds no help in it."""
    texts = [text for pair in PAIRS for text in (pair.post, pair.better, pair.worse)]
    assert len(set(texts)) == len(texts) == 3 * len({pair.id for pair in PAIRS})
    assert all(pair.id.startswith(f"invented-{pair.lang}-") for pair in PAIRS)
    assert all(text == text.strip() for text in texts)
    chinese = {pair.id: len(re.findall("[一-鿿]", pair.post + pair.better + pair.worse)) for pair in PAIRS}
    assert {pair.lang for pair in PAIRS if chinese[pair.id] > 100} == {"zh"}
    assert {pair.lang for pair in PAIRS if not chinese[pair.id]} == {"en"}
    ratios = {pair.id: len(pair.worse) / len(pair.better) for pair in PAIRS}
    assert {name: ratio for name, ratio in ratios.items() if not 0.75 < ratio < 4 / 3} == {}


def test_faults_with_a_form_of_their_own_are_in_the_worse_reply_alone():
    forms = {
        "list-like": r"^(?:-|1\.|一、|（1）|首先)",
        "rhetorical question": "[？?]",
        "templated": "抱|加油|崭新|Thank you so much",
    }
    for pair in PAIRS:
        for fault, form in forms.items():
            assert not re.search(form, pair.better), pair.id
            assert bool(re.search(form, pair.worse)) == (pair.fault == fault), pair.id


def test_no_pair_holds_personal_data():
    texts = pl.Series([text for pair in PAIRS for text in (pair.post, pair.better, pair.worse)])
    redacted, _ = redact(texts)
    assert redacted.to_list() == texts.to_list()


def test_a_line_that_is_no_pair_is_named_without_its_text(tmp_path: Path):
    path = tmp_path / "pairs.jsonl"
    path.write_text(f'{PAIRS[0].model_dump_json()}\n{{"id": "x", "lang": "fr"}}\n', encoding="utf-8")
    with pytest.raises(UnreadableFile, match="line 2 is no pair: lang") as caught:
        read_pairs(path)
    assert caught.value.where == path
