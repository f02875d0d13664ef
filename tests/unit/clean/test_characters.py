"""Characters: what goes, what becomes what, and what stays as it is."""

import polars as pl
import regex
from columns import anything, over, patchwork
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.clean.characters import CLOSE, OPEN, rewritten
from pipelines.clean.normalise import normalised


def unified(*texts: str | None, paper: bool = False) -> list[str]:
    return rewritten(pl.Series(texts, dtype=pl.String), paper=paper)[0].to_list()


def test_invisible_characters_go():
    for text, expected in (
        ("我\u200b想\ufeff睡\u00ad", "我想睡"),  # zero-width, byte-order mark, soft hyphen
        ("\u202e我\u2066们\u2069", "我们"),  # bidirectional marks
        ("我\ue056们\U000f0001", "我们"),  # private use: the emoji of old telephones
        ("我\u3164们\u2800\u115f", "我们"),  # blanks that names are made of
        ("我\ufffd们\ufffc", "我们"),
        ("a\ufe0fb", "ab"),  # a selector without its emoji
        ("我̶想̶死̶", "我想死"),  # struck through
        ("nǐ hǎo", "nǐ hǎo"),
        ("e\u0301", "é"),
    ):
        assert over(normalised, text) == [expected]


UNIFIED = [
    # White space is of one kind.
    ("我\r\n们\r\r他\u2028她\x85它", "我\n们\n\n他\n她\n它"),
    ("我\n\n\n\n们", "我\n\n们"),  # one empty line at most
    ("  我  \n  们  ", "我\n们"),
    ("我\u3000\t 好\u00a0累", "我 好 累"),
    ("我好累 。 真的 ，是", "我好累。真的，是"),
    ("I am  fine , thanks", "I am fine , thanks"),
    ("我 很 难 过", "我很难过"),  # cut into characters
    ("我 很 难过", "我 很 难过"),  # a blank for a comma stays
    # Punctuation stays Chinese, and becomes it.
    ("ＶＸ１２３　５ｍｇ", "VX123 5mg"),
    ("１５％＋＝＃＠［］", "15%+=#@[]"),
    ("好，吗？是！对：嗯；（你）～", "好，吗？是！对：嗯；（你）～"),  # NFKC would make ASCII of these
    ("我想,你呢?好!时间:是;对.", "我想，你呢？好！时间：是；对。"),
    ("今年25,很累", "今年25，很累"),
    ("3.5 5,000 10:30 a.b a,b Q:我", "3.5 5,000 10:30 a.b a,b Q:我"),
    ("六一．五公尺", "六一.五公尺"),
    ("「我『很』好」", "“我‘很’好”"),
    ("让・雅克 让‧雅克", "让·雅克 让·雅克"),
    ("﹐我︒你､⼀", "，我。你、一"),
    ("心情:)", "心情:)"),
    # Runs are cut.
    ("我...", "我……"),
    ("我…好", "我……好"),
    ("我………好", "我……好"),
    ("我···", "我……"),
    ("我。.好", "我。好"),
    ("well....so", "well...so"),
    ("well… so", "well... so"),
    ("OK...好", "OK……好"),
    ("救救我！！！！！！", "救救我！！！"),
    ("为什么????", "为什么？？？"),
    ("真的吗?!", "真的吗？！"),
    ("真的‼不会吧⁉", "真的！！不会吧！？"),
    ("好~~~~", "好~"),
    ("好——————", "好——"),
    ("哈哈哈哈哈哈", "哈哈哈哈哈哈"),
    ("！\n！\n！\n！", "！\n！\n！\n！"),
    # What is an emoji by name only stays.
    ("0123456789 # * © ® ™ → ℃ ① ✓ 996", "0123456789 # * © ® ™ → ℃ ① ✓ 996"),
]


def test_white_space_and_punctuation_are_unified():
    made = unified(*(text for text, _ in UNIFIED))
    assert [(*pair, text) for pair, text in zip(UNIFIED, made, strict=True) if text != pair[1]] == []


def _sequences() -> list[str]:
    """Emoji of every kind, by another implementation of Unicode's tables than ours."""
    every = [chr(code) for code in range(0x203C, 0x20000) if not 0xD800 <= code < 0xE000]
    emoji = [one for one in every if regex.fullmatch(r"\p{Emoji}", one) and one not in "‼⁉™"]
    bases = [one for one in every if regex.fullmatch(r"\p{Emoji_Modifier_Base}", one)]
    tones = [chr(code) for code in range(0x1F3FB, 0x1F400)]
    letters = [chr(code) for code in range(0x1F1E6, 0x1F200)]
    tags = "".join(chr(0xE0000 + ord(one)) for one in "gbsct") + "\U000e007f"
    return [
        *emoji,
        *(one + "\ufe0f" for one in emoji),
        *(one + tone for one in bases for tone in tones),
        *(one + "\u200d♂\ufe0f" for one in bases),
        *(one + tone + "\u200d⚕\ufe0f" for one in bases for tone in tones),
        *("👨\u200d👩\u200d👧\u200d👦", "❤\ufe0f\u200d🔥", "👁\ufe0f\u200d🗨\ufe0f", "🧑🏽\u200d🤝\u200d🧑🏿"),
        *(one + other for one in letters for other in letters),
        *(key + selector + "\u20e3" for key in "0123456789#*" for selector in ("", "\ufe0f")),
        "🏴" + tags,
    ]


def test_every_emoji_goes():
    sequences = _sequences()
    assert len(sequences) > 5_000
    made = unified(*(f"我{one}你" for one in sequences))
    assert [one for one, text in zip(sequences, made, strict=True) if text != "我 你"] == []


def test_digits_on_keys_are_a_number_where_they_are_several():
    for text, expected in (
        ("我今年1\ufe0f\u20e32\ufe0f\u20e3岁", "我今年12岁"),
        ("1\u20e32\u20e33\u20e3，4\u20e3", "123，"),
        ("\uff11\u20e3２\ufe0f\u20e3\u20e3好", "12好"),
        ("1\ufe0f\u20e3失眠 2\ufe0f\u20e3焦虑", "失眠 焦虑"),  # these number a list
        ("#\u20e31\u20e3*\u20e32\u20e3好", "好"),
    ):
        assert unified(text) == [expected]
        assert over(normalised, text, expected) == [expected, expected]


def test_the_paper_leaves_no_brackets_empty():
    for text, expected in (
        ("“OK”，他说", "他说"),
        ("666，好\n1、好", "好\n好"),
        ("（abc），好\n《IT》、我", "好\n我"),
        ("“（《a》）”，好", "好"),
        ("好，（a），“b”！！（c）！！", "好，！！！"),
        (f"{'（《' * 40}a{'》）' * 40}，好", "好"),
        ("（好）“a", "（好）“"),
    ):
        assert unified(text, expected, paper=True) == [expected, expected]


def test_what_is_enclosed_stays_as_it_is():
    [made] = unified(f"我,{OPEN}姓名2{CLOSE},{OPEN}QQ{CLOSE}?", paper=True)
    assert made == f"我，{OPEN}姓名2{CLOSE}，{OPEN}QQ{CLOSE}？"


@settings(max_examples=30)
@given(st.lists(st.one_of(anything, patchwork), max_size=8), st.booleans())
def test_characters_are_settled_at_once(texts: list[str], paper: bool):
    once = unified(*texts, paper=paper)
    assert unified(*once, paper=paper) == once


@settings(max_examples=30)
@given(st.lists(anything, min_size=1, max_size=8))
def test_no_row_sees_its_neighbours(texts: list[str]):
    assert unified(*texts) == [unified(text)[0] for text in texts]


NEAR_THE_RULES = st.text("我你……。 \n，a·、-—“”（！.,", max_size=14)


@settings(max_examples=300)
@given(st.lists(st.one_of(NEAR_THE_RULES, st.text(max_size=12)), min_size=1, max_size=8))
def test_a_row_that_one_look_leaves_as_it_is_is_what_would_be_written(texts: list[str]):
    """A row with an invisible character is always written anew."""
    texts = [text.replace(OPEN, "") for text in texts]
    same, signs = rewritten(pl.Series(texts, dtype=pl.String))
    written, signs_written = rewritten(pl.Series([f"{text}\u200b" for text in texts], dtype=pl.String))
    assert same.to_list() == written.to_list()
    assert signs.tolist() == signs_written.tolist()
