"""What `rules-v1` answers to the tasks of judging: `ANSWERS[task](inputs)` is the text of a reply."""

from collections.abc import Callable, Mapping
from typing import Any

from pipelines.judge.mindchat import TASK
from pipelines.judge.rules.mindchat import reply as mindchat
from pipelines.judge.rules.unified import reply as unified
from pipelines.judge.unified import OUTCOME, PROCESS, UNIFIED

ANSWERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    TASK: mindchat,
    **dict.fromkeys((UNIFIED, PROCESS, OUTCOME), unified),
}
