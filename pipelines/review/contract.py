"""What goes to people and what comes back: tasks and labels as JSON lines, version 1 (docs/reviewing.md).

A task is one item for one person, as that person is to see it. Its label names the task and the hash of what was shown:
whoever shows tasks (a spreadsheet, a page, a server) hands both back untouched.
"""

import datetime as dt
import json
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from schemas.ids import digest

VERSION: Literal[1] = 1
Kind = Literal["coe", "cer", "rank", "compare"]
Verdict = Literal["accept", "mend", "reject"]
# Of two texts as they were shown: which is better.
Choice = Literal["first", "second", "both", "neither"]


def _writable(text: str) -> str:
    """A text that any file can hold."""
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("it holds a character that is none")
    return text


Text = Annotated[str, Field(min_length=1), AfterValidator(_writable)]
Comment = Annotated[str, AfterValidator(_writable)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Turn(_Part):
    """One turn of a dialogue."""

    role: Literal["seeker", "supporter"]
    text: Text


class _Content(_Part):
    """What is shown; `suggestion` holds answers that a model suggests, as shown, which the screen marks as such."""

    suggestion: dict[str, Any] | None = None


class CoeContent(_Content):
    """E: a question, the human answer to it, and the chain that leads there."""

    question: Text
    answer: Text
    L1: Text
    L2: Text
    L3: Text
    L4: Text


class CerContent(_Content):
    """C: a dialogue up to the seeker's turn, three steps (closed labels, then the free text), and two replies in the
    order of showing, one of which is the source's.
    """

    history: list[Turn] = Field(min_length=1)
    steps: list[Text] = Field(min_length=3, max_length=3)
    replies: list[Text] = Field(min_length=2, max_length=2)


class RankContent(_Content):
    """Answers of anonymous models to one question, in the order of showing. Two of them are a comparison."""

    question: Text
    answers: list[Text] = Field(min_length=2)


Content = CoeContent | CerContent | RankContent
CONTENTS: dict[Kind, type[_Content]] = {
    "coe": CoeContent,
    "cer": CerContent,
    "rank": RankContent,
    "compare": RankContent,
}


class Task(_Part):
    """One item for one person.

    `item_id` is the row that is judged; `order` says which of the item's texts stands first, second, … in `content`
    (numbers from 0; empty where nothing is shuffled); `shown` is `hash_of` the content.
    """

    version: Literal[1] = VERSION
    kind: Kind
    task_id: Text
    item_id: Text
    annotator: Text
    order: list[int] = []
    shown: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    content: dict[str, Any]

    @model_validator(mode="after")
    def _content_is_of_its_kind_and_hash(self) -> Self:
        content = CONTENTS[self.kind].model_validate(self.content)
        if content.suggestion is not None:
            ANSWERS[self.kind].model_validate(content.suggestion)
        if self.shown != hash_of(self.kind, content.model_dump(exclude_none=True)):
            raise ValueError("`shown` is not the hash of `content`")
        return self


class CoeAnswers(_Part):
    """What a professional says of a chain; `edits` are the new texts of the levels that were mended."""

    verdict: Verdict
    edits: dict[Literal["L1", "L2", "L3", "L4"], Text] = {}
    comment: Comment = ""

    @model_validator(mode="after")
    def _edits_are_of_a_mended_chain(self) -> Self:
        if (self.verdict == "mend") != bool(self.edits):
            raise ValueError("a chain that is mended has edits, and no other has")
        return self


class CerAnswers(_Part):
    """Each step right or wrong, and which reply is better, first and second as shown."""

    step1: bool
    step2: bool
    step3: bool
    preference: Choice
    comment: Comment = ""


class RankAnswers(_Part):
    """The place of each answer as shown, from 1: every place once."""

    places: list[Annotated[int, Field(ge=1)]] = Field(min_length=2)
    comment: Comment = ""

    @model_validator(mode="after")
    def _every_place_once(self) -> Self:
        if sorted(self.places) != list(range(1, len(self.places) + 1)):
            raise ValueError(f"places are a ranking of all, 1 to {len(self.places)}, each once")
        return self


class CompareAnswers(_Part):
    """Which of two answers is better."""

    preference: Choice
    comment: Comment = ""


Answers = CoeAnswers | CerAnswers | RankAnswers | CompareAnswers
ANSWERS: dict[Kind, type[_Part]] = {
    "coe": CoeAnswers,
    "cer": CerAnswers,
    "rank": RankAnswers,
    "compare": CompareAnswers,
}


class Label(_Part):
    """What one person says of one task."""

    version: Literal[1] = VERSION
    kind: Kind
    task_id: Text
    annotator: Text
    shown: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    answers: dict[str, Any]
    seconds: Annotated[float, Field(ge=0)] | None = None
    at: dt.datetime | None = None

    @model_validator(mode="after")
    def _answers_are_of_its_kind(self) -> Self:
        ANSWERS[self.kind].model_validate(self.answers)
        return self

    def read(self) -> Answers:
        """Its answers, by its kind."""
        return ANSWERS[self.kind].model_validate(self.answers)  # type: ignore[return-value]


def hash_of(kind: Kind, content: dict[str, Any]) -> str:
    """16 hex digits that tell what was shown from anything else."""
    return digest(json.dumps([kind, content], ensure_ascii=False, sort_keys=True))
