"""How varied dialogues are before and after: figures that can be worked out by hand, and laws."""

from itertools import combinations
from statistics import fmean

import polars as pl
import pytest
from sample_rows import turn

from pipelines.operations.paper_tables import diversity
from pipelines.text.nearness import shared
from schemas.dialogues import CoherentDialogues
from schemas.personas import RewrittenDialogues
from schemas.table import Table


def talk(first: str, second: str, *labels: str) -> list[dict]:
    return [turn(f"seeker: {first}"), turn(f"supporter: {second}", strategies=list(labels))]


def _frame(table: type[Table], rows: list[dict]) -> pl.DataFrame:
    every = [dict.fromkeys(table.column_names()) | row for row in rows]
    return pl.DataFrame(every, schema=table.polars_schema())


def source(*talks: list[dict], lang: str = "en") -> pl.DataFrame:
    rows = [{"dialogue_id": f"s:{lang}{n}", "lang": lang, "turns": said} for n, said in enumerate(talks)]
    return _frame(CoherentDialogues, rows)


def rewritten(variant: str, *talks: list[dict], lang: str = "en") -> pl.DataFrame:
    ids = [{"dialogue_id": f"s:{lang}{n}~{variant}", "source_dialogue_id": f"s:{lang}{n}"} for n in range(len(talks))]
    rows = [one | {"variant": variant, "lang": lang, "turns": said} for one, said in zip(ids, talks, strict=True)]
    return _frame(RewrittenDialogues, rows)


def figure(found: pl.DataFrame, name: str) -> dict[str, float]:
    [row] = found.filter(figure=name).drop("lang", "figure").to_dicts()
    return row


FIRST = talk("I feel so so tired", "so you feel tired", "Reflection of feelings")
SECOND = talk("nobody calls me", "who would you like to call?", "Question")
OTHER = talk("I am worn out to the bone", "you sound worn out", "Reflection of feelings")


def test_distinct_is_different_words_by_all_words():
    found = diversity(source(FIRST), rewritten("P", OTHER))
    # i feel so tired you | i am worn out to the bone you sound
    assert figure(found, "distinct-1") == {"source": 5 / 9, "P": 9 / 11}
    assert figure(found, "distinct-2")["source"] == 1.0  # so so is a pair that stands once


def test_a_copy_has_the_figures_of_its_source():
    found = diversity(source(FIRST, SECOND), rewritten("D", FIRST, SECOND))
    assert not found.is_empty()
    for name in found["figure"]:
        assert figure(found, name)["D"] == figure(found, name)["source"], name


def test_self_similarity_is_the_mean_cosine_of_all_pairs():
    talks = (FIRST, SECOND, OTHER)
    texts = ["\n".join(turn["text"] for turn in said) for said in talks]
    by_hand = fmean(shared([one], [other]) for one, other in combinations(texts, 2))
    found = figure(diversity(source(*talks), rewritten("D", *talks)), "self-similarity")
    assert found["source"] == pytest.approx(by_hand)
    same = figure(diversity(source(FIRST, FIRST), rewritten("D", FIRST, FIRST)), "self-similarity")
    assert same["source"] == pytest.approx(1.0)


def test_strategies_are_shares_of_the_labelled_turns_and_only_what_was_rewritten_is_compared():
    found = diversity(source(FIRST, SECOND), rewritten("P", FIRST, SECOND))
    assert figure(found, "share of Question") == {"source": 0.5, "P": 0.5}
    found = diversity(source(FIRST, SECOND), rewritten("P", OTHER))
    assert figure(found, "dialogues") == {"source": 1, "P": 1}


def test_languages_are_kept_apart():
    chinese = talk("我很累，睡不着", "听起来你真的很累")
    both = pl.concat([source(FIRST), source(chinese, lang="zh")])
    found = diversity(both, pl.concat([rewritten("P", FIRST), rewritten("P", chinese, lang="zh")]))
    assert set(found["lang"]) == {"zh", "en"}
    [row] = found.filter(lang="zh", figure="dialogues").to_dicts()
    assert row["source"] == row["P"] == 1
