"""The prompts of a folder, of this one unless told, with the closed sets that they name filled in."""

from functools import cache
from pathlib import Path

from pipelines.llm.prompts import Prompt, load
from schemas.labels import ANSWERABLE_STRATEGIES, EMOTIONS, RISKS, SENTIMENTS, STAGES
from schemas.taxonomy import TAXONOMY

_HERE = Path(__file__).parent / "prompts"


@cache
def prompt(name: str, folder: Path = _HERE) -> Prompt:
    """The prompt in `<name>.md` of `folder`. Only what is a `$name` in it is filled in.

    The version follows what was filled in: another taxonomy is another question, and is asked anew.
    """
    loaded = load(folder / f"{name}.md")
    return loaded.filled(**_SETS[loaded.language])


def names(folder: Path = _HERE) -> tuple[str, ...]:
    """Every prompt that there is."""
    return tuple(sorted(path.stem for path in folder.glob("*.md")))


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
