"""Formulas are cut off the ends of answers: sentences written for this test, laws, and the answers of a real set."""

import json
from pathlib import Path

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_rows import post, posts

from pipelines.dedup.formulas import cut_formulas, without_signatures

FORMULA = "愿你夜里有灯，心里有岸。"
BODIES = [
    *("先睡一觉再说吧", "这件事不怪你，换作是谁都会累", "可以试着写下来，一天三行", "和妈妈谈谈，挑她不忙的时候"),
    *("慢慢来，不着急", "他的话不代表你的价值", "离开也是一种选择", "你已经做得很好了"),
]


def answers(*texts: str | None, author: str | None = None, **more: list[str | None]) -> pl.DataFrame:
    columns = {"author": [author] * len(texts), "source": ["s"] * len(texts), "text": list(texts)}
    numbered = {"row_id": [f"q{n}/a" for n in range(len(texts))], "group": [f"q{n}" for n in range(len(texts))]}
    return pl.DataFrame({**numbered, **columns, **more}, schema=dict.fromkeys(["row_id", "group", *columns], pl.String))


def cut(frame: pl.DataFrame) -> list[str | None]:
    return without_signatures(frame)[0]["text"].to_list()


def test_what_stands_at_the_end_of_answers_to_many_questions_is_cut():
    plain, edits = without_signatures(answers(*(f"{body}。{FORMULA}" for body in BODIES), FORMULA))
    assert plain["text"].to_list() == [*(f"{body}。" for body in BODIES), ""]
    assert edits.columns == ["row_id", "rule", "removed"]
    assert edits.rows() == [(f"q{n}/a", "signature", FORMULA) for n in range(9)]


def test_spellings_of_one_formula_count_together():
    hellos = ["题主你好！", "题主，你好～", "题主您好。", "题主，您好呀！"] * 2
    assert cut(answers(*(hello + body for hello, body in zip(hellos, BODIES, strict=True)))) == BODIES
    names = ["[姓名]", "[姓名2]", "[姓名3]", "[姓名]"] * 2
    frame = answers(*(f"{body}。我是{name}，祝你有个好梦。" for body, name in zip(BODIES, names, strict=True)))
    assert cut(frame) == [f"{body}。" for body in BODIES]


def test_the_longest_formula_is_cut_and_what_leads_over_to_it():
    lead, bare = BODIES[:4], BODIES[4:]
    frame = answers(*(f"{body}，最后，{FORMULA}" for body in lead), *(f"{body}！{FORMULA}" for body in bare))
    assert cut(frame) == [f"{body}。" for body in lead] + [f"{body}！" for body in bare]
    assert without_signatures(frame)[1]["removed"][0] == f"最后，{FORMULA}"


def test_what_is_rare_or_of_one_question_or_copied_or_mostly_part_of_a_sentence_stays():
    for frame in (
        answers(*(f"{body}。" for body in BODIES[:6]), *(f"{body}。{FORMULA}" for body in BODIES[6:])),
        answers(*(f"{body}。{FORMULA}" for body in BODIES), group=["q"] * 8),
        answers(*["先睡一觉。明天再谈也不迟，事情不会跑。愿你夜里有灯，心里有岸。"] * 8),
        answers(*(f"看了你的描述，{body}。" for body in BODIES)),
        answers(*(f"如果{body}，一切都会慢慢好起来的。" for body in BODIES)),
    ):
        assert cut(frame) == frame["text"].to_list()


def test_a_writer_needs_fewer_and_only_the_writer_is_cut():
    theirs = answers(*(f"{body}。祝安。我是阿汀。" for body in BODIES[:3]), author="w")
    others = answers(*(f"{body}。祝安。我是阿汀。" for body in BODIES[3:4]), author="v", row_id=["z"], group=["z"])
    frame = pl.concat([theirs, others])
    assert cut(frame) == [f"{body}。" for body in BODIES[:3]] + [f"{BODIES[3]}。祝安。我是阿汀。"]


def test_nothing_nulls_and_marks_alone_are_left():
    assert cut(answers()) == []
    assert cut(answers(None, "", "。。。", "……\n！", "a")) == [None, "", "。。。", "……\n！", "a"]


_CLAUSES = st.sampled_from(["题主你好", "抱抱你", FORMULA[:-1], "祝好", "加油", "希望对你有帮助", *BODIES])
_TEXTS = st.lists(st.tuples(_CLAUSES, st.sampled_from("，。！～\n")), min_size=1, max_size=6).map(
    lambda pairs: "".join(clause + mark for clause, mark in pairs)
)


@settings(max_examples=20)
@given(st.lists(_TEXTS | st.text(max_size=20), min_size=1, max_size=60), st.sampled_from([None, "w"]))
def test_a_cut_takes_away_and_never_adds_and_leaves_no_formula(texts: list[str], author: str | None):
    frame = answers(*texts, author=author)
    plain, edits = without_signatures(frame)
    again, more = without_signatures(plain)
    assert more.is_empty()
    assert again.equals(plain)
    for row_id, before, after in zip(frame["row_id"], frame["text"], plain["text"], strict=True):
        removed = "".join(edits.filter(row_id=row_id)["removed"])
        assert removed or before == after
        assert sorted(filter(str.isalnum, before)) == sorted(filter(str.isalnum, after + removed))


def test_the_formulas_of_a_real_set(shared: Path):
    """PsyQA's sample: about two answers of five open or close with a formula."""
    posts = json.loads((shared / "zh_qa" / "PsyQA_example.json").read_text(encoding="utf-8"))
    rows = [
        {"row_id": f"{post['questionID']}/{n}", "group": str(post["questionID"]), "text": answer["answer_text"]}
        for post in posts
        for n, answer in enumerate(post["answers"])
    ]
    frame = pl.DataFrame(rows).with_columns(author=pl.lit(None, pl.String), source=pl.lit("psyqa"))
    plain, edits = without_signatures(frame)
    assert 0.3 <= edits["row_id"].n_unique() / frame.height <= 0.5
    assert edits["removed"].str.len_chars().max() <= 60
    assert without_signatures(plain)[1].is_empty()


def test_posts_lose_the_formulas_of_their_answers_and_an_answer_that_was_little_else():
    bodies = [f"关于第{n}段，" + f"你在第{n}段里写到的那种累，我读了{n}遍。" * 8 for n in range(40)]
    texts = [*(body + FORMULA for body in bodies), "先睡一觉。" + FORMULA]
    frame = posts(*(post(n, "", text, bodies[0] + "。") for n, text in enumerate(texts)))
    plain, dropped = cut_formulas(frame, min_answer_chars=10)
    assert [answers[0]["text"] for answers in plain["answers"]] == [*bodies, bodies[0] + "。"]
    assert {edit["removed"] for edits in plain["edits"] for edit in edits} == {FORMULA}
    assert [len(edits) for edits in plain["edits"]] == [1] * 40 + [0]
    assert dropped.select("unit", "reason", "detail").rows() == [("answer", "too_short", "5 characters")]
    assert plain.drop("answers", "edits").equals(frame.drop("answers", "edits"))
    assert cut_formulas(plain, min_answer_chars=10)[0].equals(plain)
