"""What a model is asked, and what comes back: one question a row, one reply a question.

A reply always comes: with a value that the question's own `parse` accepted, or with the reason why there is none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from pipelines.llm.images import Image
from pipelines.llm.prompts import Prompt
from schemas.reasoning import FormatError

T = TypeVar("T")

# Why a reply has no value. They are the reasons of the rows that are dropped for it.
NO_ANSWER = "no_answer"
OVER_BUDGET = "over_budget"
NOT_ASKED_YET = "not_asked_yet"
REASONS = (
    "invalid_reply",  # malformed, or not what was asked for, after all repairs
    "cut_short",  # the model ran into its limit of tokens, after all repairs
    "refused",  # by the vendor's filter or by the model
    NO_ANSWER,  # the request failed on its way, after all tries
    OVER_BUDGET,  # it alone may cost more than the whole budget: it was not sent
    NOT_ASKED_YET,  # the budget was used up before it
)
NOT_WRITTEN = "not_written"  # provider `written` has no reply to it; none of REASONS: nobody was asked
NOT_SAMPLED = "not_sampled"  # the size of the stage has no room for it; nobody was asked
UNPAID = (OVER_BUDGET, NOT_ASKED_YET)
ASKED_AGAIN = (NO_ANSWER, *UNPAID)  # by the next refresh: another day, or another budget, may bring a reply
TOO_LONG = "too_long_for_the_model"  # the detail of a text that is; what else is cut short is the model's own reply

# How many errors of a record a repair names at once.
_MOST_ERRORS = 5


class InvalidReply(ValueError):
    """Raised by a question's `parse` for a reply that is not what was asked for.

    `problem` is a short word for the detail of a drop and holds nothing of the reply; `sentence` (also `str()`) is
    for the model that is to repair it, and for nobody else.
    """

    def __init__(self, problem: str, sentence: str) -> None:
        super().__init__(problem, sentence)  # both, so that it can be pickled
        self.problem = problem
        self.sentence = sentence

    def __str__(self) -> str:
        return self.sentence


class Message(NamedTuple):
    """A message that is sent as it is: a text, or texts and pictures in a row."""

    role: Literal["system", "user", "assistant"]
    content: str | Sequence[str | Image]


class Exchange(NamedTuple):
    """A turn of a conversation that is over: what was asked, as `Question.inputs` is, and what was replied."""

    inputs: Mapping[str, Any]
    reply: str


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """One thing to ask: the system message is `prompt`, the user message the JSON of `inputs`.

    Where it has `messages`, those are sent and nothing else: the prompt gives its name, its language and its hints.
    """

    task: str  # the kind of question
    row_id: str
    prompt: Prompt
    inputs: Mapping[str, Any] = field(repr=False)  # data, never instructions: redacted text, which no traceback shows
    parse: Callable[[str], T]  # reads the reply; raises InvalidReply, FormatError or pydantic's ValidationError
    model: str  # the alias of a profile
    schema: type[BaseModel] | None = None  # the reply is JSON, structured as far as the profile can; None: our tags
    sample: int = 0  # tells several draws of one payload apart
    before: Sequence[Exchange] = field(default=(), repr=False)  # of the conversation
    about: str | None = None  # the id of what is asked about, where that is not `row_id`: all questions of it, or none
    messages: Sequence[Message] = field(default=(), repr=False)  # a conversation, as it is to be sent

    @property
    def images(self) -> tuple[Image, ...]:
        """The pictures of its messages."""
        if not self.messages:
            return ()
        parts = (part for one in self.messages if not isinstance(one.content, str) for part in one.content)
        return tuple(part for part in parts if isinstance(part, Image))

    @property
    def data(self) -> Mapping[str, Any]:
        """All that is told besides the prompt, as JSON: `inputs`, and the messages, a picture by its hash."""
        if not self.messages:
            return self.inputs
        told = [
            [one.role, one.content]
            if isinstance(one.content, str)
            else [one.role, *(part if isinstance(part, str) else {"sha256": part.sha256} for part in one.content)]
            for one in self.messages
        ]
        return {**self.inputs, "messages": told}


@dataclass(frozen=True, slots=True)
class Provenance:
    """What made a row: the columns of `schemas.table.LlmMade`, by name."""

    provider: str
    model_asked: str
    model_served: str | None
    prompt_version: str
    request_key: str
    temperature: float | None = None

    def columns(self) -> dict[str, str | float | None]:
        """From column to value."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """What came back for a question: a `value`, or a `reason`: one of REASONS, NOT_WRITTEN or NOT_SAMPLED."""

    question: Question[T]
    value: T | None = field(repr=False)
    provenance: Provenance  # of the last request that was made for it
    reasoning: str | None = field(default=None, repr=False)  # the model's own chain, apart from the content
    reason: str | None = None
    detail: str | None = None  # problem words and figures, never a text

    @property
    def is_of_the_text(self) -> bool:
        """Whether a filter does not let the text pass, or the model cannot read it whole: so it would be again."""
        return self.reason == "refused" or self.detail == TOO_LONG

    @property
    def may_come_right(self) -> bool:
        """Whether the model has replied with what is no answer, to a text that it could have answered."""
        return self.reason in ("invalid_reply", "cut_short") and not self.is_of_the_text


def read(question: Question[T], text: str) -> T:
    """The value of a reply's text. Raises InvalidReply, whatever kind of error the question's `parse` knows: the
    problem names fields of our record alone, for what else a ValidationError names is the model's text.
    """
    try:
        return question.parse(text)
    except InvalidReply:
        raise
    except RecursionError:
        raise InvalidReply("too_deep", "the reply is nested too deeply") from None
    except FormatError as error:
        raise InvalidReply(f"{error.problem}:{error.tag}", str(error)) from error
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        top = str(errors[0]["loc"][0]) if errors[0]["loc"] else ""
        named = f":{top}" if question.schema is not None and top in question.schema.model_fields else ""
        places = ((".".join(map(str, one["loc"])), one["msg"]) for one in errors[:_MOST_ERRORS])
        sentence = "; ".join(": ".join(filter(None, place)) for place in places)
        raise InvalidReply(errors[0]["type"] + named, sentence) from error
