"""Simplified or Traditional: decided by the characters that only one of them has."""

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import opencc
import pytest
from columns import anything, over, patchwork
from hypothesis import given, settings
from hypothesis import strategies as st
from opencc import OpenCC

from pipelines.ingest.importing import read
from pipelines.text import script as module
from pipelines.text.script import IN_PHRASES, as_simplified, in_both_scripts, script


def scripts(texts: list[str]) -> list[str]:
    return over(script, *texts)


@pytest.fixture(scope="module")
def traditional_texts(shared: Path) -> list[str]:
    """413 paragraphs of Taiwanese encyclopaedia articles."""
    articles = json.loads((shared / "zh_hant" / "DRCD_dev_part.json").read_text(encoding="utf-8"))["data"]
    return [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]


@pytest.fixture(scope="module")
def simplified_texts(shared: Path) -> list[str]:
    """100 questions of a site on the mainland."""
    return read("psyqa", shared / "zh_qa" / "PsyQA_example.json").kept["description"].to_list()


def test_it_goes_by_telling_characters():
    wanted = {
        "这个问题": "simplified",
        "這個問題": "traditional",
        "我很好，hello😀": "neutral",
        "这个问題": "mixed",
        "": "neutral",
        "她說，從這裡到皇后的宮殿還有幾個時辰，請隨我們來": "traditional",  # 后 stands in both scripts
        "这个问题说来话长，让我们谈谈爱，谈谈时间愛": "simplified",  # a name quoted once
    }
    assert dict(zip(wanted, scripts(list(wanted)), strict=True)) == wanted


def test_real_traditional_text_is_traditional(traditional_texts: list[str]):
    counted = Counter(scripts(traditional_texts))
    assert counted.total() == 413
    assert counted["traditional"] >= 0.99 * 413
    assert counted["simplified"] == 0


def test_real_simplified_text_is_simplified(simplified_texts: list[str]):
    found = [one for text, one in zip(simplified_texts, scripts(simplified_texts), strict=True) if text]
    assert set(found) == {"simplified"}


def test_a_text_becomes_simplified_character_by_character(traditional_texts: list[str], simplified_texts: list[str]):
    assert over(as_simplified, *simplified_texts) == simplified_texts
    made = over(as_simplified, *traditional_texts)
    assert set(scripts(made)) <= {"simplified", "neutral"}
    assert [len(text) for text in made] == [len(text) for text in traditional_texts]


def test_traditional_becomes_simplified():
    cases = [
        ("這個問題我想了很久", "这个问题我想了很久"),
        ("頭髮、發現、皇后、後來、乾燥、乾坤、餅乾乾淨", "头发、发现、皇后、后来、干燥、乾坤、饼干干净"),
        ("我只是看著你，想著他", "我只是看着你，想着他"),  # 看著 has no character that only Traditional has
        ("他的著作很著名，是原著、名著", "他的著作很著名，是原著、名著"),
        ("這位土著顯著地走著", "这位土著显著地走着"),
        ("憂鬱症、資訊、網路", "忧郁症、资讯、网路"),  # no word is exchanged for the mainland's
        ("這是什麼？什么？么么哒", "这是什么？什么？么么哒"),  # ungated: 幺幺
        ("反覆、藉口、瞭解、沈默、回覆", "反复、借口、了解、沉默、回复"),
        ("覆盖、慰藉、瞭望、姓沈", "覆盖、慰藉、瞭望、姓沈"),
        ("愛\x00\n愛\n\n", "爱\x00\n爱\n\n"),
        ("[電話]這[姓名2]", "[电话]这[姓名2]"),
        ("", ""),
    ]
    assert over(module.simplified, *(text for text, _ in cases)) == [expected for _, expected in cases]


def test_simplified_text_passes_untouched(simplified_texts: list[str]):
    assert over(module.simplified, *simplified_texts) == simplified_texts
    texts = ["他把我打坏了，玩坏、拉坏、捏坏", "北上广土著，显著，原著", "了、着、后、里、干、面、只、发", "INFP 5mg"]
    assert over(module.simplified, *texts) == texts
    mixed = [f"{text}，我愛你" for text in texts]  # and so do its characters beside a Traditional one
    assert over(module.simplified, *mixed) == [f"{text}，我爱你" for text in texts]


def test_real_traditional_text_becomes_what_opencc_makes_of_it(traditional_texts: list[str]):
    converter = OpenCC("tw2s")
    made = over(module.simplified, *traditional_texts)
    assert set(scripts(made)) == {"simplified"}
    converted = "".join(converter.convert(text) for text in traditional_texts)
    other = [(a, b) for a, b in zip(converted, "".join(made), strict=True) if a != b]
    assert set(other) <= {("着", "著")}  # 土著, 原著: in OpenCC's phrases for Taiwan they are missing
    assert len(other) < 10


def test_nulls_and_ten_megabytes_in_one_row():
    long = "我愛你\n😀" * 800_000
    assert len(long.encode()) > 10_000_000
    assert over(module.simplified, None, "愛", long) == [None, "爱", long.replace("愛", "爱")]


HAN = st.text(st.sampled_from(sorted({*module.convertible(), *"你我的么着后里干打坏看口解默生得"})), max_size=12)


@settings(max_examples=50)
@given(st.lists(st.one_of(HAN, HAN, anything, patchwork), max_size=8))
def test_converting_twice_changes_nothing(texts: list[str]):
    once = over(module.simplified, *texts)
    assert over(module.simplified, *once) == once
    assert [len(text) for text in once] == [len(text) for text in texts]


def test_the_gate_knows_every_character_of_openccs_dictionaries(tmp_path: Path):
    """The dictionaries are the installed wheel's own, by the tool in it that writes them out."""
    home = Path(opencc.__file__).parent / "clib"
    phrases = []
    for name in ("TSPhrases", "TSCharacters", "TWVariantsRevPhrases", "TWVariantsRev"):
        source, text = home / "share" / "opencc" / f"{name}.ocd2", tmp_path / name
        subprocess.run([home / "bin" / "opencc_dict", "-i", source, "-o", text, "-f", "ocd2", "-t", "text"], check=True)
        phrases += [line.split("\t")[0] for line in text.read_text(encoding="utf-8").splitlines()]
    assert len(phrases) > 5_000
    simplified_only, traditional_only = module._markers()
    gating = set(traditional_only) | {one for one, made in module.each_alone("tw2s").items() if one != made}
    in_phrases = set()
    for config in ("t2s", "tw2s"):
        converter = OpenCC(config)
        alone = {one: converter.convert(one) for one in set("".join(phrases))}
        for phrase in phrases:
            made = converter.convert(phrase)
            assert len(made) == len(phrase)
            if set(phrase) & gating:
                continue
            in_phrases |= {a for a, b in zip(phrase, made, strict=True) if a != b and alone[a] == a}
    assert in_phrases - set(simplified_only) == set(IN_PHRASES)
    assert gating - set(simplified_only) <= set(module.convertible())


def test_a_pattern_in_both_scripts_matches_either():
    pattern = in_both_scripts("来自.{1,4}客户端|回复")
    for text in ("来自我的客户端", "來自我的客戶端", "来自我的客戶端", "回覆", "回復"):
        assert re.fullmatch(pattern, text)
    assert not re.search(pattern, "来自我的客人")
