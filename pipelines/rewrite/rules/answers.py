"""What `rules-v1` answers to the tasks of rewriting: `ANSWERS[task](inputs)` is the text of a reply."""

from collections.abc import Callable, Mapping
from typing import Any

from pipelines.rewrite.rules.disc import reply as disc
from pipelines.rewrite.rules.judging import reply as judging
from pipelines.rewrite.rules.rewriting import reply as rewriting

ANSWERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "disc": disc,
    "rewrite": rewriting,
    "rewrite_judge": judging,
}
