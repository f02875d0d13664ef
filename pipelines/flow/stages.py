"""The stages, in order. Dagster's assets and `refresh` read them from here; each is described beside its function."""

from collections.abc import Callable
from typing import Any

from pipelines.annotate import cer, coe, coherence, ecot, emotions, topics
from pipelines.clean.dialogues import make_clean_dialogues
from pipelines.clean.posts import make_clean_posts
from pipelines.core.stage import Stage
from pipelines.dedup.unique import make_unique
from pipelines.review.agreement import make_agreements
from pipelines.rewrite.judging import plan_rewrite_judgements
from pipelines.rewrite.personas import make_personas
from pipelines.rewrite.profiles import plan_disc_profiles
from pipelines.rewrite.rewriting import plan_rewrite_drafts
from pipelines.rewrite.rewritten import make_rewritten
from pipelines.split.turns import make_sampled_rewrites, make_sampled_turns
from pipelines.trainsets.prompt_sets import make_grpo_cer, make_grpo_coe, make_grpo_ecot
from pipelines.trainsets.reward_sets import make_rm_outcome, make_rm_process, make_rm_unified
from pipelines.trainsets.triplets import make_rm_triplets
from pipelines.trainsets.warm_starts import make_sft_cer, make_sft_coe

_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(make_clean_posts, make_clean_dialogues, make_unique),
    *(coherence.plan_coherent_dialogues, make_sampled_turns),
    *(topics.plan, emotions.plan, ecot.plan, coe.plan_coe_chains, cer.plan),
    make_agreements,
    *(plan_disc_profiles, make_personas, plan_rewrite_drafts, plan_rewrite_judgements, make_rewritten),
    make_sampled_rewrites,
    *(make_grpo_ecot, make_grpo_coe, make_grpo_cer),
    *(make_sft_coe, make_sft_cer, make_rm_triplets, make_rm_process, make_rm_outcome, make_rm_unified),
)

STAGES: tuple[Stage, ...] = tuple(function.stage for function in _FUNCTIONS)  # type: ignore[attr-defined]
MAKERS = {table: stage for stage in STAGES for table in stage.tables}
