"""What the rules write: other words for the same, by manner, and nothing else touched."""

import json
import re
from collections import Counter
from time import process_time

import pytest
import rewrite_rows
from hypothesis import given
from hypothesis import strategies as st
from rewrite_rows import script

from pipelines.rewrite import rewriting
from pipelines.rewrite.checks import spoiled
from pipelines.rewrite.copies import A_WORD, key
from pipelines.rewrite.rules.exchange import BACK, canonical, groups, lexicon, sites
from pipelines.rewrite.rules.rewriting import reply
from pipelines.rewrite.scripts import Script
from schemas.labels import TRAITS


def persona(leading, score=0.85):
    return {trait: score if trait == leading else 0.25 for trait in TRAITS} | {"description": "说话直截了当。"}


def inputs(source: Script, seeker=None, supporter=None):
    lines = [
        {"n": n, "who": line.who, "text": line.text, "strategies": list(line.strategies)}
        for n, line in enumerate(source.lines, 1)
    ]
    personas = {"personas": {"seeker": seeker, "supporter": supporter or seeker}} if seeker else {}
    return {"lang": source.lang, "lines": lines} | personas


def written(source: Script, seeker=None, supporter=None):
    return [line["text"] for line in json.loads(reply(inputs(source, seeker, supporter)))["lines"]]


def one_line(text, who="seeker", lang="zh", manner=None):
    return written(script(1, f"{who}: {text}", lang=lang), manner and persona(manner, 1.0))[0]


SOURCES = rewrite_rows.good_scripts()
TALK = script(
    1,
    "seeker: 你好，我最近一直觉得很难过，因为室友不理我，我该怎么办？",
    "supporter[Question]: 听起来你很委屈。能告诉我发生了什么吗？",
    "seeker: 嗯。",
    "seeker: 他总说“我觉得你很烦”，可是我不觉得自己有错，我没有抑郁症。",
    "supporter[Providing Suggestions]: 我理解你的感受。如果方便的话，你可以尝试和他沟通，也许会好一些。",
)


# --- the table


@pytest.mark.parametrize(("lang", "least"), [("zh", 150), ("en", 100)])
def test_the_table_is_large_and_every_group_can_be_written(lang, least):
    table = groups(lang)
    assert len(table) >= least
    for group in table:
        assert any(member.found for member in group.members), group
        assert sum(member.written for member in group.members) >= 2, group
        assert len({member.text for member in group.members}) == len(group.members), group


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_every_manner_has_words_and_openings(lang):
    tagged = Counter(manner for group in groups(lang) for member in group.members for manner in member.manners)
    assert min(tagged[manner] for manner in TRAITS) >= 15
    for speaker in ("seeker", "supporter", "analysis"):
        for kind in ("statement", "question"):
            openings = lexicon(lang)["opening"][speaker][kind]
            assert set(openings) == {"plain", *TRAITS}
            # Behind a shorter one a line is its source again.
            assert all(any(len(key(one)) > A_WORD for one in of) for of in openings.values())


# What holds the letters of a denial and denies nothing: it asks, hedges, or is another word.
_NO_DENIAL = re.compile(
    r"(.)不\1|不过|没错|不妨|说不定|没准|不好意思|特别|非常|别人|别的|未来|差不多"
    r"|no worries|no trouble|no problem|don't mind|if you don't mind"
)
_DENIAL = re.compile(r"[不没别未非无]|\b(?:no|not|never|without)\b|n't\b")


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_no_group_brings_in_or_takes_away_a_denial(lang):
    for group in groups(lang):
        assert len({len(_DENIAL.findall(_NO_DENIAL.sub("", one.text))) for one in group.members}) == 1, group


def test_one_expression_stands_for_all_of_its_group():
    same = canonical("zh")
    assert same["因为"] == same["由于"]
    assert same["但是"] == same["可是"] == same["不过"]
    assert same["因为"] != same["所以"]


# --- what stays


def test_as_many_lines_by_the_same_speakers_in_the_same_order():
    made = json.loads(reply(inputs(TALK)))["lines"]
    assert [(line["n"], line["who"]) for line in made] == [(n, line.who) for n, line in enumerate(TALK.lines, 1)]


@pytest.mark.parametrize("manner", [None, *TRAITS])
@pytest.mark.parametrize("name", SOURCES)
def test_what_is_written_is_accepted(name, manner):
    """By the question that asks for it, and by the filter; labels with their analyses as well."""
    source = SOURCES[name]
    text = reply(inputs(source, manner and persona(manner)))
    made = [line.text for line in rewriting.parse(text, source).lines]
    assert spoiled(source, made, rewriting.prompt(f"rewrite.{source.lang}", rewriting.__file__).text) is None


@pytest.mark.parametrize("manner", [None, *TRAITS])
@pytest.mark.parametrize(
    "kept",
    [
        *("“我觉得很难过，因为你”", "「如果现在可以」", "《因为爱情》", "[姓名]", "[电话2]", "不觉得", "没有因为"),
        "（觉得很难过）",
        *("三年", "2019年3月", "妈妈", "舍曲林", "抑郁症", "高考", "前女友"),
    ],
)  # fmt: skip
def test_quotations_brackets_facts_and_denials_stay(kept, manner):
    text = f"其实我昨天又跟他说了，{kept}，但是我真的很难过，现在该怎么办？"
    made = one_line(text, manner=manner)
    assert kept in made
    assert key(made) != key(text)


def test_a_word_inside_another_is_none():
    for text in ("他察觉得到。", "功能不错。", "这是参与者。", "他的才能很好。"):
        found = [text[site.start : site.end] for site in sites(text, "zh", "seeker")]
        assert found in ([], ["很"]), text


@pytest.mark.parametrize("manner", [None, *TRAITS])
@pytest.mark.parametrize(
    "text", ["那我现在该怎么办呢？", "你觉得是因为他吗？", "可以告诉我是什么时候开始的吗？", "为什么我总是睡不着？"]
)
def test_a_question_stays_a_question(text, manner):
    for who in ("seeker", "supporter", "reference", "response"):
        assert one_line(text, who, manner=manner).endswith("？")


@pytest.mark.parametrize("manner", [None, *TRAITS])
def test_nothing_but_listed_expressions_and_openings_is_written(manner):
    """Between the places where something may be exchanged every character stays."""
    for source in SOURCES.values():
        for line, made in zip(source.lines, written(source, manner and persona(manner)), strict=True):
            reached, pattern = 0, ""
            for site in sites(line.text, source.lang, line.who):
                said = [line.text[site.start : site.end], *(one.text for one in site.options)]
                pattern += re.escape(line.text[reached : site.start]) + f"(?:{'|'.join(map(re.escape, said))})"
                reached = site.end
            pattern += re.escape(line.text[reached:])
            opened = made.lower().endswith(line.text.lower()) and made != line.text
            assert opened or re.fullmatch(pattern, made, re.IGNORECASE), (line.text, made)


# --- manners


def test_each_manner_has_its_own_words():
    said = {manner: one_line("你好。因为他不理我，我觉得很难过，现在该怎么办？", manner=manner) for manner in TRAITS}
    assert len(set(said.values())) == len(TRAITS)
    assert "由于" in said["C"]
    assert "目前" in said["C"]
    assert "咋办" in said["I"]
    assert "怎么办才好" in said["S"]
    assert "眼下" in said["D"]


def test_each_manner_has_its_own_words_in_english():
    text = "Thank you for listening. I am so tired, maybe because I worry. Can you tell me what to do?"
    said = {manner: one_line(text, lang="en", manner=manner) for manner in TRAITS}
    assert len(set(said.values())) == len(TRAITS)
    assert all(one[0].isupper() and " i " not in one for one in said.values())


def test_the_replies_and_the_analyses_are_the_supporters():
    text = "因为你一直很努力，我觉得现在很难，如果可以，我们一起想办法。"
    label = script(1, "seeker: 我很累", f"reference: {text}", f"response: {text}", f"analysis: {text}", unit="label")
    seeker, *others = written(label, persona("D", 1.0), persona("C", 1.0))
    again, *others_again = written(label, persona("I", 1.0), persona("C", 1.0))
    assert others == others_again
    assert seeker != again
    assert all("由于" in one for one in others)


def test_without_a_persona_the_choice_hangs_on_the_line_alone():
    text = "seeker: 我觉得很难过，因为他不理我，现在该怎么办？"
    one, other = script(1, text, "supporter: 嗯"), script(2, text, "supporter: 我听着呢，你慢慢说。")
    assert written(one)[0] == written(other)[0]
    made = {written(script(n, *["seeker: 嗯"] * n, text))[-1] for n in range(12)}
    assert len(made) > 3, "the same words at another place may be put otherwise"


def test_a_line_with_nothing_to_exchange_gets_words_before_it():
    made = one_line("下雨天窗台上的猫叫了整夜")
    assert made.endswith("下雨天窗台上的猫叫了整夜")
    assert made != "下雨天窗台上的猫叫了整夜"


@pytest.mark.parametrize("text", ["嗯。", "哈哈哈哈哈哈哈哈哈", "谢谢老师，老师辛苦。"])
def test_no_words_stand_before_a_call_or_thanks(text):
    said = script(1, f"seeker: {text}", *["seeker: 我觉得很难过，因为他不理我"] * 9)
    assert not written(said)[0].startswith(tuple(_openings("zh")))


def _openings(lang):
    return [one for of in lexicon(lang)["opening"]["seeker"].values() for manner in of.values() for one in manner]


def test_no_rewrite_is_a_copy_even_of_calls():
    source = script(1, "seeker: 哈哈哈哈哈哈哈哈哈", "supporter: 嗯嗯嗯嗯嗯嗯嗯嗯嗯嗯")
    assert spoiled(source, written(source), "") is None


# --- laws


@given(
    st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=5),
    st.sampled_from(["zh", "en"]),
    st.sampled_from([None, *TRAITS]),
)
def test_no_text_is_too_odd_and_the_same_gives_the_same(texts, lang, manner):
    source = Script("dialogue", "s:1", "s:1", lang, "g1", tuple(script(1, f"seeker: {'字'}").lines[0] for _ in texts))
    lines = [{"n": n, "who": "seeker", "text": text, "strategies": []} for n, text in enumerate(texts, 1)]
    asked = inputs(source, manner and persona(manner)) | {"lines": lines}
    made = json.loads(reply(asked))["lines"]
    assert [line["n"] for line in made] == [line["n"] for line in lines]
    assert all(line["text"] for line in made)
    assert json.loads(reply(asked))["lines"] == made


SCORES = st.fixed_dictionaries({trait: st.floats(0, 1) for trait in TRAITS})


@given(SCORES, SCORES)
def test_scores_of_any_kind_are_taken(seeker, supporter):
    made = written(TALK, seeker, supporter)
    assert spoiled(TALK, made, "") is None


def test_a_hostile_line_takes_no_more_than_its_length():
    """Each place once looked at all that stood before it."""
    started = process_time()
    assert len(sites("i think i am sad because it is hard. " * 1_000, "en", "seeker")) >= 1_000
    assert process_time() - started < 5


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_no_condition_is_longer_than_is_looked_back(lang):
    """None repeats anything, so none is longer than two of its longest alternatives one behind the other."""
    guards = {guard.pattern for group in groups(lang) for guard in (group.before, group.not_before) if guard}
    assert guards
    assert {
        one for one in guards if re.search(r"[*+{]", one) or 2 * max(map(len, re.split(r"[|()]", one))) > BACK
    } == set()
