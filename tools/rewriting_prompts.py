"""The page of the rewriting prompts, as `tools.prompts` makes its own: `python -m tools.rewriting_prompts`."""

import sys
from collections.abc import Iterator

from pipelines import rewrite
from pipelines.llm.prompts import names, prompt
from pipelines.llm.providers.written import WrittenClient
from pipelines.rewrite import profiles, rewriting
from pipelines.rewrite.personas import personas
from pipelines.rewrite.scripts import scripts
from pipelines.settings import Llm, Rewrite
from schemas.tables import TABLES
from tools.prompts import Asked, all_train, page, sample_dialogues

_HEAD = """\
# Prompts of the rewriting

Every prompt of `pipelines/rewrite/prompts`, as it is sent. Made by `python -m tools.rewriting_prompts`; a test
compares. Below stand an input, made from the samples that we invented, and what we wrote to it for the demo, where
there is such. See [prompts.md](prompts.md) for how to read it.
"""


def listing() -> str:
    """The page, as Markdown."""
    return page(_HEAD, [prompt(name, rewrite.__file__) for name in names(rewrite.__file__)], _questions())


def _questions() -> Iterator[Asked]:
    """What is asked before something was rewritten, by what was written before it: each language is its own corpus."""
    for _, dialogues in sample_dialogues().group_by("lang", maintain_order=True):
        splits = all_train(dialogues["group_id"].to_list())
        profiling = profiles.plan(dialogues, splits, (Rewrite().profiling,))
        yield from ((profiles.STAGE, question) for question in profiling.questions)
        found = profiling.finish(WrittenClient(Llm()).ask(profiles.STAGE, profiling.questions))[0]
        _, clustered = personas(found, TABLES["persona_fits"].create_empty(), Rewrite(), 0)
        unlabelled = (TABLES[name].create_empty() for name in ("sampled_turns", "cer_candidates", "cer_labels"))
        sources, lost = scripts(dialogues, splits, *unlabelled)
        scored, models = rewriting.with_scores(clustered, found), (Rewrite().writing,)
        writing = rewriting.plan(list(sources.values()), lost, scored, ("R", "P"), models, seed=0)
        yield from ((rewriting.STAGE, question) for question in writing.questions[:2])


if __name__ == "__main__":
    sys.stdout.write(listing())
