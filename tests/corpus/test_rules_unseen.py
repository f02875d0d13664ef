"""Texts that the rules were not made on: rude comments, machine-made and medical ones, and any text at all."""

import csv
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rules_inputs import dialogues, histories, quotations

from pipelines.annotate.rules import causes
from pipelines.annotate.rules.answers import ANSWERS
from pipelines.annotate.rules.clauses import clauses, holding
from pipelines.annotate.rules.reading import read
from pipelines.store import Store
from schemas.reasoning import Cer, Coe, Ecot


@pytest.fixture(scope="module")
def comments(shared):
    with (shared / "noisy" / "COLDataset_dev.csv").open(encoding="utf-8-sig", newline="") as lines:
        return [row["TEXT"] for row in csv.DictReader(lines)][::4]


@pytest.fixture(scope="module")
def first_turns(real_home):
    rows = dialogues(Store(real_home / "data"))
    return [row["turns"][0]["text"] for row in rows if row["source"] == "smile"]


@pytest.mark.parametrize("set_name", ["comments", "first_turns"])
def test_every_reply_parses_and_what_it_quotes_is_there(request, set_name, record_property):
    texts = request.getfixturevalue(set_name)
    quoting = feeling = asking = told_cause = 0
    for text in texts:
        chain = Ecot.parse(ANSWERS["ecot"]({"question": text}))
        spans = quotations(chain.situation + chain.motivation + chain.strategy)
        assert all(span in text for span in spans if span != "…")
        quoting += any(4 <= len(span) <= 40 for span in spans)
        reading = read(text)
        feeling, asking = feeling + bool(reading.own), asking + bool(reading.questions)
        told_cause += bool(reading.causes)
        said = json.loads(ANSWERS["topics"]({"title": "", "description": text}))
        assert said["why"]
        assert Cer.parse(ANSWERS["cer"]({"lang": "zh", "history": [{"role": "seeker", "text": text}]}))
    shares = {"quotation": quoting, "feeling": feeling, "question": asking, "cause": told_cause}
    for name, count in shares.items():
        record_property(f"share with a {name}", count / len(texts))
    assert quoting >= 0.9 * len(texts)


def test_who_asks_for_help_names_feelings_more_often_than_who_comments(comments, first_turns):
    def share(texts):
        return sum(bool(read(text, "zh").own) for text in texts) / len(texts)

    assert share(first_turns) > 1.5 * share(comments)


@settings(max_examples=60)
@given(st.text(max_size=200), st.text(max_size=80))
def test_any_text_gives_replies_that_parse(text, answer):
    assert Coe.parse(ANSWERS["coe"]({"question": text, "answer": answer}) + "<answer>好</answer>")
    assert Ecot.parse(ANSWERS["ecot"]({"question": text}))
    for lang in ("zh", "en"):
        history = [{"role": "seeker", "text": text}, {"role": "supporter", "text": answer}]
        assert Cer.parse(ANSWERS["cer"]({"lang": lang, "history": history})).lang == lang
        assert json.loads(ANSWERS["coherence"]({"lang": lang, "turns": history}))["verdict"]
    assert json.loads(ANSWERS["topics"]({"title": answer, "description": text})).keys() >= {"topic", "relevant"}
    for unit in ("post", "answer"):
        assert json.loads(ANSWERS["emotions"]({"unit": unit, "text": text}))["why"]


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from(
            ["我", "他", "很", "不", "难过", "生气", "，", "。", "？", "因为", "总是", "怎么办", "“", "”", "\n"]
        )
    )
)
def test_any_words_of_the_lexicons_in_any_order_are_read(words):
    text = "".join(words)
    chain = Ecot.parse(ANSWERS["ecot"]({"question": text}))
    spans = quotations(chain.situation + chain.motivation + chain.strategy)
    assert all(span in text for span in spans if span != "…")


def test_one_look_at_the_whole_text_finds_the_clauses_that_a_look_at_each_would(real_home):
    """For the patterns that are looked for so: connectives of causes."""
    for lang in ("zh", "en"):
        pattern = causes.any_connective(lang)
        for history in histories(Store(real_home / "data"), lang):
            text = history[-1]["text"]
            parts = clauses(text, titled=False)
            each = [place for place, part in enumerate(parts) if pattern.search(text, part.start, part.end)]
            assert list(holding(pattern, text, parts)) == each
