"""Verdicts in words: what is written is read back, and nothing else is taken for a verdict."""

import subprocess
import sys
import unicodedata
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.judge.turns import (
    CHOICES,
    STEPS,
    as_choice,
    as_preference,
    read_choice,
    read_step,
    reference_first,
    write_choice,
    write_step,
)
from pipelines.llm.questions import InvalidReply
from schemas.labels import PREFERENCES

LANGUAGES = ("zh", "en")
SENTENCES = [write_step(*one) for one in product(STEPS, (True, False), LANGUAGES)] + [
    write_choice(*one) for one in product(CHOICES, LANGUAGES)
]
STEP = st.sampled_from(STEPS)
LANG = st.sampled_from(LANGUAGES)
GROUNDS = st.one_of(st.just(""), st.text(max_size=40).map(lambda text: "\n" + text))
SPACE = st.text(alphabet=" \n\t\u3000", max_size=3)


def dressed(sentence: str, before: str, grounds: str, shout: bool, wide: bool) -> str:
    """A sentence as a model may write it."""
    sentence = sentence.upper() if shout else sentence
    if wide:
        sentence = "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in sentence)
    return before + sentence.rstrip("。.") + grounds


@given(STEP, st.booleans(), LANG, SPACE, GROUNDS, st.booleans(), st.booleans())
def test_a_verdict_on_a_step_is_read_back_however_it_is_dressed(step, right, lang, before, grounds, shout, wide):
    assert read_step(dressed(write_step(step, right, lang), before, grounds, shout, wide), step) is right


@given(st.sampled_from(CHOICES), LANG, SPACE, GROUNDS, st.booleans(), st.booleans())
def test_a_choice_is_read_back_however_it_is_dressed(choice, lang, before, grounds, shout, wide):
    assert read_choice(dressed(write_choice(choice, lang), before, grounds, shout, wide)) == choice


@given(
    st.text(max_size=30)
    | st.sampled_from(SENTENCES).flatmap(lambda one: st.text(min_size=1, max_size=3).map(one.__add__))
)
def test_what_is_no_verdict_is_refused(text):
    first = unicodedata.normalize("NFKC", text.strip().partition("\n")[0])
    bare = "".join(first.split()).rstrip(".。!").casefold()
    known = {"".join(unicodedata.normalize("NFKC", one).split()).rstrip(".。").casefold() for one in SENTENCES}
    if bare not in known:
        with pytest.raises(InvalidReply):
            read_choice(text)
        for step in STEPS:
            with pytest.raises(InvalidReply):
                read_step(text, step)


@given(STEP, STEP, st.booleans(), LANG)
def test_a_verdict_on_another_step_is_none_on_this_one(asked, told, right, lang):
    if asked != told:
        with pytest.raises(InvalidReply, match=f"step {asked}"):
            read_step(write_step(told, right, lang), asked)


def test_the_sentences_differ():
    assert len(set(SENTENCES)) == len(SENTENCES) == 3 * 2 * 2 + 4 * 2
    with pytest.raises(InvalidReply):
        read_choice(write_step(1, True, "zh"))
    with pytest.raises(InvalidReply):
        read_step(write_choice("A", "zh"), 1)


def test_the_place_of_the_better_one_follows_the_draw_and_the_preference_is_the_same():
    for preference, first in product(PREFERENCES, (True, False)):
        assert as_preference(as_choice(preference, first), first) == preference
    assert (as_choice("first", True), as_choice("first", False)) == ("A", "B")
    assert (as_choice("second", True), as_choice("second", False)) == ("B", "A")
    assert {as_choice(one, first) for one in ("both", "neither") for first in (True, False)} == {"both", "neither"}


def test_places_are_drawn_evenly_by_seed_and_id_alone():
    ids = [f"s:{number}#2/1" for number in range(4000)]
    drawn = [reference_first(one) for one in ids]
    assert abs(sum(drawn) - 2000) < 4 * 4000**0.5 / 2
    assert drawn == [reference_first(one) for one in ids] != [reference_first(one, seed=1) for one in ids]


def test_rewards_can_import_it_into_verls_workers():
    heavy = "{'polars', 'numpy', 'pyarrow', 'dataframely', 'dagster', 'openai'}"
    code = f"import sys, pipelines.judge.turns; print(sorted({heavy} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
