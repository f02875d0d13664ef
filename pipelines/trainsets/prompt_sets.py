"""The prompt sets of GRPO in verl's Parquet schema (verl 0.9): `grpo_ecot` (M), `grpo_coe` (E), `grpo_cer` (C).

verl hands the reward neither the prompt nor the dialogue, so both stand in `extra_info`, with every reference.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.core.spill import ROWS_AT_ONCE
from pipelines.core.stage import stage
from pipelines.errors import UnreadableFile
from pipelines.llm.prompts import Prompt, load, prompt
from pipelines.llm.tasks import Result, rows
from pipelines.settings import Prompts, Settings
from pipelines.split.eligible import Eligibility, Reference, draw_reference, lacking_media, may_teach
from schemas.dropped import Lost, Row, dropped
from schemas.ids import round_id, stable_int
from schemas.labels import VARIANTS
from schemas.training import PromptSet, SampledRewrites

_HERE = Path(__file__).parent / "prompts"
_CHAT_ROLE = {"seeker": "user", "supporter": "assistant"}


def ecot_prompts(
    posts: pl.DataFrame,
    splits: pl.DataFrame,
    settings: Prompts | None = None,
    seed: int = 0,
    topics: pl.DataFrame | None = None,
) -> Result:
    """M: one prompt a post. Drops, in the unit `post`: not_relevant, under_18, risk, overlong_prompt."""
    return _post_prompts("grpo_ecot", load(_HERE / "ecot.md"), posts, splits, settings or Prompts(), seed, topics)


def coe_prompts(
    posts: pl.DataFrame,
    splits: pl.DataFrame,
    settings: Prompts | None = None,
    seed: int = 0,
    topics: pl.DataFrame | None = None,
) -> Result:
    """E: one prompt a question with answers. Drops, in the unit `post`: not_relevant, no_answer, under_18, risk,
    overlong_prompt.
    """
    return _post_prompts("grpo_coe", coe_system_prompt(), posts, splits, settings or Prompts(), seed, topics)


def cer_prompts(
    turns: pl.DataFrame,
    splits: pl.DataFrame,
    settings: Prompts | None = None,
    rewrites: pl.DataFrame | None = None,
    variants: Collection[str] = VARIANTS,
) -> Result:
    """C: one prompt a sampled round, and one for each rewriting of it.

    Args:
        turns: Rows of `sampled_turns`; `rewrites`: of `sampled_rewrites`, which are learnt from alone.
        variants: Without `none` no training round is asked as it was; held-out ones always are.

    Drops, in the unit `round`: variant_not_wanted, needs_media, under_18, risk, overlong_prompt; of rewritings also
    not_train, and variant_lost: a round of which one variant is lost is lost to all, so that all have as many rows.
    """
    settings = settings or Prompts()
    rewrites = SampledRewrites.create_empty() if rewrites is None else rewrites
    prompts = _PromptRows("grpo_cer", "round", splits, settings, settings.max_tokens_cer)
    for row in turns.iter_rows(named=True):
        row_id = round_id(row["dialogue_id"], row["round"])
        if "none" not in variants and prompts.eligibility.split(row_id, row) == "train":
            prompts.add(Lost("round", row_id, "variant_not_wanted", "none"))
        else:
            prompts.add(_cer_prompt(prompts, row_id, row))
    made: defaultdict[tuple[str, int], dict[str, Row | Lost]] = defaultdict(dict)
    for row in rewrites.iter_rows(named=True):
        row_id = round_id(row["dialogue_id"], row["round"])
        made[row["source_dialogue_id"], row["round"]][row["variant"]] = _cer_prompt(prompts, row_id, row, learnt=True)
    every = sorted(set(rewrites["variant"]))
    for of_round in made.values():
        lacks = [variant for variant in every if isinstance(of_round.get(variant), Lost | None)]
        for one in of_round.values():
            if lacks and not isinstance(one, Lost):
                prompts.add(Lost("round", one["row_id"], "variant_lost", ", ".join(lacks)))
            else:
                prompts.add(one)
    return prompts.result()


def _cer_prompt(prompts: "_PromptRows", row_id: str, row: Row, *, learnt: bool = False) -> Row | Lost:
    if (lack := lacking_media(row, prompts.media)) is not None:
        return Lost("round", row_id, *lack)
    system, reference = cer_system_prompt(row["lang"]), Reference(row["reference"], row_id, 1.0)
    return prompts.prompt(row_id, row, system, row["history"], [row["reference"]], reference, learnt=learnt)


def chat_prompt(system: Prompt, dialogue: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """What a policy is asked, in reinforcement and in the warm start before it: the system prompt, and the turns of a
    dialogue (`role`, `text`) as messages (`role`, `content`), the seeker's as the user's.
    """
    turns = ({"role": _CHAT_ROLE[turn["role"]], "content": turn["text"]} for turn in dialogue)
    return [{"role": "system", "content": system.text}, *turns]


def coe_system_prompt() -> Prompt:
    """E's system prompt."""
    return load(_HERE / "coe.md")


def cer_system_prompt(lang: str) -> Prompt:
    """C's system prompt in the language of the dialogue, with the closed sets filled in."""
    return prompt(f"cer.{lang}", __file__)


def _post_prompts(
    table: str,
    system: Prompt,
    posts: pl.DataFrame,
    splits: pl.DataFrame,
    settings: Prompts,
    seed: int,
    topics: pl.DataFrame | None,
) -> Result:
    prompts = _PromptRows(table, "post", splits, settings, settings.max_tokens)
    relevant = {} if topics is None else dict(topics.select("row_id", "relevant").iter_rows())
    for row in posts.iter_rows(named=True):
        post_id = row["post_id"]
        answers = [answer for answer in row["answers"] if may_teach(answer, allow_risk=settings.allow_risk)]
        if not relevant.get(post_id, True):
            prompts.add(Lost("post", post_id, "not_relevant", "by topics"))
        elif table == "grpo_coe" and not answers:
            lacks = "a question without an answer" if not row["answers"] else "no answer without risk, by an adult"
            prompts.add(Lost("post", post_id, "no_answer", lacks))
        else:
            prompt = prompts.prompt(
                post_id,
                row,
                system,
                [{"role": "seeker", "text": row["text"]}],
                [answer["text"] for answer in answers],
                draw_reference(post_id, answers, seed),
                unjudged=bool(row["doubts"]) and post_id not in relevant,
            )
            prompts.add(prompt)
    return prompts.result()


class _PromptRows:
    """Makes the rows of one prompt set, and collects them and its drops."""

    def __init__(self, table: str, unit: str, splits: pl.DataFrame, settings: Prompts, max_tokens: int) -> None:
        self.table, self.unit = table, unit
        self.eligibility = Eligibility(splits)
        self.allow_risk, self.media = settings.allow_risk, settings.media
        self.max_tokens, self.ruler = max_tokens, ruler(settings.tokenizer)
        self.kept: list[Row] = []
        self.lost: list[Lost] = []
        self._before: list[pl.DataFrame] = []  # of kept ones: columns take less room than rows

    def add(self, prompt: Row | Lost) -> None:
        if isinstance(prompt, Lost):
            self.lost.append(prompt)
            return
        self.kept.append(prompt)
        if len(self.kept) > ROWS_AT_ONCE:
            self._before.append(rows(PromptSet, self.kept))
            self.kept = []

    def prompt(
        self,
        row_id: str,
        row: Row,
        system: Prompt,
        dialogue: list[dict[str, str]],
        references: Sequence[str],
        reference: Reference,
        *,
        unjudged: bool = False,
        learnt: bool = False,
    ) -> Row | Lost:
        """A row of the set, or why there is none; of what is `learnt` from, also where it is held out."""
        of = self.eligibility.exclusion_reason if learnt else self.eligibility.unfit
        exclusion = of(row_id, row | ({"risk": []} if self.allow_risk else {}))
        if exclusion is not None:
            return Lost(self.unit, row_id, *exclusion)
        prompt = chat_prompt(system, dialogue)
        length, limit = self.ruler.length(prompt), self.ruler.limit(self.max_tokens, row["lang"])
        if length > limit:
            return Lost(self.unit, row_id, "overlong_prompt", f"{length} {self.ruler.unit}, at most {limit}")
        split, variant = self.eligibility.split(row_id, row), row.get("variant", "none")
        extra_info = {
            "split": split,
            "index": stable_int(row_id),
            "row_id": row_id,
            "source": row["source"],
            "lang": row["lang"],
            "topic": row["topic"],
            "variant": variant,
            "dialogue": dialogue,
            "references": references,
            "reference_origin": row.get("reference_origin") or row["origin"],
            "reference_id": reference.answer_id,
            "draw_probability": reference.probability,
            "prompt_version": system.name,
            "prompt_length": length,
            "prompt_length_unit": self.ruler.unit,
            "unjudged": unjudged,
        }
        return {
            "row_id": row_id,
            "data_source": f"gongqing/{self.table.removeprefix('grpo_')}",
            "prompt": prompt,
            "ability": "empathetic_support",
            "reward_model": {"style": "rule", "ground_truth": reference.text},
            "extra_info": extra_info,
            "split": split,
            "variant": variant,
        }

    def result(self) -> Result:
        kept = pl.concat([*self._before, rows(PromptSet, self.kept)], rechunk=False)
        return kept, dropped(self.table, self.lost)


# What a prompt needs beside its post: the split of its group, and what a model said of its topic.
_OF_A_POST = {"splits": ("group_id", "group_id", "split"), "topics": ("post_id", "row_id", "relevant")}


@stage(
    "grpo_ecot",
    group="prompts",
    reads=("prompts", "seed"),
    units={"grpo_ecot": {"post": ("unique_posts",)}},
    optional_parents=("topics",),
    by_row=True,
    looks_up=_OF_A_POST,
)
def make_grpo_ecot(
    unique_posts: pl.DataFrame, splits: pl.DataFrame, topics: pl.DataFrame, settings: Settings
) -> Result:
    """`grpo_ecot`: M's prompts."""
    return ecot_prompts(unique_posts, splits, settings.prompts, settings.seed, topics)


@stage(
    "grpo_coe",
    group="prompts",
    reads=("prompts", "seed"),
    units={"grpo_coe": {"post": ("unique_posts",)}},
    optional_parents=("topics",),
    by_row=True,
    looks_up=_OF_A_POST,
)
def make_grpo_coe(unique_posts: pl.DataFrame, splits: pl.DataFrame, topics: pl.DataFrame, settings: Settings) -> Result:
    """`grpo_coe`: E's prompts."""
    return coe_prompts(unique_posts, splits, settings.prompts, settings.seed, topics)


@stage(
    "grpo_cer",
    group="prompts",
    reads=("prompts", "sampling.variants"),
    units={"grpo_cer": {"round": ("sampled_turns", "sampled_rewrites")}},
    optional_parents=("sampled_rewrites",),
    by_row=True,
    looks_up={"splits": ("group_id", "group_id", "split")},
    whole=("sampled_rewrites",),  # of a round with a rewriting lost no other is asked
)
def make_grpo_cer(
    sampled_turns: pl.DataFrame, sampled_rewrites: pl.DataFrame, splits: pl.DataFrame, settings: Settings
) -> Result:
    """`grpo_cer`: C's prompts."""
    return cer_prompts(sampled_turns, splits, settings.prompts, sampled_rewrites, settings.sampling.variants)


# Characters of a token of Qwen's vocabulary, rounded down so that a prompt is rather dropped than cut. An estimate
# of ours, for homes without a tokenizer: verl cuts an overlong prompt on the left, where the format is asked for.
_CHARACTERS_A_TOKEN = {"zh": 1.4, "en": 4.0}


@dataclass(frozen=True)
class Ruler:
    """Measures prompts: by the tokens of a chat template with native thinking off, as verl's filter does, or, without
    a tokenizer, by the characters of all messages. `unit` names what is counted.
    """

    tokenizer: Any = None
    unit: str = "characters"

    def length(self, prompt: list[dict[str, str]]) -> int:
        """The length of a chat prompt."""
        if self.tokenizer is None:
            return sum(len(message["content"]) for message in prompt)
        encoded = self.tokenizer.apply_chat_template(
            prompt, tokenize=True, add_generation_prompt=True, enable_thinking=False, return_dict=True
        )
        return len(encoded["input_ids"])

    def limit(self, max_tokens: int, lang: str) -> int:
        """The greatest length that is `max_tokens` at the most."""
        return max_tokens if self.tokenizer is not None else int(max_tokens * _CHARACTERS_A_TOKEN[lang])


def ruler(tokenizer: Path | None) -> Ruler:
    """The ruler that the settings ask for.

    Raises UnreadableFile where the folder holds no tokenizer with a chat template, or transformers is not installed.
    """
    if tokenizer is None:
        return Ruler()
    try:
        from transformers import AutoTokenizer
    except ModuleNotFoundError as error:
        raise UnreadableFile(
            "a tokenizer is set, but transformers is not installed",
            where=tokenizer,
            hint="pip install 'gongqing[tokenizer]', or leave prompts.tokenizer out",
        ) from error
    try:
        loaded = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True)
    except Exception as error:  # of a damaged file transformers raises what its parsers happen to
        raise UnreadableFile(
            "there is no tokenizer here", where=tokenizer, hint="name a folder with tokenizer.json"
        ) from error
    if not loaded.chat_template:
        raise UnreadableFile(
            "the tokenizer has no chat template", where=tokenizer, hint="use the tokenizer of a chat model"
        )
    return Ruler(loaded, f"tokens of {tokenizer.name}")
