"""Dialogue benchmarks as tasks of inspect-ai: `inspect eval pipelines/evaluate/tasks/sage.py --model …`, or
`gongqing evaluate … --suite sage`. Nothing else imports inspect-ai. Importing this registers `gongqing/ALIAS`, the
model API that asks our profiles.
"""

from pipelines.evaluate.tasks.esc_eval import esc_eval
from pipelines.evaluate.tasks.model_api import LedgerModel
from pipelines.evaluate.tasks.sage import sage

__all__ = ["LedgerModel", "esc_eval", "sage"]
