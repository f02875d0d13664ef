"""The page about reviews: its examples are tasks, labels and questions as the code reads them."""

from typing import get_args

from pages import blocks, text_of
from pydantic import BaseModel

from pipelines.review.answers import Known
from pipelines.review.contract import Kind, Label, Task
from pipelines.review.items import ModelQuestion


def test_every_example_is_what_the_page_calls_it():
    examples = blocks("reviewing.md", "json")
    forms: tuple[type[BaseModel], ...] = (Task, ModelQuestion, Known, Label)
    task, _, _, label = [form.model_validate_json(one) for form, one in zip(forms, examples, strict=True)]
    assert isinstance(task, Task)
    assert isinstance(label, Label)
    assert (label.task_id, label.annotator, label.shown) == (task.task_id, task.annotator, task.shown)


def test_every_kind_is_told():
    kinds = get_args(Kind)
    assert len(kinds) == 4
    assert all(text_of("reviewing.md").count(f"| `{kind}` |") == 2 for kind in kinds), "what is judged, and its answers"
