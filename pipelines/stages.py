"""The stages, in order. Dagster's assets and `refresh` read them from here."""

from collections.abc import Callable

import polars as pl

from pipelines.annotate import cer, coe, coherence, ecot, emotions, topics
from pipelines.annotate.plan import Lost, Plan
from pipelines.clean import clean_dialogues, clean_posts
from pipelines.dedup.search import searching
from pipelines.release import reward_sets, warm_starts
from pipelines.release.labelled import Labelled, labelled
from pipelines.release.prompt_sets import cer_prompts, coe_prompts, ecot_prompts
from pipelines.release.triplets import triplets
from pipelines.rewrite import judging, profiles, rewriting
from pipelines.rewrite.encoding import sentence_encoder
from pipelines.rewrite.material import Material, material, with_scores
from pipelines.rewrite.personas import personas
from pipelines.rewrite.rewritten import rewritten_dialogues, rewritten_rounds
from pipelines.sample.turns import sample_turns
from pipelines.sample.unique import require_training_rows, unique
from pipelines.settings import Rewrite, engine
from pipelines.stage import Inputs, Made, Stage
from schemas.table import Dropped


def _unique(given: Inputs) -> Made:
    with searching(engine(), given.cache) as search:
        made = unique(
            given.rows["clean_posts"],
            given.rows["clean_dialogues"],
            given.standing["splits"],
            given.settings.splits,
            seed=given.settings.seed,
            given_at=" ".join(f"{table}@{version}" for table, version in sorted(given.versions.items())),
            search=search,
        )
    require_training_rows(made, given.settings.splits)
    return made


def _personas(given: Inputs) -> Made:
    fits, found = personas(
        given.rows["disc_profiles"], given.standing["persona_fits"], given.settings.rewrite, given.settings.seed
    )
    return {"persona_fits": (fits, Dropped.create_empty()), "personas": (found, Dropped.create_empty())}


def _material(given: Inputs) -> Material:
    names = ("coherent_dialogues", "splits", "sampled_turns", "cer_candidates", "cer_labels")
    return material(*(given.rows[name] for name in names))


def _rewrite_drafts(given: Inputs, models: tuple[str, ...]) -> Plan:
    settings, found = given.settings.rewrite, _material(given)
    return rewriting.plan(
        found.scripts,
        found.lost,
        with_scores(given.rows["personas"], given.rows["disc_profiles"]),
        settings.variants,
        models,
        seed=given.settings.seed,
        near=_near(settings),
    )


def _rewritten(given: Inputs) -> Made:
    scripts = _material(given).by_id()
    drafts, judgements = given.rows["rewrite_drafts"], given.rows["rewrite_judgements"]
    return {
        "rewritten_dialogues": rewritten_dialogues(drafts, judgements, given.rows["coherent_dialogues"], scripts),
        "rewritten_rounds": rewritten_rounds(
            drafts, judgements, given.rows["cer_candidates"], given.rows["cer_labels"], scripts
        ),
    }


def _near(settings: Rewrite) -> rewriting.Near | None:
    if settings.encoder is None or settings.least_similarity is None:
        return None
    return rewriting.Near(sentence_encoder(settings.encoder), settings.least_similarity)


_LABELLED = ("sampled_turns", "splits", "cer_candidates", "cer_labels", "rewritten_rounds")


def _labelled(given: Inputs) -> tuple[list[Labelled], list[Lost]]:
    return labelled(*(given.rows[name] for name in _LABELLED))


def _verdicts(table: str, make: Callable[..., tuple[pl.DataFrame, pl.DataFrame]]) -> Stage:
    """A set that one of C's reward models learns."""
    return Stage(
        table,
        group="training",
        tables=(table,),
        parents=_LABELLED,
        run=lambda given: {table: make(*_labelled(given), given.settings.seed)},
        modules=("pipelines.release.reward_sets", "pipelines.release.labelled"),
        reads=("seed",),
        units={table: {"candidate": ("cer_labels", "rewritten_rounds")}},
        may_lack=("cer_labels",),
    )


# What the rules answer is code like any other: where it changes, what they made is made anew.
_RULES = "pipelines.annotate.rules.answers"
_REWRITING_RULES = "pipelines.rewrite.rules.answers"

STAGES: tuple[Stage, ...] = (
    Stage(
        "clean_posts",
        group="clean",
        tables=("clean_posts",),
        parents=("raw_posts", "imported_posts"),
        run=lambda given: {
            "clean_posts": clean_posts(
                pl.concat([given.rows["raw_posts"], given.rows["imported_posts"]]),
                given.settings.filters,
                given.settings.cleaning,
            )
        },
        modules=("pipelines.clean.posts",),
        reads=("filters", "cleaning"),
        units={"clean_posts": dict.fromkeys(("post", "answer"), ("raw_posts", "imported_posts"))},
    ),
    Stage(
        "clean_dialogues",
        group="clean",
        tables=("clean_dialogues",),
        parents=("imported_dialogues",),
        run=lambda given: {
            "clean_dialogues": clean_dialogues(
                given.rows["imported_dialogues"], given.settings.filters, given.settings.cleaning
            )
        },
        modules=("pipelines.clean.dialogues",),
        reads=("filters", "cleaning"),
        units={"clean_dialogues": {"dialogue": ("imported_dialogues",)}},
    ),
    Stage(
        "unique",
        group="unique",
        # `splits` is written first: killed after it, the next run finds the groups standing and gives the same rows.
        tables=("splits", "unique_posts", "unique_dialogues"),
        parents=("clean_posts", "clean_dialogues"),
        run=_unique,
        modules=("pipelines.sample.unique",),
        reads=("splits", "seed"),
        units={
            "unique_posts": {"post": ("clean_posts",), "answer": ("clean_posts",)},
            "unique_dialogues": {"dialogue": ("clean_dialogues",)},
        },
        standing={"splits": "all splits are then given anew, and what was held out before may train"},
    ),
    Stage(
        "coherent_dialogues",
        group="annotate",
        tables=("coherent_dialogues",),
        parents=("unique_dialogues",),
        plan=lambda given, models: coherence.plan(given.rows["unique_dialogues"], models),
        asks="annotate.coherence",
        modules=("pipelines.annotate.coherence", _RULES),
        units={"coherent_dialogues": {"dialogue": ("unique_dialogues",)}},
    ),
    Stage(
        "sampled_turns",
        group="sample",
        tables=("sampled_turns",),
        parents=("coherent_dialogues",),
        run=lambda given: {
            "sampled_turns": sample_turns(
                given.rows["coherent_dialogues"], given.settings.sampling, given.settings.seed
            )
        },
        modules=("pipelines.sample.turns",),
        reads=("sampling", "seed"),
        units={"sampled_turns": {"round": ("coherent_dialogues",)}},
    ),
    Stage(
        "topics",
        group="annotate",
        tables=("topics",),
        parents=("unique_posts",),
        plan=lambda given, models: topics.plan(given.rows["unique_posts"], models),
        asks="annotate.topics",
        modules=("pipelines.annotate.topics", _RULES),
        units={"topics": {"post": ("unique_posts",)}},
    ),
    Stage(
        "emotions",
        group="annotate",
        tables=("emotions",),
        parents=("unique_posts",),
        plan=lambda given, models: emotions.plan(given.rows["unique_posts"], models),
        asks="annotate.emotions",
        modules=("pipelines.annotate.emotions", _RULES),
        units={"emotions": dict.fromkeys(("post", "answer"), ("unique_posts",))},
    ),
    Stage(
        "ecot_chains",
        group="annotate",
        tables=("ecot_chains",),
        parents=("unique_posts", "splits", "topics"),
        plan=lambda given, models: ecot.plan(
            given.rows["unique_posts"], given.rows["splits"], given.rows["topics"], models
        ),
        asks="annotate.ecot",
        modules=("pipelines.annotate.ecot", _RULES),
        units={"ecot_chains": {"post": ("unique_posts",)}},
    ),
    Stage(
        "coe_chains",
        group="annotate",
        tables=("coe_chains",),
        parents=("unique_posts", "splits", "topics"),
        plan=lambda given, models: coe.plan(
            given.rows["unique_posts"],
            given.rows["splits"],
            given.rows["topics"],
            models,
            seed=given.settings.seed,
            human_only=given.settings.annotate.human_answers,
        ),
        asks="annotate.coe",
        modules=("pipelines.annotate.coe", _RULES),
        reads=("seed", "annotate.human_answers"),
        units={"coe_chains": {"post": ("unique_posts",)}},
    ),
    Stage(
        "cer_candidates",
        group="annotate",
        tables=("cer_candidates",),
        parents=("sampled_turns", "splits"),
        plan=lambda given, models: cer.plan(given.rows["sampled_turns"], given.rows["splits"], models),
        asks="annotate.cer",
        modules=("pipelines.annotate.cer", _RULES),
        units={"cer_candidates": {"round": ("sampled_turns",)}},
    ),
    Stage(
        "disc_profiles",
        group="rewrite",
        tables=("disc_profiles",),
        parents=("coherent_dialogues", "splits"),
        plan=lambda given, models: profiles.plan(given.rows["coherent_dialogues"], given.rows["splits"], models),
        asks="rewrite.profiling",
        modules=("pipelines.rewrite.profiles", _REWRITING_RULES),
        units={"disc_profiles": {"speaker": ("coherent_dialogues",)}},
    ),
    Stage(
        "personas",
        group="rewrite",
        # The fit is written first: killed after it, the next run finds it standing and gives the same personas.
        tables=("persona_fits", "personas"),
        parents=("disc_profiles",),
        run=_personas,
        modules=("pipelines.rewrite.personas",),
        reads=("rewrite.max_clusters", "rewrite.encoder", "rewrite.drift", "rewrite.fit", "seed"),
        units={"personas": {"profile": ("disc_profiles",)}},
        standing={"persona_fits": "personas are then clustered anew, and most draws move"},
    ),
    Stage(
        "rewrite_drafts",
        group="rewrite",
        tables=("rewrite_drafts",),
        parents=(
            *("coherent_dialogues", "splits", "disc_profiles", "personas"),
            *("sampled_turns", "cer_candidates", "cer_labels"),
        ),
        plan=_rewrite_drafts,
        asks="rewrite.writing",
        modules=("pipelines.rewrite.rewriting", "pipelines.rewrite.material", _REWRITING_RULES),
        reads=("rewrite.variants", "rewrite.encoder", "rewrite.least_similarity", "seed"),
        units={"rewrite_drafts": {"dialogue": ("coherent_dialogues",), "label": ("cer_labels",)}},
        may_lack=("cer_labels",),
    ),
    Stage(
        "rewrite_judgements",
        group="rewrite",
        tables=("rewrite_judgements",),
        parents=("rewrite_drafts", "coherent_dialogues", "splits", "sampled_turns", "cer_candidates", "cer_labels"),
        plan=lambda given, models: judging.plan(given.rows["rewrite_drafts"], _material(given).by_id(), models),
        asks="rewrite.judging",
        modules=("pipelines.rewrite.judging", "pipelines.rewrite.material", _REWRITING_RULES),
        units={"rewrite_judgements": dict.fromkeys(("dialogue", "label"), ("rewrite_drafts",))},
        may_lack=("cer_labels",),
    ),
    Stage(
        "rewritten",
        group="rewrite",
        tables=("rewritten_dialogues", "rewritten_rounds"),
        parents=(
            *("rewrite_drafts", "rewrite_judgements", "coherent_dialogues", "splits"),
            *("sampled_turns", "cer_candidates", "cer_labels"),
        ),
        run=_rewritten,
        modules=("pipelines.rewrite.rewritten", "pipelines.rewrite.material"),
        units={
            "rewritten_dialogues": {"dialogue": ("rewrite_drafts",)},
            "rewritten_rounds": {"label": ("rewrite_drafts",)},
        },
        may_lack=("cer_labels",),
    ),
    Stage(
        "grpo_ecot",
        group="prompts",
        tables=("grpo_ecot",),
        parents=("unique_posts", "splits", "topics"),
        run=lambda given: {
            "grpo_ecot": ecot_prompts(
                given.rows["unique_posts"],
                given.rows["splits"],
                given.settings.prompts,
                given.settings.seed,
                given.rows["topics"],
            )
        },
        modules=("pipelines.release.prompt_sets",),
        reads=("prompts", "seed"),
        units={"grpo_ecot": {"post": ("unique_posts",)}},
    ),
    Stage(
        "grpo_coe",
        group="prompts",
        tables=("grpo_coe",),
        parents=("unique_posts", "splits", "topics"),
        run=lambda given: {
            "grpo_coe": coe_prompts(
                given.rows["unique_posts"],
                given.rows["splits"],
                given.settings.prompts,
                given.settings.seed,
                given.rows["topics"],
            )
        },
        modules=("pipelines.release.prompt_sets",),
        reads=("prompts", "seed"),
        units={"grpo_coe": {"post": ("unique_posts",)}},
    ),
    Stage(
        "grpo_cer",
        group="prompts",
        tables=("grpo_cer",),
        parents=("sampled_turns", "splits"),
        run=lambda given: {
            "grpo_cer": cer_prompts(given.rows["sampled_turns"], given.rows["splits"], given.settings.prompts)
        },
        modules=("pipelines.release.prompt_sets",),
        reads=("prompts",),
        units={"grpo_cer": {"round": ("sampled_turns",)}},
    ),
    Stage(
        "sft_coe",
        group="training",
        tables=("sft_coe",),
        parents=("coe_chains", "unique_posts", "splits"),
        run=lambda given: {
            "sft_coe": warm_starts.coe_samples(
                given.rows["coe_chains"], given.rows["unique_posts"], given.rows["splits"]
            )
        },
        modules=("pipelines.release.warm_starts",),
        units={"sft_coe": {"post": ("coe_chains",)}},
    ),
    Stage(
        "sft_cer",
        group="training",
        tables=("sft_cer",),
        parents=_LABELLED,
        run=lambda given: {"sft_cer": warm_starts.cer_samples(given.rows["cer_candidates"], *_labelled(given))},
        modules=("pipelines.release.warm_starts", "pipelines.release.labelled"),
        units={"sft_cer": {"candidate": ("cer_candidates", "rewritten_rounds")}},
        may_lack=("cer_labels",),
    ),
    Stage(
        "rm_triplets",
        group="training",
        tables=("rm_triplets",),
        parents=("unique_posts", "splits", "topics", "emotions"),
        run=lambda given: {
            "rm_triplets": triplets(
                given.rows["unique_posts"],
                given.rows["splits"],
                given.rows["topics"],
                given.rows["emotions"],
                given.settings.training,
                seed=given.settings.seed,
                human_only=given.settings.annotate.human_answers,
            )
        },
        modules=("pipelines.release.triplets",),
        reads=("training", "seed", "annotate.human_answers"),
        units={"rm_triplets": {"post": ("unique_posts",)}},
    ),
    _verdicts("rm_process", reward_sets.process_samples),
    _verdicts("rm_outcome", reward_sets.outcome_samples),
    _verdicts("rm_unified", reward_sets.unified_samples),
)
