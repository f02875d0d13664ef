"""Languages: sentences written for this test, and real sets whose language is known."""

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from columns import anything, over
from hypothesis import given
from hypothesis import strategies as st

from pipelines.clean.language import LANGUAGES, language
from pipelines.clean.normalise import normalised
from pipelines.ingest.importing import read
from pipelines.text.script import simplified

SENTENCES = {
    "mandarin": """
        我最近总是睡不着，不知道该怎么办
        最近總是睡不著，不知道該怎麼辦
        唔，我也不知道该说什么好
        好嘞，谢谢你
        他说“唔该”是谢谢的意思，我才知道他是广东人
        我是INFP，男朋友是ENTJ，他老是说take it easy
        我的天の呐，今天好累
        (ノへ￣、)我又失眠了
        我以为其实也就如此，其余的都是小事
        之乎者也我都不懂，我只想睡个好觉
        [姓名]是我的[学校]老师
        求助
        累
    """,
    "cantonese": """
        我唔知點算好，成晚都瞓唔着
        佢哋成日話我，我真係好攰
        我而家好唔開心，冇人明我
        点解佢要咁对我，我咩都冇做错
        阿妈话我冇用，我唔想返屋企
        呢排成日喊，唔知搵边个倾
        我同佢分咗手，仲係好挂住佢
        今日又俾老细闹，唔想返工
    """,
    "japanese": """
        最近ずっと眠れなくて、どうすればいいかわかりません
        友達と喧嘩してしまいました
        大丈夫ですか
        東京都知事選挙、労働問題、経済対策、図書館
    """,
    "korean": """
        요즘 잠을 잘 수가 없어요
        친구와 싸워서 너무 슬퍼요
    """,
    "english": """
        I have not been sleeping well and I do not know what to do
        My friend is angry with me
        I'm so tired... what should I do?
        OK, thank you
    """,
    "classical": """
        余自幼孤苦，及长，遂离乡而游四方，其间忧患，岂可胜言哉
        夜深不寐，起而望月，其光皎皎，吾心之忧，曷其有极
        人生于世，忧患实多，然君子处之，亦以道自安而已矣
        吾兄既殁，家道遂衰，老母在堂，弱弟未冠，余何以为生乎
        昔者有人失其子，昼夜号泣，邻人怜之，乃以酒食往慰焉
        窃以为治心之道，在于养气，气定则神闲，神闲则百忧自去矣
        山中之人，朝耕而暮息，不知有忧，岂非天下之至乐者乎
        友人某，性孤介，不与俗谐，遂弃官而归，以诗酒自娱
        吾闻之：忧者，心之贼也；乐者，身之药也
        今夕何夕，独坐空斋，念及故人，不觉泪下沾襟
    """,
    "other": """
        Мне сегодня очень грустно
        أنا حزين جدا اليوم
        wo zui jin hen nan guo bu zhi dao zen me ban
        Je suis très triste et je ne sais pas quoi faire
    """,
    "unknown": """
        123 456
        ！！！
        [表情]
        [QQ]
        INFP
        😀
    """,
}


def lines(block: str) -> list[str]:
    return [line.strip() for line in block.strip().splitlines()]


@pytest.mark.parametrize("expected", [one for one in LANGUAGES if one != "classical"])
def test_languages_are_recognised(expected: str):
    texts = lines(SENTENCES[expected])
    assert dict(zip(texts, over(language, *texts), strict=True)) == dict.fromkeys(texts, expected)


def test_classical_chinese_is_recognised_where_its_particles_are_dense():
    """Recall on ten passages written for this: verse and plain narrative without particles pass as Mandarin."""
    languages = Counter(over(language, *lines(SENTENCES["classical"])))
    assert languages["classical"] >= 7
    assert set(languages) <= {"classical", "mandarin"}


def test_nothing_is_unknown():
    assert over(language, None, "", "  ") == ["unknown"] * 3


# --- real sets


def _texts(shared: Path) -> Iterator[tuple[str, list[str]]]:
    kept = read("psyqa", shared / "zh_qa" / "PsyQA_example.json").kept
    yield "PsyQA, posts", (kept["title"] + "\n" + kept["description"]).to_list()
    yield "PsyQA, answers", [answer["text"] for answers in kept["answers"] for answer in answers]
    with (shared / "noisy" / "COLDataset_dev.csv").open(encoding="utf-8-sig") as rows:
        yield "COLDataset", [row["TEXT"] for row in csv.DictReader(rows)]
    chats = (shared / "noisy" / "cdial_toy_valid.txt").read_text(encoding="utf-8").splitlines()
    yield "cdial", chats
    talks = json.loads((shared / "noisy" / "emollm_aiwei_part.json").read_text(encoding="utf-8"))
    yield "EmoLLM", [turn["output"] for talk in talks for turn in talk["conversation"]]
    openings = (shared / "near_dup" / "smile_first_turns.jsonl").read_text(encoding="utf-8").splitlines()
    yield "SMILE", [json.loads(line)["text"] for line in openings]
    articles = json.loads((shared / "zh_hant" / "DRCD_dev_part.json").read_text(encoding="utf-8"))["data"]
    yield "DRCD, Traditional", [one["context"] for article in articles for one in article["paragraphs"]]


# Rows that are in truth something else: comments in Cantonese, replies that slip into German, rows without words.
FOREIGN = {"COLDataset": 4, "EmoLLM": 2}


def test_real_mandarin_is_mandarin(shared: Path):
    for name, texts in _texts(shared):
        assert texts, name
        for written in (texts, over(lambda text: simplified(normalised(text)), *texts)):
            languages = Counter(over(language, *written))
            assert languages.total() - languages["mandarin"] <= FOREIGN.get(name, 0), name


def test_real_english_is_english(shared: Path):
    talks = json.loads((shared / "en_strategy" / "FailedESConv.json").read_text(encoding="utf-8"))
    languages = Counter(over(language, *(" ".join(turn["content"] for turn in talk["dialog"]) for talk in talks)))
    # The others are three in which someone has struck keys at random.
    assert languages["english"] == len(talks) - 3 == 193


# --- laws


@given(st.lists(anything, max_size=8))
def test_it_is_always_one_of_them(texts: list[str]):
    assert set(over(language, *texts)) <= set(LANGUAGES)


def test_ten_megabytes_in_one_row():
    assert over(language, "我很累" * 1_200_000, "我") == ["mandarin", "mandarin"]
