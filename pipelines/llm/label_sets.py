"""The prompts beside a module, with the closed sets that they name filled in."""

from functools import cache
from pathlib import Path

from pipelines.llm.prompts import Prompt, load
from schemas.labels import ANSWERABLE_STRATEGIES, EMOTIONS, RISKS, SENTIMENTS, STAGES
from schemas.taxonomy import TAXONOMY


@cache
def prompt(name: str, module: str) -> Prompt:
    """The prompt `prompts/<name>.md` beside a module (its `__file__`). Only what is a `$name` in it is filled in.

    The version follows what was filled in: another taxonomy is another question, and is asked again.
    """
    loaded = load(Path(module).parent / "prompts" / f"{name}.md")
    return loaded.filled(**_SETS[loaded.language])


def names(module: str) -> tuple[str, ...]:
    """Every prompt beside a module, named by its `__file__`."""
    return tuple(sorted(path.stem for path in (Path(module).parent / "prompts").glob("*.md")))


_SETS = {
    "zh": {
        "stages": "、".join(STAGES.zh),
        "sentiments": "、".join(SENTIMENTS.zh),
        "strategies": "、".join(label.zh for label in ANSWERABLE_STRATEGIES),
        "emotions": "、".join(EMOTIONS.zh),
        "risks": "、".join(RISKS),
        "taxonomy": "\n".join(f"- {topic}：{'、'.join(subtopics)}" for topic, subtopics in TAXONOMY.items()),
    },
    "en": {
        "stages": ", ".join(STAGES.en),
        "sentiments": ", ".join(SENTIMENTS.en),
        "strategies": ", ".join(label.en for label in ANSWERABLE_STRATEGIES),
    },
}
