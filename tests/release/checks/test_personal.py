"""The second pass for personal data."""

from released_rows import few_rows
from unique_rows import answer, post

from pipelines.clean.personal_data import redact
from pipelines.release.checks.personal import personal_data
from pipelines.settings import Cleaning, Settings

SPLITS = {"g1": "train"}
CALM = "我最近睡不好，总是想工作上的事情。"


def _found(*told, settings=None):
    return list(personal_data(few_rows(*told, split_of=SPLITS, settings=settings or Settings())))


def test_a_telephone_number_is_found_whoever_wrote_it():
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
