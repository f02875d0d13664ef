"""Facts that changed places: none is lost, and the text says something else. Lines are invented."""

from itertools import combinations
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.rewrite.facts import changed

_KIN = ["妈妈", "爸爸", "奶奶", "姐姐", "老公", "儿子"]
_DOES = ["总是骂我懒", "从来不回消息", "每个周末来看我", "在外地打工", "偷偷给我塞钱", "一喝酒就发火"]


def in_lines(before: str, after: str, lang: str = "zh") -> dict[str, int]:
    pairs = zip(before.split("\n"), after.split("\n"), strict=True)
    return changed([(one, other, True) for one, other in pairs], lang)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "kind", "lang"),
    [
        ("我儿子25，我40。", "我儿子40，我25。", "number", "zh"),
        ("我儿子今年25岁了，我自己40岁。", "我家儿子40岁了，而我自己也就25岁。", "number", "zh"),
        ("我25岁，他40岁。", "我40岁，他25岁。", "number", "zh"),
        ("妈妈老是打我，爸爸总护着我。", "爸爸老打我，妈妈总是护着我。", "kin", "zh"),
        ("爸爸比妈妈大三岁。", "妈妈比爸爸大三岁。", "kin", "zh"),
        ("我从小由外婆带大，三年级才和父母住。", "我从小由父母带大，三年级才和外婆住。", "kin", "zh"),
        ("妈妈老打我。\n爸爸护着我。", "爸爸老打我。\n妈妈护着我。", "kin", "zh"),
        ("她吃舍曲林。\n我吃氟西汀。", "她在吃氟西汀。\n我在吃舍曲林。", "drug", "zh"),
        ("我住北京。\n他在上海。", "我在上海住。\n他在北京。", "place", "zh"),
        ("My son is 25, I'm 40.", "My son is 40, I'm 25.", "number", "en"),
        ("My mom hits me, but my dad protects me.", "My dad hits me, but my mom protects me.", "kin", "en"),
    ],
)
def test_what_changed_places_is_caught(before: str, after: str, kind: str, lang: str):
    assert kind in in_lines(before, after, lang)


@pytest.mark.parametrize(
    ("before", "after", "lang"),
    [
        ("我儿子25，我40。", "我40了，我儿子25。", "zh"),
        ("妈妈比我大25岁，她40了。", "妈妈40了，比我大25岁。", "zh"),
        ("妈妈老是打我，爸爸总护着我。", "爸爸总护着我，妈妈却老打我。", "zh"),
        ("爸爸和妈妈吵了三次。", "妈妈和爸爸吵了三次。", "zh"),
        ("妈妈老打我。\n爸爸护着我，妈妈也哭过。", "她总打我。\n爸爸护着我，妈妈也哭。", "zh"),
        ("我对象不理我。\n我老公也这样。", "我老公不理我。\n他也是这样。", "zh"),
        ("我爸打了我妈。", "我妈被我爸打了。", "zh"),
        ("姐姐比妹妹听话。", "妹妹不如姐姐听话。", "zh"),
        ("我妈偏心弟弟，从来不管我。", "弟弟才是我妈的心头肉，她从来不管我。", "zh"),
        ("My son is 25, I'm 40.", "I'm 40, and my son is 25.", "en"),
        ("My mother raised my sister and me.", "My sister and I were raised by my mother.", "en"),
        ("My husband left me with our son.", "I was left alone with our son by my husband.", "en"),
        ("Mom and dad fight.", "Dad and mom keep fighting.", "en"),
    ],
)
def test_another_order_of_the_same_is_the_same(before: str, after: str, lang: str):
    assert in_lines(before, after, lang) == {}


@given(st.permutations(_KIN), st.permutations(_DOES), st.integers(2, 4), st.data())
def test_two_who_do_what_the_other_did(people: list[str], doings: list[str], n: int, data: st.DataObject):
    """Law: told in another order nothing has changed; with two of them exchanged it has, whatever the order."""
    told = list(zip(people, doings, strict=True))[:n]
    one, other = data.draw(st.sampled_from(list(combinations(range(n), 2))))
    spoiled = list(told)
    spoiled[one], spoiled[other] = (told[other][0], told[one][1]), (told[one][0], told[other][1])
    order = data.draw(st.permutations(range(n)))

    def written(clauses: list[tuple[str, str]]) -> str:
        return "，".join(f"{who}{does}" for who, does in clauses) + "。"

    assert in_lines(written(told), written([told[place] for place in order])) == {}
    assert "kin" in in_lines(written(told), written([spoiled[place] for place in order]))


def test_a_hostile_line_takes_no_more_than_a_few_seconds():
    """Clauses by clauses by pairs of facts once took half a minute."""
    clause = "妈妈爸爸爷爷奶奶姐姐弟弟哥哥妹妹舅舅姑姑叔叔老公儿子女儿"
    started = process_time()
    in_lines("，".join(f"{clause}{n}" for n in range(320)), "，".join(f"{n}{clause}" for n in range(320)))
    assert process_time() - started < 10
