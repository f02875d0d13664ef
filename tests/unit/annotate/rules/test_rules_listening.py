"""What a history says: the danger that is still open, and the feeling before the last one."""

import pytest

from pipelines.annotate.rules.listening import listen
from pipelines.annotate.rules.wording import phrases
from schemas.labels import RISKS


def heard(lang, *said):
    """A talk in which the seeker begins and both take turns."""
    return listen(lang, [{"role": ("seeker", "supporter")[n % 2], "text": text} for n, text in enumerate(said)])


@pytest.mark.parametrize(
    ("lang", "seeker", "supporter"),
    [
        ("zh", "我不想活了，想自杀", "你好像很缺安全感"),
        ("zh", "我不想活了，想自杀", "你体重120斤其实不胖"),
        ("zh", "我不想活了，想自杀", "我1100块买的那本书推荐给你"),
        ("zh", "我不想活了，想自杀", "嗯，我在听"),
        ("zh", "我不想活了，想自杀", "我打工赚了110块，上班路上系好安全带"),
        ("en", "I want to kill myself", "Saving money is a safer bet"),
        ("en", "I want to kill myself", "I feel safe at home as well"),
    ],
)
def test_a_danger_stays_open_until_somebody_speaks_of_it(lang, seeker, supporter):
    assert heard(lang, seeker, supporter, "嗯…").dangers == ("self_harm",)


@pytest.mark.parametrize(
    ("lang", "supporter"),
    [
        ("zh", "你现在安全吗？"),
        ("zh", "可以打12356"),
        ("zh", "紧急的时候请拨打 120"),
        ("zh", "有一条心理热线"),
        ("en", "Are you somewhere safe right now?"),
        ("en", "Please call a crisis line"),
        ("en", "Can you go to the emergency room?"),
    ],
)
def test_who_asks_for_safety_or_names_where_to_turn_to_has_taken_it_up(lang, supporter):
    seeker = {"zh": "我不想活了，想自杀", "en": "I want to kill myself"}[lang]
    assert heard(lang, seeker, supporter, "嗯…").dangers == ()


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_what_the_rules_themselves_say_in_danger_takes_it_up(lang):
    seeker = {"zh": "我不想活了，想自杀", "en": "I want to kill myself"}[lang]
    said = [
        text
        for kind in RISKS
        for name in ("talk", "talk_other")
        for text in phrases(lang)["danger"][kind].get(name, ())
    ]
    assert len(said) >= 5
    assert [text for text in said if heard(lang, seeker, text, "嗯…").dangers] == []


@pytest.mark.parametrize("first", ["我很难过", "我真的很难过"])
def test_a_feeling_that_comes_back_has_the_other_one_before_it(first):
    """Turns that say the same are read once, and stand in two places all the same."""
    talk = heard("zh", first, "嗯。", "我很生气", "嗯。", "我很难过")
    assert talk.before is not None
    assert talk.before.words == ("生气",)
    assert talk.since_felt == 0
