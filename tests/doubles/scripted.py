"""An client that answers from a function, for the tasks' tests."""

from collections.abc import Callable, Sequence
from typing import Any

from pipelines.llm.questions import InvalidReply, Provenance, Question, Reply, read
from schemas.ids import digest

Answer = Callable[[Question[Any]], "str | tuple[str, str | None]"]


class Scripted:
    """Answers from a function: a text to be parsed, or a reason and a detail. The rows are a model's, by name."""

    def __init__(self, answers: Answer) -> None:
        self.answers = answers

    def ask(self, questions: Sequence[Question[Any]]) -> list[Reply[Any]]:
        return [self._reply(question, self.answers(question)) for question in questions]

    def _reply(self, question: Question[Any], said: "str | tuple[str, str | None]") -> Reply[Any]:
        about = repr((question.task, question.model, question.prompt.text, sorted(question.inputs.items())))
        made = Provenance("openai", question.model, "served", question.prompt.name, digest(about, 64))
        if isinstance(said, tuple):
            return Reply(question, None, made, reason=said[0], detail=said[1])
        try:
            return Reply(question, read(question, said), made, reasoning="想了想")
        except InvalidReply as error:
            return Reply(question, None, made, reason="invalid_reply", detail=error.problem)
