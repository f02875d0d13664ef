"""What a rewrite shares with its source, and another dialogue does not."""

import os
import subprocess
import sys
from itertools import combinations, permutations
from math import inf
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rewrite_rows import good_rewrites, good_scripts

from pipelines.llm.language import Lang
from pipelines.text.nearness import LEAST_OWN, likeness, moved, own, shared

GOOD, REWRITES = good_scripts(), good_rewrites()
LINES = {name: [line.text for line in script.lines] for name, script in GOOD.items()}
LISTS = st.lists(st.text(), max_size=5)
FLOOR = 0.12  # of `shared`: no dialogue of good_rewrites shares so much with another, and each rewrite more

# Chats of short lines, put in other words as people do: hardly a word stays.
SHORT = {
    "friend (en)": """
Hi there / Hello
hi, how are you doing today? / hey, how's it going?
Not great to be honest. I feel really down / Pretty bad actually. I've been so low
I'm sorry to hear that. what's been going on? / oh no. tell me what's wrong
My best friend stopped talking to me / the person I was closest to won't speak with me any more
that must hurt a lot. Did something happen between you? / ouch, losing that is painful. was there a fight?
I don't know, she just ignores my messages / no clue, whatever I text her she leaves on read
have you tried asking her why? / could you find out the reason from her directly?
I'm too scared to / I haven't got the courage
it's normal to be afraid of the answer / anyone would fear what she might say
maybe I did something wrong / it could be my fault
don't be so hard on yourself / go easy on yourself
thanks, that helps a bit / thank you, I'm a little better now
you're welcome, take care / glad to be here, look after yourself
""",
    "rent (en)": """
I got laid off last week / they let me go last week
Oh no, that's rough. How are you holding up? / That's terrible. Are you okay?
I can't stop worrying about rent / all I think of is how to pay the landlord
Money stress is awful / Being short of cash is a horrible strain
I've sent out so many applications and nobody answers / dozens of resumes out there and total silence
It's discouraging when you hear nothing back / No reply at all would dishearten anyone
My husband says I should relax but I can't / my husband tells me to calm down, as if that were possible
He may not see how heavy this feels / Perhaps he can't tell what a load you carry
exactly, he doesn't get it / right, he has no idea
Could you take a walk to clear your head? / Would some fresh air outside do you good?
I guess I could try / might give it a go
Small steps count / Every little bit is progress
""",
    "band (en)": """
I feel so lonely since I moved here / ever since coming to this place I've had nobody
Moving is hard. do you know anyone in town? / A new start is tough. have you met any locals?
No one. I just work and go home / nobody at all. office, then straight to bed
what did you enjoy before the move? / which hobbies made you happy back then?
I used to play guitar in a band / I was in a band, on guitar
that sounds fun! could you find people to play with? / cool! are there musicians nearby you might join?
I'm shy around strangers / I get awkward with folks I haven't met
many people are, it takes time / so do lots of others, be patient
yeah I guess / suppose so
maybe look online for a group / some club on the internet might suit you
I will think about it / let me consider that
great, I believe in you / wonderful, you can do it
""",
    "new job (zh)": """
你好，在吗 / 您好，有人吗
在的，请说 / 我在这儿呢，讲吧
我最近总是睡不着 / 这阵子夜里老失眠
是从什么时候开始的呢？ / 大概多久了？
换了工作以后吧，压力特别大 / 跳槽之后就这样，担子重得喘不过气
新环境确实不容易适应 / 到了陌生的地方，谁都要磨合一阵
领导老是挑我毛病 / 上司动不动就批评我
被这样对待，你一定很委屈 / 心里肯定憋屈得很
嗯，我都不敢跟家里人说 / 是啊，爸妈那边我也瞒着
是怕他们担心吗？ / 不想让二老操心？
对，他们年纪大了 / 没错，岁数都不小了
你一个人扛着，太辛苦了 / 所有事都自己撑，真不容易
我该怎么办啊 / 有什么法子吗
可以先试着跟信得过的同事聊聊 / 不妨找个谈得来的同事说说心里话
好吧，我试试 / 行，那我去做做看
加油，有需要随时来找我 / 别灰心，什么时候想聊都行
""",
    "birthday (zh)": """
我跟男朋友吵架了 / 和对象闹翻了
发生什么事了？ / 怎么回事呀？
他忘了我的生日 / 我过生日，他压根没想起来
你肯定很失望吧 / 心一下子就凉了，对不对
嗯，我等了他一整天 / 可不，从早盼到晚
你有告诉他你的感受吗？ / 这份心情，你跟他讲过没有？
我没说，觉得说了也没用 / 没讲，讲了又能怎样
为什么这么觉得呢？ / 是什么让你有这种想法？
每次他都说我小题大做 / 他总怪我太计较
听到这话，你是不是很受伤 / 被他这么一说，心里像扎了根刺
是的，我觉得他根本不在乎我 / 没错，在他眼里我好像什么都不是
在乎一个人，表达的方式可能不一样 / 每个人示爱的样子也许各不相同
可是我真的很难过 / 但我心里就是堵得慌
难过是正常的，你可以哭出来 / 会伤心很自然，想流泪就流吧
""",
    "night (zh)": """
听起来你真的很难过 / 感觉你心里特别不好受
我觉得没有人懂我 / 好像谁都不明白我
可以先试着出去走一走 / 不如先到外面散散步
晚上躺下来就开始胡思乱想 / 夜里一躺下，脑子就停不下来
你愿意多说一点吗？ / 可以再多说一点吗？
谢谢你听我说这些 / 多谢你肯听我讲
我最近心里一直很乱，什么都不想做 / 这阵子我心烦意乱，做什么都提不起劲
""",
}
TOLD = {name: [line.split(" / ") for line in told.strip().splitlines()] for name, told in SHORT.items()}


@pytest.mark.parametrize("name", GOOD)
def test_rewrites_by_hand_are_well_above_the_floor(name: str):
    assert min(shared(LINES[name], texts) for texts in REWRITES[name].values()) > 1.5 * FLOOR


def test_other_dialogues_are_below_it():
    found = [
        shared(LINES[one][:length], texts[:length])
        for one, other in permutations(GOOD, 2)
        if GOOD[one].lang == GOOD[other].lang
        for texts in REWRITES[other].values()
        for length in [min(len(LINES[one]), len(texts))]
    ]
    assert len(found) == 240
    assert max(found) < FLOOR


@pytest.mark.parametrize("name", GOOD)
def test_rewrites_by_hand_are_their_own_sources(name: str):
    assert min(own(LINES[name], texts) for texts in REWRITES[name].values()) > 1.4 * LEAST_OWN[GOOD[name].lang]


@pytest.mark.parametrize("name", TOLD)
def test_short_lines_in_quite_other_words_are_their_own_sources(name: str):
    before, after = zip(*TOLD[name], strict=True)
    assert own(before, after) > LEAST_OWN[_lang(name)]
    assert own(after, before) > LEAST_OWN[_lang(name)]


def test_what_is_told_in_short_lines_of_another_theme_is_not():
    found = []
    for one, other in permutations(TOLD, 2):
        if _lang(one) == _lang(other):
            pairs = list(zip(TOLD[one], TOLD[other], strict=False))
            found.append((own([said for (said, _), _ in pairs], [said for _, (_, said) in pairs]), _lang(one)))
    assert len(found) == 12
    assert all(times < LEAST_OWN[lang] for times, lang in found), found


def test_hardly_any_other_dialogue_is_ones_own():
    """Of a few lines one may be by chance; the facts and a judge look at it as well."""
    found = [
        own(LINES[one][:length], texts[:length]) / LEAST_OWN[GOOD[one].lang]
        for one, other in permutations(GOOD, 2)
        if GOOD[one].lang == GOOD[other].lang
        for texts in REWRITES[other].values()
        for length in [min(len(LINES[one]), len(texts))]
    ]
    assert len(found) == 240
    assert sum(times >= 1 for times in found) <= 0.01 * len(found), sorted(found)[-5:]


@given(st.lists(st.sampled_from(TOLD["night (zh)"]), min_size=1, max_size=30))
def test_some_lines_said_again_and_again_are_still_ones_own(pairs: list[list[str]]):
    """Fewer than four lines that differ say nothing."""
    assert own([before for before, _ in pairs], [after for _, after in pairs]) > LEAST_OWN["zh"]


def test_lines_in_another_order_are_like_all_alike():
    before, after = zip(*TOLD["new job (zh)"], strict=True)
    assert own(before, after[1:] + after[:1]) < LEAST_OWN["zh"]


def test_a_text_that_shares_nothing_is_nobodys():
    before = ["我睡不着", "你还好吗", "他走了", "天黑了"]
    assert own(before, ["……"] * 4) == 0
    assert own(before, before) > 10
    assert own(before[:3], ["……"] * 3) == inf


def _lang(name: str) -> Lang:
    return "zh" if name.endswith("(zh)") else "en"


def test_what_stands_in_any_text_does_not_count():
    assert shared(["I am so happy for you"], ["You are not what I am"]) == 0
    assert shared(["I slept BADLY, don\u2019t ask"], ["don't... badly?"]) == pytest.approx(2 / 8**0.5)
    assert shared(["我，睡。"], ["睡！我？"]) == 1  # marks and order are nothing to it


def test_lines_count_by_their_length_and_empty_ones_not_at_all():
    assert shared(["睡不着睡不着", "烦"], ["睡不着睡不着", "乱"]) == pytest.approx(6 / 7)
    assert shared(["睡不着", "……"], ["睡不着", "嗯"]) == 1
    assert shared(["睡不着"], ["……"]) == 0
    assert shared(["……", "I do"], ["嗯", "yes"]) == 1


@given(LISTS)
def test_a_text_shares_all_with_itself(lines: list[str]):
    assert shared(lines, lines) == pytest.approx(1)


@given(LISTS, LISTS)
def test_it_is_a_share(one: list[str], other: list[str]):
    length = min(len(one), len(other))
    assert 0 <= shared(one[:length], other[:length]) <= 1 + 1e-9


def test_lines_stand_opposite_each_other():
    with pytest.raises(ValueError, match="shorter"):
        shared(["我"], [])


def test_lines_that_were_exchanged_are_told_from_lines_that_were_put_in_other_words():
    """Measured: 750 of 880; the rest are of few words."""
    seen = pairs = 0
    for name, rewrites in REWRITES.items():
        for texts in rewrites.values():
            assert moved(LINES[name], texts) == 0
            for one, other in combinations(range(len(texts)), 2):
                exchanged = list(texts)
                exchanged[one], exchanged[other] = texts[other], texts[one]
                pairs += 1
                seen += moved(LINES[name], exchanged) >= 2
    assert seen >= 0.8 * pairs


@given(st.lists(st.text(alphabet="睡不着烦 ab", max_size=12), min_size=2, max_size=6))
def test_likeness_is_the_mean_over_all_pairs(texts: list[str]):
    """Texts of which nothing counts are like nothing, themselves included."""
    pairs = [shared([one], [other]) if likeness([one, one]) else 0.0 for one, other in combinations(texts, 2)]
    assert likeness(texts) == pytest.approx(fmean(pairs), abs=1e-9)


def test_one_text_is_like_nothing():
    with pytest.raises(ValueError, match="no two texts"):
        likeness(["我"])


_FIGURES = """
from pipelines.text.nearness import likeness, own
before = "我室友每天打游戏打到很晚 你跟他谈过这件事吗 谈过两次可是他不听我的 那确实很累很烦 我都不想回宿舍".split()
after = "室友天天夜里打游戏 这件事你同他谈过没有 说了两回他都不听 这样的确又累又烦 宿舍我都不愿意回".split()
print(repr(own(before, after)), repr(likeness(before + after)))
"""


def test_the_last_digit_is_the_same_in_every_run():
    """Strings are hashed otherwise in each; a detail that is stored tells the figure."""
    told = {
        subprocess.run(
            [sys.executable, "-c", _FIGURES],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in range(6)
    }
    assert len(told) == 1, told
