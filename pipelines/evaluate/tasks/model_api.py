"""Our models as a model API of inspect-ai: `gongqing/ALIAS` is a profile, asked through the ledger.

So what was paid for once is never paid again, a budget holds, and recordings replay; inspect's own cache stays off.
"""

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from contextvars import ContextVar
from decimal import Decimal
from typing import Any, NamedTuple

from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput, modelapi
from inspect_ai.tool import ToolChoice, ToolInfo

from pipelines.errors import GongqingError, RequestError
from pipelines.evaluate.answering import STAGE
from pipelines.judge.backend import JudgeBackend, open_backend
from pipelines.llm.prompts import Prompt
from pipelines.llm.questions import Message, Question
from pipelines.settings import home, load
from schemas.ids import digest

TASK = "dialogue_turn"


class _Opened(NamedTuple):
    backend: JudgeBackend
    ended: list[GongqingError]  # what has ended all asking: inspect would fail a sample for it, and go on


_opened: ContextVar[_Opened | None] = ContextVar("opened", default=None)


@contextmanager
def asked_through(backend: JudgeBackend) -> Iterator[None]:
    """Models of this API ask through a backend that is open already, so that all of them spend from one budget. Raises
    at its end what has ended all asking, as a budget that is used up.
    """
    opened = _Opened(backend, [])
    token = _opened.set(opened)
    try:
        yield
    finally:
        _opened.reset(token)
    if opened.ended:
        raise opened.ended[0]


@modelapi(name="gongqing")
class LedgerModel(ModelAPI):
    """A model profile. How it is asked (temperature, length) is what the profile says; `config.seed` tells several
    draws of one conversation apart.

    Without a backend that is open it opens one, of the home that GONGQING_HOME names: `-M provider=replay`, or
    `-M budget=5`.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - as inspect calls it
        provider: str = "openai",
        budget: float | None = None,
        **other: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        if other or base_url or api_key:
            raise RequestError(
                f"a profile takes no {', '.join([*other, *(['base_url'] if base_url else [])]) or 'api_key'}",
                where=f"gongqing/{model_name}",
                hint="-M provider=openai or replay, -M budget=AMOUNT; where it is served stands in the profile",
            )
        self._provider, self._budget = provider, None if budget is None else Decimal(str(budget))
        self._stack = AsyncExitStack()
        self._own: JudgeBackend | None = None

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,  # noqa: ARG002 - as inspect calls it
        config: GenerateConfig,
    ) -> ModelOutput:
        """Asks, or reads the ledger. Raises NoVerdict where there is no reply after all tries: the sample fails then,
        and nothing is scored in its place.
        """
        messages = [Message(one.role, one.text) for one in input if one.role != "tool"]
        if tools or len(messages) < len(input):
            raise RequestError("a model of gongqing is given no tools", hint="these tasks need none")
        shared = _opened.get()
        if shared is not None and shared.ended:
            raise shared.ended[0]
        backend = await self._open() if shared is None else shared.backend
        about = digest("\n".join(f"{one.role}: {one.content}" for one in messages))
        question: Question[str] = Question(
            task=TASK,
            row_id=about,
            prompt=Prompt("inspect", "1", "a conversation as it stands"),
            inputs={},
            parse=str,
            model=self.model_name,
            messages=messages,
            sample=config.seed or 0,
        )
        try:
            text: str = await backend.ask(question)
        except GongqingError as error:
            if shared is not None:
                shared.ended.append(error)
            raise
        return ModelOutput.from_content(self.model_name, text)

    async def aclose(self) -> None:
        """Closes what it opened."""
        await self._stack.aclose()

    async def _open(self) -> JudgeBackend:
        if self._own is None:
            self._own = await self._stack.enter_async_context(
                open_backend(
                    home(),
                    load(home()).llm,
                    self._provider,
                    {TASK: self.model_name},
                    budget=self._budget,
                    budget_of=f"inspect {self.model_name}",
                    stage=STAGE,
                )
            )
        return self._own
