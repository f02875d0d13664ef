"""Every table by its name, in the order in which the data flow."""

from schemas import annotations, calibrations, dialogues, evaluations, personas, posts, reviews, training
from schemas.table import Table

TABLES: dict[str, type[Table]] = {
    "raw_posts": posts.RawPosts,
    "imported_posts": posts.ImportedPosts,
    "imported_dialogues": dialogues.ImportedDialogues,
    "clean_posts": posts.CleanPosts,
    "clean_dialogues": dialogues.CleanDialogues,
    "unique_posts": posts.UniquePosts,
    "unique_dialogues": dialogues.UniqueDialogues,
    "splits": training.Splits,
    "coherent_dialogues": dialogues.CoherentDialogues,
    "topics": annotations.Topics,
    "emotions": annotations.Emotions,
    "sampled_turns": training.SampledTurns,
    "ecot_chains": annotations.EcotChains,
    "coe_chains": annotations.CoeChains,
    "cer_candidates": annotations.CerCandidates,
    "review_tasks": reviews.ReviewTasks,
    "cer_votes": reviews.CerVotes,
    "coe_reviews": reviews.CoeReviews,
    "rankings": reviews.Rankings,
    "cer_labels": annotations.CerLabels,
    "agreements": reviews.Agreements,
    "disc_profiles": personas.DiscProfiles,
    "persona_fits": personas.PersonaFits,
    "personas": personas.Personas,
    "rewrite_drafts": personas.RewriteDrafts,
    "rewrite_judgements": personas.RewriteJudgements,
    "rewritten_dialogues": personas.RewrittenDialogues,
    "rewritten_rounds": personas.RewrittenRounds,
    "sampled_rewrites": training.SampledRewrites,
    "grpo_ecot": training.GrpoEcot,
    "grpo_coe": training.GrpoCoe,
    "grpo_cer": training.GrpoCer,
    "sft_coe": training.SftCoe,
    "sft_cer": training.SftCer,
    "rm_triplets": training.RmTriplets,
    "rm_process": training.RmProcess,
    "rm_outcome": training.RmOutcome,
    "rm_unified": training.RmUnified,
    "calibrations": calibrations.Calibrations,
    "judge_tests": reviews.JudgeTests,
    "rollouts": training.Rollouts,
    "model_answers": evaluations.ModelAnswers,
    "evaluations": evaluations.Evaluations,
}

# Tables with one version a partition: a data set, a source and a day, a run of training, or an evaluation.
PARTITIONED = frozenset(
    {"raw_posts", "imported_posts", "imported_dialogues", "rollouts", "model_answers", "evaluations"}
)
# Tables that their own stage builds upon: nothing can make them again. Each with what its loss means.
STANDING = {
    "splits": "all splits are then given again, and what was held out before may train",
    "persona_fits": "personas are then clustered again, and most draws move",
}
# What is made of a release, and no part of one.
AFTER_RELEASE = frozenset({"rollouts", "model_answers", "evaluations"})
