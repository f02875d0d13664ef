"""What is read of a clause does not depend on where it stands: first, or behind another, whatever parts them."""

import pytest

from pipelines.annotate.rules.reading import read

CLAUSES = [
    "我被同学排挤之后就一直很难过",
    "爸妈离婚以后我很难过",
    "我很难过因为没有考上",
    "每次看到他我都很难过",
    "我被公司开除了",
    "当初真不该离开家我很难过",
    "所有人都不喜欢我",
    "是所有人都不喜欢我吗还是怎样",
    "难道所有人都不喜欢我",
    "都怪我太没用",
    "我该怎么办",
    "到底是分手是留下",
    "我爸爸没了",
    "我确诊了抑郁症",
    "以前我很难过",
    "他说我没用",
]
IN_ENGLISH = ["My dad passed", "I was fired", "I am so sad because he left me", "Am I a failure", "I am the problem"]


def told(text, start):
    """What is read of the clauses from `start` on, by kind and wording."""
    found = read(text)
    where = [part for part in found.clauses if part.start >= start]
    grave = [text[found.clauses[n].start : found.clauses[n].end] for n in found.grave]
    return {
        "causes": [(one.kind, one.span.of(text)) for one in found.causes if one.span.start >= start],
        "beliefs": [(one.kind, one.span.of(text)) for one in found.beliefs if one.span.start >= start],
        "questions": [one.span.of(text) for one in found.questions if one.span.start >= start],
        "feelings": [(found.word(one), one.own, one.denied, one.past) for one in found.feelings if one.start >= start],
        "grave": grave,
        "bereaved": found.bereaved,
        "diagnosis": [text[found.clauses[n].start : found.clauses[n].end] for n in found.diagnosis],
        "clauses": [text[one.start : one.end] for one in where],
    }


@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize("before", ["今天下了一场雨。", "今天下了一场雨\n", "今天下了一场雨… "])
def test_a_clause_behind_another_sentence_is_read_as_if_it_were_the_first(clause, before):
    assert told(before + clause, len(before)) == told(clause, 0)


@pytest.mark.parametrize("clause", IN_ENGLISH)
@pytest.mark.parametrize("before", ["It rained here today. ", "It rained here today\n", "It rained here today - "])
def test_an_english_one_as_well(clause, before):
    assert told(before + clause, len(before)) == told(clause, 0)


@pytest.mark.parametrize("clause", [*CLAUSES, *IN_ENGLISH])
@pytest.mark.parametrize("behind", [".", "。", "\n", "…", " - "])
def test_so_is_one_that_another_mark_ends(clause, behind):
    ends = {"zh": "今天下了一场雨", "en": "It rained here today"}["en" if clause.isascii() else "zh"]
    first, other = (told(f"{clause}{mark if mark != '.' else '. '}{ends}", 0) for mark in (".", behind))
    assert first == other


def test_after_and_belief_are_told_by_themselves():
    assert [one.kind for one in read("标题\n我被同学排挤之后就一直很难过").causes] == ["after"]
    assert read("我想问，是所有人都不喜欢我吗还是怎样").beliefs == ()
    assert [one.kind for one in read("我想，所有人都不喜欢我").beliefs] == ["always"]


@pytest.mark.parametrize("text", ["My dad passed\nI feel so sad", "My dad passed… I feel so sad", "My dad passed - I"])
def test_who_has_lost_somebody_is_bereaved_whatever_ends_the_clause(text):
    found = read(text)
    assert found.bereaved
    assert found.grave == {0}


@pytest.mark.parametrize(
    "text", ["我爸爸没了\n我很难过", "我爸爸没了…", "奶奶去年没了。我很想她", "没了爸爸，我很难过"]
)
def test_a_father_who_is_no_more_is_a_loss(text):
    assert read(text).bereaved


@pytest.mark.parametrize("text", ["我爸爸没了工作\n我很难过", "怕哪天爸爸没了"])
def test_a_job_or_a_fear_is_none(text):
    assert not read(text).bereaved
