"""Provider `rules`: functions that answer by themselves. No model, no ledger, nothing that is sent."""

from collections.abc import Sequence
from typing import Any, Literal

from pipelines.errors import UnknownName
from pipelines.llm.interface import Answers, Estimate, ModelEstimate
from pipelines.llm.payload import RULES, Request, payload
from pipelines.llm.progress import Progress, Told
from pipelines.llm.questions import InvalidReply, Provenance, Question, Reply, read


class RulesClient:
    """Answers by the rules of each task. The key is that of the payload that a model would be sent."""

    provider: Literal["rules"] = "rules"

    def __init__(self, rules: Answers, progress: Progress | None = None) -> None:
        self._rules = rules
        self._progress = progress

    def models(self, wanted: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002 - as every client
        """The rules stand in for all models together: several of them would say the same."""
        return (RULES,)

    def ask(self, stage: str, questions: Sequence[Question[Any]]) -> list[Reply[Any]]:
        """The replies, in the order of the questions.

        Raises UnknownName for a task without rules, RuntimeError for an answer that its own question does not accept:
        that is a bug of the rules.
        """
        told = Told(self._progress, stage, len(questions))
        told.now()
        replies = []
        for question in questions:
            replies.append(self._reply(question))
            told.reply(replies[-1], cached=True)  # no call is made
        return replies

    def estimate(self, stage: str, questions: Sequence[Question[Any]]) -> Estimate:  # noqa: ARG002 - as every client
        """Nothing: the rules cost nothing."""
        return Estimate.of({RULES: ModelEstimate()} if questions else {})

    def _reply(self, question: Question[Any]) -> Reply[Any]:
        if question.task not in self._rules:
            raise UnknownName("task of the rules", question.task, self._rules)
        try:
            value = read(question, self._rules[question.task](question.told))
        except InvalidReply as error:
            raise RuntimeError(
                f"{RULES} answers {question.task} of {question.row_id} with what is none: {error.problem}"
            ) from None  # the sentence may quote the text
        key = Request.of(payload(question, None), question.sample).key
        return Reply(question, value, Provenance("rules", RULES, None, question.prompt.name, key))
