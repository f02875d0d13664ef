"""GRPO prompts in verl's schema: the dialogue asked about, every reference beside it, nothing that may not train."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl
import pyarrow.dataset
import pyarrow.parquet
import pytest
from accounted import accounted
from scipy.stats import chisquare
from unique_rows import RISK, answer, post, posts, rounds, sampled_round, splits

from pipelines.settings import Prompts
from pipelines.store import Store
from pipelines.trainsets.prompt_sets import cer_prompts, cer_system_prompt, coe_prompts, draw_reference, ecot_prompts
from schemas.ids import stable_int
from schemas.labels import SPLITS, VARIANTS
from schemas.posts import UniquePosts
from schemas.tables import TABLES
from schemas.training import SampledRewrites, SampledTurns

STORY = "最近我和室友吵架了，晚上睡不着觉"
ANSWERED = post(1, STORY, answer("s:1/0", "抱抱你"), topic="人际")
OPENED = ["supporter: 你好", "seeker: 我睡不着", "supporter: 多久了？", "seeker: 一个月"]
TRAIN = splits(g1="train", g2="validation", g3="test")

Make = Callable[..., tuple[pl.DataFrame, pl.DataFrame]]


# Each set with a row that passes, and how its rows are framed.
SETS: dict[str, tuple[Make, Callable[..., pl.DataFrame], dict[str, Any], str]] = {
    "grpo_ecot": (ecot_prompts, posts, ANSWERED, "post"),
    "grpo_coe": (coe_prompts, posts, ANSWERED, "post"),
    "grpo_cer": (cer_prompts, rounds, sampled_round(1, 2, OPENED, "辛苦了"), "round"),
}
each_set = pytest.mark.parametrize("name", SETS)


def made(name: str, *changes: dict[str, Any], settings: Prompts | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The set `name` of one row for each of `changes` (or of its plain row)."""
    make, framed, row, unit = SETS[name]
    frame = framed(*(row | change for change in changes or ({},)))
    return accounted(name, (unit,), [frame], make(frame, TRAIN, settings))


def only(name: str, change: dict[str, Any] | None = None, settings: Prompts | None = None) -> dict[str, Any]:
    kept, _ = made(name, change or {}, settings=settings)
    [row] = kept.to_dicts()
    return row


def refused(name: str, change: dict[str, Any], settings: Prompts | None = None) -> tuple[str, str, str]:
    kept, dropped = made(name, change, settings=settings)
    assert kept.is_empty()
    [(stage, unit, row_id, reason, detail)] = dropped.iter_rows()
    assert (stage, unit) == (name, SETS[name][3])
    return row_id, reason, detail


# --- the prompt


def test_a_post_is_asked_as_it_is_and_a_dialogue_turn_by_turn_in_its_language():
    for name in ("grpo_ecot", "grpo_coe"):
        system, user = only(name)["prompt"]
        assert (system["role"], user) == ("system", {"role": "user", "content": STORY})
    prompt = only("grpo_cer")["prompt"]
    assert [turn["role"] for turn in prompt] == ["system", "assistant", "user", "assistant", "user"]
    assert [turn["content"] for turn in prompt[1:]] == ["你好", "我睡不着", "多久了？", "一个月"]
    assert prompt[0]["content"] == cer_system_prompt("zh").text
    row = only("grpo_cer", {"lang": "en", "history": [{"role": "seeker", "text": "I cannot sleep"}]})
    assert row["prompt"][0]["content"] == cer_system_prompt("en").text
    assert row["extra_info"]["lang"] == "en"


# --- what verl hands to the reward


@each_set
def test_the_dialogue_and_every_reference_are_in_extra_info_and_the_row_can_be_found_again(name: str):
    row, of_round = only(name), name == "grpo_cer"
    extra = row["extra_info"]
    roles = {"seeker": "user", "supporter": "assistant"}
    asked = [{"role": roles[turn["role"]], "content": turn["text"]} for turn in extra["dialogue"]]
    assert asked == row["prompt"][1:]
    assert extra["references"] == ["辛苦了" if of_round else "抱抱你"]
    assert row["reward_model"] == {"style": "rule", "ground_truth": extra["references"][0]}
    assert (extra["reference_id"], extra["draw_probability"]) == ("s:1#2" if of_round else "s:1/0", 1.0)
    assert (extra["source"], extra["topic"]) == ("s", None if of_round else "人际")
    assert row["row_id"] == extra["row_id"] == ("s:1#2" if of_round else "s:1")
    assert row["variant"] == extra["variant"] == "none"
    assert extra["index"] == stable_int(row["row_id"])
    assert extra["prompt_version"].startswith(name.removeprefix("grpo_"))


@each_set
def test_the_split_is_that_of_the_group(name: str):
    of_round = name == "grpo_cer"
    ids = [{"dialogue_id": f"s:{n}"} if of_round else {"post_id": f"s:{n}", "source_id": str(n)} for n in (1, 2, 3)]
    kept, _ = made(name, *(one | {"group_id": f"g{n}"} for n, one in enumerate(ids, 1)))
    assert kept["split"].to_list() == list(SPLITS) == ["train", "validation", "test"]
    assert kept["extra_info"].struct.field("split").to_list() == kept["split"].to_list()


# --- references


def test_without_an_answer_ecot_asks_all_the_same_and_coe_does_not():
    row = only("grpo_ecot", {"answers": []})
    assert row["reward_model"]["ground_truth"] == ""
    extra = row["extra_info"]
    assert (extra["references"], extra["reference_id"], extra["draw_probability"]) == ([], None, None)
    assert refused("grpo_coe", {"answers": []})[:2] == ("s:1", "no_answer")


ROLES = ("member", "professional", "unknown", "professional", "professional")
MIXED = [answer(*one) for one in zip("abcde", "甲乙丙丁戊", ROLES, strict=True)]


def test_every_answer_is_a_reference_and_the_ground_truth_is_a_professionals():
    row = only("grpo_coe", {"answers": MIXED})
    assert row["extra_info"]["references"] == list("甲乙丙丁戊")
    assert row["reward_model"]["ground_truth"] in "乙丁戊"
    assert row["extra_info"]["draw_probability"] == pytest.approx(1 / 3)


def test_it_is_drawn_uniformly():
    for answers, drawable in ((MIXED, "bde"), ([MIXED[0], MIXED[2]], "ac"), (MIXED[:2], "b")):
        drawn = Counter(draw_reference(f"s:{n}", answers)[1] for n in range(6000))
        assert set(drawn) == set(drawable)
        assert len(drawable) == 1 or chisquare(list(drawn.values())).pvalue > 0.001
        text, chosen, probability = draw_reference("s:1", answers)
        assert text in [one["text"] for one in answers if one["answer_id"] == chosen]
        assert probability == pytest.approx(1 / len(drawable))


def test_the_draw_follows_from_seed_and_post_alone():
    ids = [f"s:{n}" for n in range(100)]
    first, same, other = ([draw_reference(one, MIXED, seed)[1] for one in ids] for seed in (0, 0, 1))
    assert first == same != other
    frame = posts(*(post(n, STORY, *MIXED) for n in range(100)))
    kept = {seed: ecot_prompts(frame, TRAIN, seed=seed)[0] for seed in (0, 1)}
    drawn = {seed: [row["reference_id"] for row in kept[seed]["extra_info"]] for seed in kept}
    assert drawn == {0: first, 1: other}


# --- what is kept out


@each_set
def test_signs_of_risk_keep_a_row_out_unless_it_is_allowed_in(name: str):
    row_id, reason, detail = refused(name, {"risk": RISK})
    assert (row_id, reason, detail) == ("s:1#2" if name == "grpo_cer" else "s:1", "risk", "self_harm/suicide")
    assert only(name, {"risk": RISK}, Prompts(allow_risk=True))["prompt"]


def test_no_answer_of_a_minor_or_with_signs_of_risk_is_a_reference_unless_risk_is_allowed():
    fit = answer("s:1/0", "抱抱你")
    for unfit in ({"risk": RISK}, {"under_18": True}):
        other = answer("s:1/1", "我也割过腕") | unfit
        row = only("grpo_coe", {"answers": [other, fit]})
        assert (row["extra_info"]["references"], row["reward_model"]["ground_truth"]) == (["抱抱你"], "抱抱你")
        assert refused("grpo_coe", {"answers": [other]})[1:] == ("no_answer", "no answer without risk, by an adult")
        assert only("grpo_ecot", {"answers": [other]})["extra_info"]["references"] == []
    allowed = only("grpo_coe", {"answers": [answer("s:1/1", "我也割过腕") | {"risk": RISK}]}, Prompts(allow_risk=True))
    assert allowed["extra_info"]["references"] == ["我也割过腕"]


def test_a_round_that_needs_a_clip_is_kept_out_even_where_risk_is_allowed():
    for chosen in (None, Prompts(allow_risk=True)):
        assert refused("grpo_cer", {"needs_media": True, "risk": RISK}, chosen)[:2] == ("s:1#2", "needs_media")


def test_a_round_whose_clips_are_not_needed_is_asked_by_its_text_unless_the_setting_drops_it():
    with_clips = {"has_media": True}
    assert only("grpo_cer", with_clips) == only("grpo_cer")
    detail = "the history holds a clip, and the setting prompts.media drops it"
    assert refused("grpo_cer", with_clips, Prompts(media="drop")) == ("s:1#2", "needs_media", detail)
    assert only("grpo_cer", settings=Prompts(media="drop")) == only("grpo_cer")


@each_set
def test_by_characters_a_prompt_may_be_as_long_as_the_limit_and_no_longer(name: str):
    length = sum(len(turn["content"]) for turn in only(name)["prompt"])
    extra = only(name)["extra_info"]
    assert (extra["prompt_length"], extra["prompt_length_unit"]) == (length, "characters")
    field = "max_tokens_cer" if name == "grpo_cer" else "max_tokens"
    enough = next(tokens for tokens in range(1, 10_000) if int(tokens * 1.4) >= length)
    kept, _ = made(name, settings=Prompts(**{field: enough}))
    assert kept.height == 1
    assert refused(name, {}, Prompts(**{field: enough - 1}))[1:] == (
        "overlong_prompt",
        f"{length} characters, at most {int((enough - 1) * 1.4)}",
    )


def tokenizer(folder: Path) -> Path:
    """One token a word, after white space; the chat template writes each role as a word."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(tokenizer_object=made)
    fast.chat_template = "{% for one in messages %}{{ one.role }} {{ one.content }} {% endfor %}assistant"
    fast.save_pretrained(folder / "words")
    return folder / "words"


@each_set
def test_by_a_real_tokenizer_too(name: str, tmp_path: Path):
    folder = tokenizer(tmp_path)
    words = sum(1 + len(turn["content"].split()) for turn in only(name)["prompt"]) + 1
    field = "max_tokens_cer" if name == "grpo_cer" else "max_tokens"
    extra = only(name, settings=Prompts(tokenizer=folder, **{field: words}))["extra_info"]
    assert (extra["prompt_length"], extra["prompt_length_unit"]) == (words, "tokens of words")
    assert refused(name, {}, Prompts(tokenizer=folder, **{field: words - 1}))[1:] == (
        "overlong_prompt",
        f"{words} tokens of words, at most {words - 1}",
    )


# --- rewritings


def rewrites(*rows: dict[str, Any]) -> pl.DataFrame:
    return SampledRewrites.validate(pl.DataFrame(rows, schema=SampledRewrites.polars_schema()))


def rewrite(number: int, variant: str, **more: Any) -> dict[str, Any]:
    ids = {"dialogue_id": f"s:1~{variant}", "source_dialogue_id": "s:1", "variant": variant}
    return sampled_round(1, number, [f"seeker: 我睡不着{variant}"], f"抱抱{variant}") | ids | more


def cer(*rows: dict[str, Any], variants: tuple[str, ...] = VARIANTS, of: pl.DataFrame | None = None, **settings: Any):
    """The prompts of rewritings, beside those of `of`."""
    turns, again = rounds() if of is None else of, rewrites(*rows)
    made = cer_prompts(turns, TRAIN, Prompts(**settings), again, variants)
    return accounted("grpo_cer", ("round",), [turns, again], made)


def test_a_rewriting_is_asked_beside_its_source_by_its_own_words_and_says_which_variant_it_is():
    source = rounds(sampled_round(1, 2, OPENED, "辛苦了"))
    kept, _ = cer(rewrite(2, "P"), of=source)
    whole = {row["row_id"]: row for row in kept.to_dicts()}
    assert set(whole) == {"s:1#2", "s:1~P#2"}
    row, extra = whole["s:1~P#2"], whole["s:1~P#2"]["extra_info"]
    assert [message["content"] for message in row["prompt"][1:]] == ["我睡不着P"]
    assert (row["variant"], extra["variant"], row["split"]) == ("P", "P", "train")
    assert (extra["references"], row["reward_model"]["ground_truth"]) == (["抱抱P"], "抱抱P")
    assert whole["s:1#2"] == cer_prompts(source, TRAIN)[0].to_dicts()[0]


def test_what_one_variant_loses_all_lose_and_their_source_does_not():
    long, risky, whole = (
        rewrite(1, "R", reference="抱抱"),
        rewrite(2, "P", risk=RISK),
        [rewrite(3, one) for one in "DRP"],
    )
    long["history"] = [{"role": "seeker", "text": "我睡不着" * 2000}]
    rows = [rewrite(1, "D"), long, rewrite(1, "P"), rewrite(2, "D"), rewrite(2, "R"), risky, *whole, rewrite(4, "D")]
    kept, dropped = cer(*rows, of=rounds(sampled_round(1, 2, OPENED, "辛苦了")))
    assert Counter(kept["variant"]) == dict.fromkeys(VARIANTS, 1)
    assert set(kept["row_id"]) == {"s:1#2", *(f"s:1~{one}#3" for one in "DRP")}
    assert {
        (row["row_id"], row["reason"], row["detail"]) for row in dropped.to_dicts() if row["row_id"] != "s:1~R#1"
    } == {
        ("s:1~D#1", "variant_lost", "R"),
        ("s:1~P#1", "variant_lost", "R"),
        ("s:1~D#2", "variant_lost", "P"),
        ("s:1~R#2", "variant_lost", "P"),
        ("s:1~P#2", "risk", "self_harm/suicide"),
        ("s:1~D#4", "variant_lost", "P, R"),  # an erasure may have taken the others
    }
    assert dropped.filter(row_id="s:1~R#1")["reason"].to_list() == ["overlong_prompt"]


def test_no_rewriting_of_a_held_out_dialogue_is_a_prompt_of_any_split():
    rows = [rewrite(n, variant, group_id=f"g{n}") for n in (1, 2, 3) for variant in "DRP"]
    kept, dropped = cer(*rows)
    assert set(kept["row_id"]) == {f"s:1~{one}#1" for one in "DRP"}
    lost = {(row["row_id"], row["reason"], row["detail"]) for row in dropped.to_dicts()}
    splits_of = {2: "validation", 3: "test"}
    assert lost == {(f"s:1~{one}#{n}", "not_train", split) for n, split in splits_of.items() for one in "DRP"}


def test_without_originals_training_rounds_go_and_held_out_ones_stay():
    of = rounds(*(sampled_round(n, 1, OPENED, "辛苦了", group_id=f"g{n}") for n in (1, 2, 3)))
    kept, dropped = cer(rewrite(1, "P"), of=of, variants=("P",))
    assert dict(kept.select("row_id", "split").rows()) == {"s:2#1": "validation", "s:3#1": "test", "s:1~P#1": "train"}
    assert dropped.select("row_id", "reason").rows() == [("s:1#1", "variant_not_wanted")]


# --- laws


@pytest.mark.parametrize("seed", range(2))
def test_whatever_the_schemas_allow_is_accounted_for(seed: int):
    groups = {"group_id": [f"g{n % 3 + 1}" for n in range(30)]}
    for name, table in (("grpo_ecot", UniquePosts), ("grpo_coe", UniquePosts), ("grpo_cer", SampledTurns)):
        make, _, _, unit = SETS[name]
        frame = table.sample(30, generator=dy.random.Generator(seed), overrides=groups)
        before = frame.clone()
        # `history` may end with anybody in a sample, in the real table only with the seeker.
        for chosen in (Prompts(), Prompts(allow_risk=True, max_tokens=10**6, max_tokens_cer=10**6)):
            kept, _ = accounted(name, (unit,), [frame], make(frame, TRAIN, chosen))
        assert kept.height > 0
        assert frame.equals(before)


def test_the_three_files_load_together(tmp_path: Path):
    """verl: files in one `train_files` list must agree on every type."""
    store = Store(tmp_path)
    for name in SETS:
        # Also where a column holds nothing but nulls.
        store.write(name, *made(name, {"answers": []} if name == "grpo_ecot" else {}))
    paths = sorted(str(path) for path in Path(store.storage.uri("")).glob("*/*/rows/*.parquet"))
    assert len(paths) == 3
    schemas = [pyarrow.parquet.read_schema(path).remove_metadata() for path in paths]
    for name, schema in zip(sorted(SETS), schemas, strict=True):
        assert schema.equals(TABLES[name].arrow_schema().remove_metadata())
    assert schemas[0] == schemas[1] == schemas[2]
    table = pyarrow.dataset.dataset(paths, format="parquet").to_table()
    assert sorted(table["data_source"].to_pylist()) == ["gongqing/cer", "gongqing/coe", "gongqing/ecot"]
    assert "large_" not in str(table.schema)
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds["prompt"] == "list<element: struct<role: string, content: string>>"
    assert kinds["reward_model"] == "struct<style: string, ground_truth: string>"
    assert "index: int64" in kinds["extra_info"]
