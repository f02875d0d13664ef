"""Provider `written`: replies that people wrote to the questions of the samples, in the place of a model's.

They are in `samples/written/<stage>.jsonl`, a line each: `task`, `row_id`, `alias`, `sample`, `inputs` (a digest) and
`reply`. A reply belongs to what was asked about, not to how: a better prompt does not lose it, and the same text under
another id finds it. A question without one is `not_written`: its row is counted as dropped, and asked of nobody.
"""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

from pipelines.errors import UnreadableFile
from pipelines.llm.interface import Estimate, ModelEstimate
from pipelines.llm.payload import Request, payload
from pipelines.llm.progress import Tally
from pipelines.llm.providers.pending import ProfileClient
from pipelines.llm.questions import NOT_WRITTEN, InvalidReply, Provenance, Question, Reply, read
from pipelines.settings import ROOT
from schemas.ids import digest

FOLDER = ROOT / "samples" / "written"
# What stands where a model would be named.
WRITTEN = "written"
Key = tuple[str, str, int, str]


class WrittenClient(ProfileClient):
    """Answers with what was written for the samples."""

    provider: Literal["written"] = "written"

    def ask(self, stage: str, questions: Sequence[Question[Any]]) -> list[Reply[Any]]:
        """The replies, in the order of the questions. Raises UnreadableFile for what is no reply to its question."""
        replies, tally = replies_to(stage), Tally(self._progress, stage, len(questions))
        tally.report()
        made = [_reply(stage, question, replies.get(key_of(question))) for question in questions]
        for reply in made:
            tally.reply(reply, cached=True)  # no call is made
        return made

    def estimate(self, stage: str, questions: Sequence[Question[Any]]) -> Estimate:  # noqa: ARG002 - as every client
        """Nothing: it costs nothing."""
        return Estimate.of({WRITTEN: ModelEstimate()} if questions else {})


def key_of(question: Question[Any]) -> Key:
    """What a written reply is found by: the task, the alias, which of several draws, and a digest of the inputs."""
    inputs = {**question.data, "before": question.before} if question.before else question.data
    inputs_digest = digest(json.dumps(inputs, ensure_ascii=False, sort_keys=True), 16)
    return question.task, question.model, question.sample, inputs_digest


@cache
def replies_to(stage: str) -> dict[Key, str]:
    """What was written for a stage; nothing where there is no file. Raises UnreadableFile, which names the line."""
    path = FOLDER / f"{stage}.jsonl"
    if not path.exists():
        return {}
    replies: dict[Key, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            one = json.loads(line)
            replies[one["task"], one["alias"], one["sample"], one["inputs"]] = one["reply"]
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableFile(
                f"no written reply: {type(error).__name__}",
                where=f"{path}, line {number}",
                hint="each line has task, row_id, alias, sample, inputs and reply",
            ) from error
    return replies


def _reply(stage: str, question: Question[Any], text: str | None) -> Reply[Any]:
    key = Request.of(payload(question, None), question.sample).key
    provenance = Provenance("written", WRITTEN, None, question.prompt.name, key)
    if text is None:
        return Reply(question, None, provenance, reason=NOT_WRITTEN)
    try:
        return Reply(question, read(question, text), provenance)
    except InvalidReply as error:
        raise UnreadableFile(
            f"what was written for {question.task} of {question.row_id} is no reply to it: {error.problem}",
            where=FOLDER / f"{stage}.jsonl",
            hint="mend the line: the sentence of its task's prompt that names the form says how",
        ) from None
