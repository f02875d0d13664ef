"""Claims of a credential are cut out of answers: sentences written for this test, and the answers of a real set."""

import json
import tomllib
from pathlib import Path

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.clean.credentials import without_credentials

SENTENCES = tomllib.loads(Path(__file__).with_name("credentials.toml").read_text(encoding="utf-8"))


def answers(*texts: str | None) -> pl.DataFrame:
    columns = {"row_id": [f"q{n}/a" for n in range(len(texts))], "text": list(texts)}
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def test_the_claims_of_a_real_set(shared: Path):
    posts = json.loads((shared / "zh_qa" / "PsyQA_example.json").read_text(encoding="utf-8"))
    _, edits = without_credentials(answers(*(answer["answer_text"] for post in posts for answer in post["answers"])))
    assert edits.height == 6
    assert edits["removed"].str.contains("咨询师").all()


def test_a_claim_is_cut_and_what_is_left_can_be_read():
    wanted = SENTENCES["claims"]
    plain, edits = without_credentials(answers(*wanted))
    assert len(wanted) > 40
    assert dict(zip(wanted, plain["text"], strict=True)) == wanted
    assert set(edits["rule"]) == {"credential"}
    assert set(edits["row_id"]) == set(plain["row_id"])
    before_of = dict(zip(plain["row_id"], wanted, strict=True))
    assert all(removed in before_of[row_id] for row_id, removed in edits.select("row_id", "removed").rows())


def test_claims_about_others_stay():
    plain, edits = without_credentials(answers(*SENTENCES["stays"]))
    assert edits.rows() == []
    assert plain["text"].to_list() == SENTENCES["stays"]


@settings(max_examples=20)
@given(st.lists(st.text(max_size=30) | st.none(), max_size=4))
def test_other_texts_are_left_as_they_are(texts: list[str | None]):
    frame = answers(*texts)
    plain, edits = without_credentials(frame)
    assert edits.is_empty() or plain.height == frame.height
    assert without_credentials(plain)[0].equals(plain)
