"""The prompt sets of GRPO in verl's Parquet schema (verl 0.9): `grpo_ecot` (M), `grpo_coe` (E), `grpo_cer` (C).

verl hands the reward neither the prompt nor the dialogue, so both stand in `extra_info`, with every reference.
"""

from pathlib import Path
from typing import Any

import polars as pl

from pipelines.core.stage import stage
from pipelines.errors import RequestError
from pipelines.llm.prompts import Prompt, load
from pipelines.settings import Prompts, Settings
from pipelines.split.references import Reference, draw_reference, may_teach
from pipelines.trainsets.lengths import Ruler, ruler
from schemas.ids import round_id, stable_int
from schemas.labels import ANSWERABLE_STRATEGIES, SENTIMENTS, STAGES
from schemas.table import Dropped
from schemas.training import PromptSet

_HERE = Path(__file__).parent / "prompts"
_SPEAKS_AS = {"seeker": "user", "supporter": "assistant"}

Row = dict[str, Any]
Result = tuple[pl.DataFrame, pl.DataFrame]


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


def cer_prompts(turns: pl.DataFrame, splits: pl.DataFrame, settings: Prompts | None = None) -> Result:
    """C: one prompt a sampled round. Drops, in the unit `round`: needs_media, under_18, risk, overlong_prompt."""
    settings = settings or Prompts()
    measure = ruler(settings.tokenizer)
    sets = _Builder("grpo_cer", "round", splits, settings, settings.max_tokens_cer, measure)
    for row in turns.iter_rows(named=True):
        row_id = round_id(row["dialogue_id"], row["round"])
        if row["needs_media"]:
            sets.drop(row_id, "needs_media", "the history holds a clip that text does not replace")
            continue
        sets.add(
            row_id,
            row,
            cer_system_prompt(row["lang"]),
            row["history"],
            references=[row["reference"]],
            reference=Reference(row["reference"], row_id, 1.0),
        )
    return sets.result()


def coe_system_prompt() -> Prompt:
    """E's system prompt."""
    return load(_HERE / "coe.md")


def cer_system_prompt(lang: str) -> Prompt:
    """C's system prompt in the language of the dialogue, with the closed sets filled in."""
    zh = lang == "zh"
    return load(_HERE / f"cer.{lang}.md").filled(
        stages=_listed(STAGES.zh if zh else STAGES.en, zh),
        sentiments=_listed(SENTIMENTS.zh if zh else SENTIMENTS.en, zh),
        strategies=_listed([label.zh if zh else label.en for label in ANSWERABLE_STRATEGIES], zh),
    )


def _listed(names: tuple[str, ...] | list[str], zh: bool) -> str:
    return ("、" if zh else ", ").join(names)


def _post_prompts(
    table: str,
    prompt: Prompt,
    posts: pl.DataFrame,
    splits: pl.DataFrame,
    settings: Prompts,
    seed: int,
    topics: pl.DataFrame | None,
) -> Result:
    sets = _Builder(table, "post", splits, settings, settings.max_tokens, ruler(settings.tokenizer))
    relevant = {} if topics is None else dict(topics.select("row_id", "relevant").iter_rows())
    for row in posts.iter_rows(named=True):
        if not relevant.get(row["post_id"], True):
            sets.drop(row["post_id"], "not_relevant", "by topics")
            continue
        answers = [answer for answer in row["answers"] if may_teach(answer, allow_risk=settings.allow_risk)]
        if table == "grpo_coe" and not answers:
            told = "a question without an answer" if not row["answers"] else "no answer without risk, by an adult"
            sets.drop(row["post_id"], "no_answer", told)
            continue
        sets.add(
            row["post_id"],
            row,
            prompt,
            [{"role": "seeker", "text": row["text"]}],
            references=[answer["text"] for answer in answers],
            reference=draw_reference(row["post_id"], answers, seed),
            unjudged=bool(row["doubts"]) and row["post_id"] not in relevant,
        )
    return sets.result()


class _Builder:
    """Collects the rows and drops of one prompt set."""

    def __init__(
        self, table: str, unit: str, splits: pl.DataFrame, settings: Prompts, max_tokens: int, measure: Ruler
    ) -> None:
        self.table, self.unit = table, unit
        self.split_of = dict(splits.select("group_id", "split").iter_rows())
        self.settings, self.max_tokens, self.ruler = settings, max_tokens, measure
        self.kept: list[Row] = []
        self.dropped: list[Row] = []

    def drop(self, row_id: str, reason: str, detail: str) -> None:
        self.dropped.append(
            {"stage": self.table, "unit": self.unit, "row_id": row_id, "reason": reason, "detail": detail}
        )

    def add(
        self,
        row_id: str,
        row: Row,
        system: Prompt,
        dialogue: list[dict[str, str]],
        references: list[str],
        reference: Reference,
        *,
        unjudged: bool = False,
    ) -> None:
        if row["under_18"]:
            return self.drop(row_id, "under_18", "the writer says to be younger than 18")
        if row["risk"] and not self.settings.allow_risk:
            rules = ", ".join(f"{sign['kind']}/{sign['rule']}" for sign in row["risk"])
            return self.drop(row_id, "risk", rules)
        prompt = [
            {"role": "system", "content": system.text},
            *({"role": _SPEAKS_AS[turn["role"]], "content": turn["text"]} for turn in dialogue),
        ]
        length, limit = self.ruler.length(prompt), self.ruler.limit(self.max_tokens, row["lang"])
        if length > limit:
            return self.drop(row_id, "overlong_prompt", f"{length} {self.ruler.unit}, at most {limit}")
        text, reference_id, probability = reference
        split = self.split_of.get(row["group_id"])
        if split is None:
            raise RequestError(
                f"the group of {row_id} has no split",
                where="splits",
                hint="an older version of it was promoted: gongqing refresh, without --select",
            )
        self.kept.append(
            {
                "row_id": row_id,
                "data_source": f"gongqing/{self.table.removeprefix('grpo_')}",
                "prompt": prompt,
                "ability": "empathetic_support",
                "reward_model": {"style": "rule", "ground_truth": text},
                "extra_info": {
                    "split": split,
                    "index": stable_int(row_id),
                    "row_id": row_id,
                    "source": row["source"],
                    "lang": row["lang"],
                    "topic": row["topic"],
                    "dialogue": dialogue,
                    "references": references,
                    "reference_origin": row.get("reference_origin") or row["origin"],
                    "reference_id": reference_id,
                    "draw_probability": probability,
                    "prompt_version": system.name,
                    "prompt_length": length,
                    "prompt_length_unit": self.ruler.unit,
                    "unjudged": unjudged,
                },
                "split": split,
            }
        )
        return None

    def result(self) -> Result:
        return (
            pl.DataFrame(self.kept, schema=PromptSet.polars_schema()),
            pl.DataFrame(self.dropped, schema=Dropped.polars_schema()),
        )


@stage(
    "grpo_ecot",
    group="prompts",
    reads=("prompts", "seed"),
    units={"grpo_ecot": {"post": ("unique_posts",)}},
    optional_parents=("topics",),
)
def make_grpo_ecot(
    unique_posts: pl.DataFrame, splits: pl.DataFrame, topics: pl.DataFrame, settings: Settings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`grpo_ecot`: M's prompts."""
    return ecot_prompts(unique_posts, splits, settings.prompts, settings.seed, topics)


@stage(
    "grpo_coe",
    group="prompts",
    reads=("prompts", "seed"),
    units={"grpo_coe": {"post": ("unique_posts",)}},
    optional_parents=("topics",),
)
def make_grpo_coe(
    unique_posts: pl.DataFrame, splits: pl.DataFrame, topics: pl.DataFrame, settings: Settings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`grpo_coe`: E's prompts."""
    return coe_prompts(unique_posts, splits, settings.prompts, settings.seed, topics)


@stage("grpo_cer", group="prompts", reads=("prompts",), units={"grpo_cer": {"round": ("sampled_turns",)}})
def make_grpo_cer(
    sampled_turns: pl.DataFrame, splits: pl.DataFrame, settings: Settings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`grpo_cer`: C's prompts."""
    return cer_prompts(sampled_turns, splits, settings.prompts)
