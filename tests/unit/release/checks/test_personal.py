"""The second pass for personal data."""

import polars as pl
import pytest
from released_rows import few_rows
from unique_rows import answer, post

from pipelines.release.checks.people import personal_data
from pipelines.settings import Cleaning, Settings
from pipelines.text.pii import redact
from schemas.tables import TABLES

SPLITS = {"g1": "train"}
CALM = "我最近睡不好，总是想工作上的事情。"


def _found(*told, settings=None):
    return list(personal_data(few_rows(*told, split_of=SPLITS, settings=settings or Settings())))


def test_a_telephone_number_is_found_in_posts_and_answers():
    for told in (post(1, CALM + "电话13912345678。"), post(1, CALM, answer("s:1/a", "想聊就打13912345678。"))):
        (found,) = _found(told)
        assert (found.count, found.examples) == (1, ["s:1"])
        assert "phone in 1 rows" in found.what
        assert "139" not in found.what


def test_placeholders_and_what_was_redacted_are_nothing():
    text = redact([CALM + "我叫王小明，电话13912345678。"]).texts[0]
    assert "[" in text
    assert _found(post(1, text)) == []


def test_names_are_looked_for_where_cleaning_looks_for_them():
    told = post(1, "我叫王小明，最近睡不好，总是想工作上的事情。")
    (found,) = _found(told)
    assert "name in 1 rows" in found.what
    assert _found(told, settings=Settings(cleaning=Cleaning(names=False))) == []


@pytest.mark.parametrize("source_id", ["13912345678", "zhang.san@163.com", "11010519491231002X"])
def test_an_id_that_is_a_personal_number_is_found_and_not_quoted(source_id):
    (found,) = _found(post(source_id, CALM))
    assert (found.severity, found.count, found.examples) == ("refuse", 1, ["s"])
    assert source_id not in found.model_dump_json()


@pytest.mark.parametrize("source_id", ["100841602", "4a13912345678", "079257027183", "5012345678901234", "b7-139"])
def test_counters_and_hashes_are_no_personal_numbers(source_id):
    assert _found(post(source_id, CALM)) == []


def test_a_prompt_is_read_as_well_as_the_dialogue_beside_it():
    rows = few_rows(post(1, CALM), split_of=SPLITS).table("grpo_ecot").to_dicts()
    rows[0]["prompt"][-1]["content"] += "电话13912345678。"
    edited = pl.DataFrame(rows, schema=TABLES["grpo_ecot"].polars_schema())
    (found,) = personal_data(few_rows(post(1, CALM), split_of=SPLITS, grpo_ecot=edited))
    assert found.examples == ["s:1"]
