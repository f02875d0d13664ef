"""What can be known to be wrong with those whom a run asks, before it starts."""

import json
import math
from pathlib import Path

from pipelines.errors import RequestError
from pipelines.judge import backend
from pipelines.settings import load
from pipelines.train.embedding import NOTE
from pipelines.train.services import Judge


def require_judge(home: Path, judge: Judge) -> None:
    """Raises RequestError where the judge would not start: an alias without a profile, a host, key or price that is
    missing, no budget for what costs, no recordings to replay.
    """
    backend.require(home, load(home).llm, judge.provider, judge.models.values(), judge.budget)


def require_threshold(encoder: Path) -> None:
    """Raises RequestError for an encoder that E's reward cannot ask: one without T, which we did not train."""
    note = encoder / NOTE
    least = json.loads(note.read_bytes()).get("threshold") if note.exists() else None
    if not isinstance(least, float) or not math.isfinite(least):
        raise RequestError(
            "the encoder has no threshold T, above which an answer fits",
            where=note,
            hint="gongqing train empathy_encoder",
        )
