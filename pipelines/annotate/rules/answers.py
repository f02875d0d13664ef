"""What `rules-v1` answers to each task: `ANSWERS[task](inputs)` is the text of a reply."""

from collections.abc import Callable, Mapping
from typing import Any

from pipelines.annotate.rules.cer import reply as cer
from pipelines.annotate.rules.coe import reply as coe
from pipelines.annotate.rules.coherence import reply as coherence
from pipelines.annotate.rules.ecot import reply as ecot
from pipelines.annotate.rules.emotions import reply as emotions
from pipelines.annotate.rules.topics import reply as topics

ANSWERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "coherence": coherence,
    "topics": topics,
    "emotions": emotions,
    "coe": coe,
    "ecot": ecot,
    "cer": cer,
}
