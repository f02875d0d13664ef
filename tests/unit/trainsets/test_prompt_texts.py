"""The system prompts ask for the very formats that the parsers read (papers.md §2)."""

import re
from itertools import product
from pathlib import Path

import pytest
from annotate_rows import ECOT, cer

from pipelines import annotate
from pipelines.errors import UnreadableFile
from pipelines.judge.turns import system_prompt
from pipelines.llm import prompts
from pipelines.llm.prompts import Prompt, load
from pipelines.trainsets import prompt_sets
from pipelines.trainsets.prompt_sets import cer_system_prompt
from schemas.labels import SENTIMENTS, STAGES, STRATEGIES
from schemas.reasoning import CER_TAGS, COE_TAGS, ECOT_TAGS, Cer, Coe

FOLDER = Path(prompt_sets.__file__).parent / "prompts"
PROMPTS: dict[str, tuple[Prompt, tuple[str, ...]]] = {
    "ecot": (load(FOLDER / "ecot.md"), ECOT_TAGS),
    "coe": (load(FOLDER / "coe.md"), COE_TAGS),
    "cer.zh": (cer_system_prompt("zh"), CER_TAGS),
    "cer.en": (cer_system_prompt("en"), CER_TAGS),
}

COE = Coe(L1="委屈", L2="觉得都怪自己", L3="想被认可", L4="先倾听", answer="抱抱你。\n慢慢来。")


def skeleton(prompt: Prompt) -> str:
    """The format as the prompt shows it, with … for what is to be filled in."""
    [shown] = re.findall(r"^(?:<\w+>){2}.*?</answer>$", prompt.text, flags=re.DOTALL | re.MULTILINE)
    return shown


def filled(shown: str, *words: str) -> str:
    parts = shown.split("…")
    assert len(parts) == len(words) + 1
    return "".join(part + word for part, word in zip(parts, (*words, ""), strict=True))


# --- the format


def test_what_the_prompt_shows_is_what_is_written_and_read():
    reason, english = "他反复说起这件事", "they come back to it again and again"
    labels = {"zh": ("探索", "消极", "委屈", "提问"), "en": ("exploration", "negative", "hurt", "Question")}
    words = {"ecot": (ECOT, tuple(dict(ECOT).values())), "coe": (COE, tuple(dict(COE).values()))}
    for lang, why in (("zh", reason), ("en", english)):
        stage, sentiment, emotion, strategy = labels[lang]
        record = cer(lang)
        words[f"cer.{lang}"] = record, (stage, why, sentiment, emotion, "3", why, strategy, why, record.response)
    assert words.keys() == PROMPTS.keys()
    for name, (record, parts) in words.items():
        text = filled(skeleton(PROMPTS[name][0]), *parts)
        assert text == record.render()
        assert type(record).parse(text) == record


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_every_combination_of_labels_that_the_prompt_offers_is_read(lang: str):
    sets = re.findall(r"(?:从这些里选一个：|is one of: )([^。.]+)[。.]", cer_system_prompt(lang).text)
    names = (re.sub(r"（[^）]+）| \([^)]+\)", "", found) for found in sets)
    stages, sentiments, strategies = (re.split("；|; |、|, ", found) for found in names)
    zh = lang == "zh"
    assert stages == list(STAGES.zh if zh else STAGES.en)
    assert sentiments == list(SENTIMENTS.zh if zh else SENTIMENTS.en)
    assert strategies == list(STRATEGIES.zh if zh else STRATEGIES.en)
    shown = skeleton(cer_system_prompt(lang))
    for places in product(*(range(len(names)) for names in (stages, sentiments, strategies)), range(1, 6)):
        stage, sentiment, strategy, intensity = places
        words = (stages[stage], "r", sentiments[sentiment], "e", str(intensity), "r", strategies[strategy], "r", "a")
        read = Cer.parse(filled(shown, *words))
        assert (read.lang, read.stage, read.sentiment) == (lang, STAGES.en[stage], SENTIMENTS.en[sentiment])
        assert (read.strategy, read.intensity) == (STRATEGIES.en[strategy], intensity)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_policy_generators_and_judges_read_the_same_clauses_on_every_stage_and_strategy(lang: str):
    asking = (
        cer_system_prompt(lang),
        prompts.prompt(f"cer.{lang}", annotate.__file__),
        *(system_prompt(name, "zh" if lang == "zh" else "en") for name in ("rm_process", "rm_unified")),
    )
    for one in asking:
        assert STAGES.explained(lang) in one.text, one.id
        assert STRATEGIES.explained(lang) in one.text, one.id


def test_the_prompt_uses_no_tag_of_another_format_says_what_to_do_in_danger_and_forbids_diagnoses():
    for prompt, names in PROMPTS.values():
        assert set(re.findall(r"</?(\w+)>", prompt.text)) == set(names)  # above all not Qwen3's own <think>
        assert "$" not in prompt.text
        chinese, english = len(re.findall(r"[\u4e00-\u9fff]", prompt.text)), prompt.id == "cer.en"
        assert chinese == 0 if english else chinese > 150
        required = ("crisis line", "emergency", "no diagnosis") if english else ("12356", "120", "不下诊断")
        assert all(words in prompt.text for words in required)


# --- files


def written(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_a_prompt_is_named_by_its_id_and_a_version_that_follows_its_text_filled_in(tmp_path: Path):
    one, same, other, open_one = (
        load(written(tmp_path / f"{n}.md", f"---\nid: x\nversion: 4\nlanguage: zh\n---\n{text}\n"))
        for n, text in enumerate(("帮助他", "帮助他", "帮助她", "从 $names 里选"))
    )
    assert one.text == "帮助他"
    assert one.name == same.name != other.name
    assert re.fullmatch(r"x@4-[0-9a-f]{8}", one.name)
    filled_in, again, otherwise = (open_one.filled(names=names) for names in ("甲、乙", "甲、乙", "甲"))
    assert filled_in.text == "从 甲、乙 里选"
    assert len({open_one.name, filled_in.name, otherwise.name}) == 3
    assert filled_in.name == again.name
    with pytest.raises(KeyError):
        open_one.filled(stages="甲")


def test_a_prompt_without_front_matter_or_text_is_refused(tmp_path: Path):
    front = "---\nid: x\n---\n帮助他", "---\nversion: 1\n---\n帮助他", "---\nid: x\nversion: 1\n---\n \n"
    for content in ("", "帮助他", *front):
        path = written(tmp_path / "x.md", content)
        with pytest.raises(UnreadableFile, match=re.escape(str(path))):
            load(path)
