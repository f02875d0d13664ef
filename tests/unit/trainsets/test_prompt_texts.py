"""The system prompts ask for the very formats that the parsers read (papers.md §2)."""

import re
from itertools import product
from pathlib import Path

import pytest

from pipelines.errors import UnreadableFile
from pipelines.llm.prompts import Prompt, load
from pipelines.trainsets import prompt_sets
from pipelines.trainsets.prompt_sets import cer_system_prompt
from schemas.labels import ANSWERABLE_STRATEGIES, SENTIMENTS, STAGES
from schemas.reasoning import CER_TAGS, COE_TAGS, ECOT_TAGS, Cer, Coe, Ecot, Reasoning

FOLDER = Path(prompt_sets.__file__).parent / "prompts"
PROMPTS: dict[str, tuple[Prompt, type[Reasoning], tuple[str, ...]]] = {
    "ecot": (load(FOLDER / "ecot.md"), Ecot, ECOT_TAGS),
    "coe": (load(FOLDER / "coe.md"), Coe, COE_TAGS),
    "cer.zh": (cer_system_prompt("zh"), Cer, CER_TAGS),
    "cer.en": (cer_system_prompt("en"), Cer, CER_TAGS),
}
each_prompt = pytest.mark.parametrize(("prompt", "record", "names"), PROMPTS.values(), ids=PROMPTS)
LANGUAGES = pytest.mark.parametrize("lang", ["zh", "en"])

ECOT = Ecot(situation="您和室友吵架了", motivation="想被理解", strategy="先共情", answer="您辛苦了。")
COE = Coe(L1="委屈", L2="觉得都怪自己", L3="想被认可", L4="先倾听", answer="抱抱你。\n慢慢来。")


def skeleton(prompt: Prompt) -> str:
    """The format as the prompt shows it, with … for what is to be filled in."""
    [shown] = re.findall(r"^(?:<\w+>){2}.*?</answer>$", prompt.text, flags=re.DOTALL | re.MULTILINE)
    return shown


def filled(shown: str, *words: str) -> str:
    parts = shown.split("…")
    assert len(parts) == len(words) + 1
    return "".join(part + word for part, word in zip(parts, (*words, ""), strict=True))


def cer(lang: str, stage: int = 0, sentiment: int = 1, intensity: int = 3, strategy: int = 2) -> Cer:
    return Cer(
        lang=lang,
        stage=STAGES.en[stage],
        history_reasoning="吵架" if lang == "zh" else "a quarrel",
        sentiment=SENTIMENTS.en[sentiment],
        emotion="委屈" if lang == "zh" else "hurt",
        intensity=intensity,
        emotion_reasoning="反复说",
        strategy=ANSWERABLE_STRATEGIES[strategy].en,
        strategy_reasoning="先被听见",
        response="听起来很难受。",
    )


# --- the format


@pytest.mark.parametrize(
    ("name", "record", "words"),
    [
        ("ecot", ECOT, ("您和室友吵架了", "想被理解", "先共情", "您辛苦了。")),
        ("coe", COE, ("委屈", "觉得都怪自己", "想被认可", "先倾听", "抱抱你。\n慢慢来。")),
        (
            "cer.zh",
            cer("zh"),
            ("探索", "吵架", "消极", "委屈", "3", "反复说", "情感反映", "先被听见", "听起来很难受。"),
        ),
        (
            "cer.en",
            cer("en"),
            (
                "exploration",
                "a quarrel",
                "negative",
                "hurt",
                "3",
                "反复说",
                "Reflection of feelings",
                "先被听见",
                "听起来很难受。",
            ),
        ),
    ],
)
def test_what_the_prompt_shows_is_what_is_written_and_read(name: str, record: Reasoning, words: tuple[str, ...]):
    text = filled(skeleton(PROMPTS[name][0]), *words)
    assert text == record.render()
    assert type(record).parse(text) == record


@LANGUAGES
def test_every_combination_of_labels_that_the_prompt_offers_is_read(lang: str):
    sets = re.findall(r"(?:从这些里选一个：|is one of: )([^。.]+)[。.]", cer_system_prompt(lang).text)
    stages, sentiments, strategies = (re.split("、|, ", found) for found in sets)
    zh = lang == "zh"
    assert stages == list(STAGES.zh if zh else STAGES.en)
    assert sentiments == list(SENTIMENTS.zh if zh else SENTIMENTS.en)
    assert strategies == [label.zh if zh else label.en for label in ANSWERABLE_STRATEGIES]
    shown = skeleton(cer_system_prompt(lang))
    for places in product(*(range(len(names)) for names in (stages, sentiments, strategies)), range(1, 6)):
        stage, sentiment, strategy, intensity = places
        words = (stages[stage], "r", sentiments[sentiment], "e", str(intensity), "r", strategies[strategy], "r", "a")
        read = Cer.parse(filled(shown, *words))
        assert (read.lang, read.stage, read.sentiment, read.strategy, read.intensity) == (
            lang,
            STAGES.en[stage],
            SENTIMENTS.en[sentiment],
            ANSWERABLE_STRATEGIES[strategy].en,
            intensity,
        )


@each_prompt
def test_the_prompt_uses_no_tag_of_another_format(prompt: Prompt, record: type[Reasoning], names: tuple[str, ...]):
    assert set(re.findall(r"</?(\w+)>", prompt.text)) == set(names)  # above all not Qwen3's own <think>


@each_prompt
def test_the_prompt_says_what_to_do_in_danger_and_forbids_diagnoses(
    prompt: Prompt, record: type[Reasoning], names: tuple[str, ...]
):
    assert "$" not in prompt.text
    chinese = len(re.findall(r"[\u4e00-\u9fff]", prompt.text))
    assert chinese == 0 if prompt.id == "cer.en" else chinese > 150
    required = ["crisis line", "emergency", "no diagnosis"] if prompt.id == "cer.en" else ["12356", "120", "不下诊断"]
    assert all(words in prompt.text for words in required)


# --- files


def test_a_prompt_is_named_by_its_id_and_a_version_that_follows_its_text(tmp_path: Path):
    paths = [tmp_path / f"{n}.md" for n in range(3)]
    for path, text in zip(paths, ("帮助他", "帮助他", "帮助她"), strict=True):
        path.write_text(f"---\nid: x\nversion: 4\nlanguage: zh\n---\n{text}\n", encoding="utf-8")
    one, same, other = map(load, paths)
    assert one.text == "帮助他"
    assert one.name == same.name != other.name
    assert re.fullmatch(r"x@4-[0-9a-f]{8}", one.name)


def test_filling_in_makes_another_version(tmp_path: Path):
    path = tmp_path / "x.md"
    path.write_text("---\nid: x\nversion: 1\n---\n从 $names 里选\n", encoding="utf-8")
    prompt = load(path)
    one, other = prompt.filled(names="甲、乙"), prompt.filled(names="甲")
    assert one.text == "从 甲、乙 里选"
    assert len({prompt.name, one.name, other.name}) == 3
    assert one.name == prompt.filled(names="甲、乙").name
    with pytest.raises(KeyError):
        prompt.filled(stages="甲")


@pytest.mark.parametrize(
    "content",
    ["", "帮助他", "---\nid: x\n---\n帮助他", "---\nversion: 1\n---\n帮助他", "---\nid: x\nversion: 1\n---\n \n"],
)
def test_a_prompt_without_front_matter_or_text_is_refused(tmp_path: Path, content: str):
    path = tmp_path / "x.md"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UnreadableFile, match=re.escape(str(path))):
        load(path)
