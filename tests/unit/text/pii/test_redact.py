"""What `redact` promises, whatever the text."""

import re
import time
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.errors import RequestError
from pipelines.text.pii import placeholders, redact
from pipelines.text.pii.redaction import find
from schemas.labels import PII_KINDS

# Pieces that meet each other in awkward ways: cues, numbers, seams, placeholders, prose.
CUES = "我的微信是 ➕V： QQ 加我 电话 邮箱 身份证 卡号 车牌 网名叫 @ ＠ vx q １ ① 😭"
PIECES = [
    *CUES.split(),
    *("13822095514", "138 2209 5514", "一三八二二零九五五一四", "914207336", "moon_2207", "quiet@163.com"),
    *("11010519491231002X", "6222021234567890128", "https://example.com/a?b=1", "0571-87650021", "浙A7K235"),
    *("小树不说话", "12356", "[电话]", "[电话2]", "[微信]", "[表情]", "[", "]", "，", "。", " ", "\n", "\u200b"),
    *("\ufe0f\u20e3", "\x00", "\ufdd0", "我", "张老师", "妈妈", "在杭州市第一中学", "的", "a", "Z", "0"),
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=12).map("".join)
PLANES = ((0, 0x80), (0x80, 0x3000), (0x3000, 0xD800), (0xE000, 0x110000))  # of Unicode; each is as likely


def drawn(random: Random, number: int) -> list[str | None]:
    """Texts as `TEXTS` has them, and nulls: a column of many, for a call costs more than its texts do."""

    def piece() -> str:
        if random.random() < 0.7:
            return random.choice(PIECES)
        return "".join(chr(random.randrange(*random.choice(PLANES))) for _ in range(random.randrange(5)))

    some = ["".join(piece() for _ in range(random.randrange(13))) for _ in range(number)]
    return [None if random.random() < 0.05 else text for text in some]


def counted(texts: pl.Series) -> dict[str, int]:
    """Placeholders by kind in all texts."""
    kinds = placeholders.KINDS
    found = [kinds[match.group(1)] for text in texts.drop_nulls() for match in re.finditer(placeholders.NAMED, text)]
    return {kind: found.count(kind) for kind in set(found)}


def total(counts: pl.DataFrame) -> dict[str, int]:
    return dict(counts.group_by("kind").agg(pl.col("count").sum()).iter_rows())


@pytest.mark.parametrize("names", ["none", "strict", "wide"])
@settings(max_examples=3)
@given(st.integers(0, 2**32))
def test_what_is_replaced_is_counted_placeholders_stay_and_redacting_again_changes_nothing(names, seed):
    texts = drawn(Random(seed), 150 if seed else 0)
    before = counted(pl.Series(texts, dtype=pl.String))
    once = redact(texts, names=names)
    after = counted(once.texts)
    new = {kind: n - before.get(kind, 0) for kind, n in after.items() if n != before.get(kind, 0)}
    assert new == total(once.counts)
    for text, redacted in zip(texts, once.texts, strict=True):
        left = iter(re.findall(placeholders.PATTERN, redacted or ""))
        assert all(one in left for one in re.findall(placeholders.PATTERN, text or ""))  # in their order
    assert (len(once.counts) > 50) is bool(texts)
    again = redact(once.texts, names=names)
    assert again.texts.equals(once.texts)
    assert again.counts.is_empty()


@settings(max_examples=10)
@given(
    st.lists(st.text(st.characters(exclude_categories=["N", "Cs"], exclude_characters="@＠"), max_size=40), max_size=20)
)
def test_a_text_without_letters_digits_or_mentions_has_no_contact_data(texts):
    plain = [re.sub(r"[^\W_]", lambda m: m.group() if "一" <= m.group() <= "鿿" else "", text) for text in texts]
    plain = [re.sub("[零〇一二两三四五六七八九]", "", text) for text in plain]
    # A nickname is all that is told in Chinese characters alone.
    assert set(find(pl.Series(plain, dtype=pl.String), names="none")["kind"]) <= {"account"}


@settings(max_examples=10)
@given(st.lists(TEXTS, max_size=12))
def test_spans_lie_in_the_text_in_order_on_characters(texts):
    found = find(pl.Series(texts, dtype=pl.String))
    assert found.equals(found.sort("row", "start"))
    assert set(found["kind"]) <= set(PII_KINDS)
    ends: dict[int, int] = {}
    for row, start, end, _, _ in found.iter_rows():
        data = texts[row].encode()
        assert ends.get(row, 0) <= start < end <= len(data)
        data[start:end].decode()  # neither end cuts a character
        ends[row] = end


def test_the_same_value_has_the_same_placeholder_however_it_is_written():
    texts = ["打13822095514，或者138-2209-5514", "一三八二二零九五五一四打不通就打15922307741"]
    texts.append("微信moon_2207，VX：MOON_2207")
    result = redact(texts, pl.Series(["a", "a", "a"]), names="none")
    assert result.texts.to_list() == ["打[电话]，或者[电话]", "[电话]打不通就打[电话2]", "微信[微信]，VX：[微信]"]
    assert result.counts.rows() == [(0, "phone", 2), (1, "phone", 2), (2, "wechat", 2)]


def test_another_group_is_numbered_from_one_and_a_number_that_stands_in_the_group_is_taken():
    texts = ["打15922307741", "打13822095514", "打13822095514", "打15922307741"]
    grouped = redact(texts, pl.Series([1, 1, 2, None]), names="none").texts.to_list()
    assert grouped == ["打[电话]", "打[电话2]", "打[电话]", "打[电话]"]
    assert redact(texts, names="none").texts.to_list() == ["打[电话]"] * 4
    texts = ["他的是[电话2]", "打13822095514"]
    assert redact(texts, pl.Series(["a", "a"]), names="none").texts.to_list() == ["他的是[电话2]", "打[电话3]"]


def test_what_cannot_be_text_is_read_all_the_same():
    texts = [None, "", "\ud83d打13822095514", "打13822095514".encode() + b"\xff", "1️⃣3️⃣8️⃣2️⃣2️⃣0️⃣9️⃣5️⃣5️⃣1️⃣4️⃣", "😭" * 50]
    expected = [None, "", "\ufffd打[电话]", "打[电话]\ufffd", "[电话]", "😭" * 50]
    assert redact(texts, names="none").texts.to_list() == expected


def test_groups_must_be_as_many_as_texts():
    with pytest.raises(RequestError, match="2 groups for 1 texts"):
        redact(["a"], pl.Series([1, 2]))


def test_a_huge_text_is_read_in_bounded_memory():
    for piece, times in (
        ("13822095514，", 60_000),
        ("一 ", 500_000),
        ("@", 500_000),
        ("1", 1_000_000),
        ("微信", 500_000),
    ):
        phones = total(redact([piece * times], names="none").counts).get("phone", 0)
        assert phones == (times if piece.startswith("138") else 0), piece
    assert redact(["\ufeff１" * 300_000], names="none").counts.is_empty()


def test_a_text_made_to_draw_out_the_readings_ends():
    result = redact(["q1234567" * 2000], names="none")
    assert 0 < result.counts["count"].sum() <= 2000


def test_public_lines_stay():
    lines = "危险时打110、120，心理援助12356、12355、12338、12320，希望24热线400-161-9995、4001619995，北京010-82951332"
    assert redact([lines], names="none").texts.to_list() == [lines]


def test_a_name_is_the_same_in_all_texts_of_its_group_and_no_part_of_a_word():
    post = ["我室友陈雨桐总是半夜打电话。", "雨桐这样很久了吗？", "陈雨桐说不是。"]
    assert redact(post, pl.Series(["a"] * 3)).texts.to_list() == [
        "我室友[姓名]总是半夜打电话。",
        "[姓名]这样很久了吗？",
        "[姓名]说不是。",
    ]
    assert redact(post[1:2]).counts.is_empty(), "alone it says nothing"
    talk = ["My friend Tom left me.", "Will you see Tom tomorrow?"]
    assert redact(talk, pl.Series(["a"] * 2)).texts.to_list() == [
        "My friend [name] left me.",
        "Will you see [name] tomorrow?",
    ]


AGAIN = {
    "我叫方文，我喜欢地方文化和南方文学": "我叫[姓名]，我喜欢地方文化和南方文学",
    "我同学叫林海，森林海洋": "我同学叫[姓名]，森林海洋",
    "我老公叫王一，国王一样": "我老公叫[姓名]，国王一样",
    "我喜欢周杰伦，我叫周杰": "我喜欢周杰伦，我叫[姓名]",
    "我叫方文，和方文一起走": "我叫[姓名]，和[姓名]一起走",
    "My name is Will. I will go. Will you help?": "My name is [name]. I will go. Will you help?",
    "My name is April and in April I moved.": "My name is [name] and in April I moved.",
    "My name is Rose. With roses I rose up.": "My name is [name]. With roses I rose up.",
    "我室友叫陈雨，和陈雨同班的人骂我": "我室友叫[姓名]，和[姓名]同班的人骂我",
    "我入职了交通银行，集交通银行的徽章": "我入职了[单位]，集[单位]的徽章",
    "我考上了浙大，浙大学生很多": "我考上了[学校]，[学校]学生很多",
    "我朋友Kevin骂我，kevin又走了": "我朋友[姓名]骂我，[姓名]又走了",
}


@pytest.mark.parametrize("names", ["strict", "wide"])
def test_a_name_is_found_again_only_where_it_stands_for_itself(names):
    assert dict(zip(AGAIN, redact(list(AGAIN), names=names).texts, strict=True)) == AGAIN


def test_a_name_within_another_that_nothing_announces_stays():
    texts = ["我叫高中华，读高中华侨班", "我叫陈雨，陈雨桐是我姐"]
    assert redact(texts).texts.to_list() == ["我叫[姓名]，读高中华侨班", "我叫[姓名]，陈雨桐是我姐"]


PARTS = {
    "My name is Sarah Connor. Sarah is tired.": "My name is [name]. [name] is tired.",
    "我叫司马小雨。小雨哭了": "我叫[姓名]。[姓名]哭了",
    "我叫欧阳婷婷，婷婷很累": "我叫[姓名]，[姓名]很累",
    "我室友叫买买提·吐尔逊，吐尔逊骂我": "我室友叫[姓名]，[姓名]骂我",
}


@pytest.mark.parametrize("names", ["strict", "wide"])
def test_a_part_of_a_name_is_the_same_person(names):
    assert dict(zip(PARTS, redact(list(PARTS), names=names).texts, strict=True)) == PARTS


@pytest.mark.parametrize("names", ["strict", "wide"])
def test_whoever_is_mine_is_a_person_in_english_whatever_the_name(names):
    said = "My boyfriend {0} hit me. I told {0} to stop. My friend And I left, as my mom Christian would say."
    texts = [said.format(name) for name in ("Zorbin", "Mohammed", "Priya", "Xiaoming", "Hans")]
    assert redact(texts, names=names).texts.to_list() == [said.format("[name]")] * 5


def test_what_only_a_second_reading_finds_is_replaced_in_all_texts_of_its_group():
    texts = ["我叫陈奕迅李老师骂我", "陈奕迅今年二十岁"]  # he is the star until what stands behind is a placeholder
    assert redact(texts, pl.Series(["a"] * 2)).texts.to_list() == ["我叫[姓名2][姓名]骂我", "[姓名2]今年二十岁"]


@pytest.mark.parametrize("unit", ["我叫周海燕，", "小张老王，"])
def test_time_grows_with_the_length_of_a_text_full_of_names(unit):
    def seconds(times: int) -> float:
        start = time.process_time()
        redact([unit * times])
        return time.process_time() - start

    seconds(10)
    # Eight times as much; what reads the whole text for each name took twenty-five times as long.
    assert seconds(16_000) < 14 * seconds(2000)


def test_an_english_group_has_english_placeholders_and_a_chinese_one_chinese():
    texts = ["Call me at 13822095514 or write to tom@example.com", "13822095514", "打我电话", "13822095514"]
    assert redact(texts, pl.Series(["a", "a", "b", "b"])).texts.to_list() == [
        "Call me at [phone] or write to [email]",
        "[phone]",
        "打我电话",
        "[电话]",
    ]
