"""The page of the rewriting prompts, as `annotate.listing` makes its own: `python -m tools.rewriting_prompts`."""

import sys
from collections.abc import Iterator

import polars as pl

from pipelines import rewrite
from pipelines.annotate import coherence
from pipelines.annotate.rules.answers import ANSWERS as ANNOTATING
from pipelines.llm.label_sets import names
from pipelines.llm.providers.rules import RulesClient
from pipelines.llm.tasks import Plan
from pipelines.rewrite import judging, profiles, rewriting
from pipelines.rewrite.material import material, with_scores
from pipelines.rewrite.personas import personas
from pipelines.rewrite.rules.answers import ANSWERS
from pipelines.settings import Rewrite
from schemas.tables import TABLES
from tools.prompts import Asked, all_train, page, sample_dialogues

_HEAD = """\
# Prompts of the rewriting

Every prompt of `pipelines/rewrite/prompts`, as it is sent. Made by `python -m tools.rewriting_prompts`; a test
compares. Below each stand an input, made from the samples that we invented, and what provider `rules` replies to it: no
model, so an example of the form and a baseline, not of what a model writes. See [prompts.md](prompts.md) for how to
read it.
"""
_MODEL = ("rules-v1",)


def listing() -> str:
    """The page, as Markdown."""
    return page(_HEAD, [f"rewrite.{name}" for name in names(rewrite.__file__)], _questions(), ANSWERS)


def _questions() -> Iterator[Asked]:
    """A question of each prompt, with what the rules made before it: each language is a corpus of its own."""
    for _, some in sample_dialogues().group_by("lang", maintain_order=True):
        dialogues = _made(coherence.plan(some, _MODEL))
        splits = all_train(dialogues["group_id"].to_list())
        profiling = profiles.plan(dialogues, splits, _MODEL)
        yield profiles.STAGE, profiling.questions[0]
        found = _made(profiling)
        _, clustered = personas(found, TABLES["persona_fits"].create_empty(), Rewrite(), 0)
        unlabelled = (TABLES[name].create_empty() for name in ("sampled_turns", "cer_candidates", "cer_labels"))
        scripts = material(dialogues, splits, *unlabelled)
        writing = rewriting.plan(
            scripts.scripts,
            scripts.lost,
            with_scores(clustered, found),
            ("R", "P"),
            _MODEL,
            seed=0,
        )
        yield from ((rewriting.STAGE, question) for question in writing.questions[:2])
        yield judging.STAGE, judging.plan(_made(writing), scripts.by_id(), _MODEL).questions[0]


def _made(plan: Plan) -> pl.DataFrame:
    return plan.finish(RulesClient({**ANNOTATING, **ANSWERS}).ask("samples", plan.questions))[0]


if __name__ == "__main__":
    sys.stdout.write(listing())
