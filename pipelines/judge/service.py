"""The judge as a separate process, which the reward workers of a run of training ask.

    python -m pipelines.judge.service --provider openai --model qwen-plus --budget 20 --at-once 32

Prints ``{"address": "http://127.0.0.1:PORT/TOKEN"}`` when it is ready; others of this machine do not know the token,
and get 404. It ends with its standard input: its parent holds the other end, and however that dies it closes. A
line ``end`` before that says that the work is done, and closes the budget; else the next service goes on with what
this one had spent.

POST /mindchat and /compeer take a judgement's request and give its result, ``{"ok": true, …}`` or ``{"ok": false,
"problem": …}``; 400 for a request of another form. When the judge has failed or refused too often, or nothing more can
be asked, every answer is 503 ``{"stop": …}``. GET /about says who judges, and how often it failed and refused.
"""

import argparse
import asyncio
import json
import secrets
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from aiohttp import web
from pydantic import BaseModel, Field, PositiveFloat, PositiveInt, ValidationError

from pipelines import settings
from pipelines.core.modes import keep_private
from pipelines.core.service import over
from pipelines.errors import GongqingError, Interrupted
from pipelines.judge.backend import JudgeBackend, NoVerdict, Refused, open_backend
from pipelines.judge.judging import MINDCHAT, OUTCOME, PROCESS, UNIFIED, Mode, judge, scoring_question
from pipelines.judge.turns import Case, reference_first
from pipelines.llm.failures import Excess, Failures, Outcome

_LARGEST = 1 << 24  # bytes of a request
_GRACE = 2.0  # seconds that open requests have at the end
Result = dict[str, Any]


class Options(BaseModel):
    """The options of the command line, by name."""

    home: Path = Field(default_factory=settings.home, description="where ledger and settings are (GONGQING_HOME)")
    provider: Literal["openai", "replay"] = Field("openai", description="who judges: openai or replay")
    model: str = Field(description="alias of a profile")
    model_process: str | None = Field(None, description="alias of the one that judges steps in mode apart (--model)")
    model_outcome: str | None = Field(None, description="alias of the one that judges responses in mode apart")
    mode: Mode = Field("unified", description="how /compeer asks: unified or apart")
    failures: float = Field(0.05, ge=0, le=1, description="share of failures that is allowed; ours")
    budget: Decimal | None = Field(None, description="the most that may be spent, in the profile's currency")
    budget_of: str = Field("judge", description="whose budget that is")
    at_once: PositiveInt | None = Field(None, description="the most calls in flight, of all workers (the profile's)")
    timeout: PositiveFloat = Field(120.0, description="seconds that one call may take; ours")
    attempts: PositiveInt = Field(3, description="how often a call that failed is made; ours")
    seed: int | None = Field(None, description="of the reference's place (the settings')")


class Turn(BaseModel):
    """A turn of a dialogue; its other columns are ignored."""

    role: Literal["seeker", "supporter"]
    text: str


class ToJudge(BaseModel, extra="forbid", strict=True):
    """What every request says."""

    row_id: str
    lang: Literal["zh", "en"]
    dialogue: list[Turn] = Field(min_length=1)


class ToScore(ToJudge):
    """POST /mindchat."""

    answer: str


class ToCompare(ToJudge):
    """POST /compeer; null: missing in the candidate."""

    steps: list[str | None] = Field(min_length=3, max_length=3)
    response: str | None
    reference: str


class Service:
    """Judges, and stops judging."""

    def __init__(self, backend: JudgeBackend, *, mode: Mode, seed: int, limit: float) -> None:
        """`seed` draws the place of the reference; `limit` is the share of failures that is allowed."""
        self._backend, self._mode, self._seed = backend, mode, seed
        self._failures = Failures(limit)
        self._stop: str | None = None

    def app(self, token: str) -> web.Application:
        """The aiohttp application, below `token`."""
        app = web.Application(client_max_size=_LARGEST)
        app.router.add_post(f"/{token}/mindchat", self._judging(ToScore, self._scored))
        app.router.add_post(f"/{token}/compeer", self._judging(ToCompare, self._compared))
        app.router.add_get(f"/{token}/about", self._about)
        return app

    async def _scored(self, body: ToScore) -> Result:
        dialogue = [turn.model_dump() for turn in body.dialogue]
        model = self._backend.models[MINDCHAT]
        scores = await self._backend.ask(scoring_question(body.row_id, body.lang, dialogue, body.answer, model))
        return {
            "fluency": scores.fluency_comfort,
            "empathy": scores.empathic_understanding,
            "support": scores.support_encouragement,
            "words": scores.why,
        }

    async def _compared(self, body: ToCompare) -> Result:
        dialogue = [turn.model_dump() for turn in body.dialogue]
        first = reference_first(body.row_id, self._seed)
        case = Case(dialogue, body.steps, body.response, body.reference, first)
        verdict = await judge(body.row_id, body.lang, case, self._backend.models, self._backend.ask, self._mode)
        return verdict._asdict()

    def _judging(self, form: type[Any], judged: Callable[[Any], Awaitable[Result]]) -> Any:
        async def handle(request: web.Request) -> web.Response:
            try:
                body = form.model_validate_json(await request.read())
            except ValidationError as error:
                return web.json_response({"problem": _problem(error)}, status=400)
            answer = {} if self._stop else await self._try(judged, body)
            if self._stop:
                return web.json_response({"stop": self._stop}, status=503)
            return web.json_response(answer)

        return handle

    async def _try(self, judged: Callable[[Any], Awaitable[Result]], body: Any) -> Result:
        outcome: Outcome = "judged"
        try:
            answer: Result = {"ok": True, **await judged(body)}
        except NoVerdict as error:
            outcome = "refused" if isinstance(error, Refused) else "failed"
            answer = {"ok": False, "problem": str(error)}
        except GongqingError as error:
            self._stop = self._stop or str(error)
            return {}
        self._failures.count(outcome)
        if self._stop is None and (excess := self._failures.excess) is not None:
            what, hint = stop_reason(excess, self._failures.limit)
            models = ", ".join(dict.fromkeys(self._backend.models.values()))
            where = f"provider {self._backend.provider}, model {models}"
            last = answer.get("problem", "not at the last one")
            self._stop = str(GongqingError(f"{what} ({last})", where=where, hint=hint))
        return answer

    async def _about(self, _: web.Request) -> web.Response:
        return web.json_response(
            {
                "provider": self._backend.provider,
                "model": self._backend.models[UNIFIED],
                "model_process": self._backend.models[PROCESS],
                "model_outcome": self._backend.models[OUTCOME],
                "temperatures": self._backend.temperatures,
                "mode": self._mode,
                "asked": self._failures.asked,
                "failed": self._failures.failed,
                "refused": self._failures.refused,
                "limit": self._failures.limit,
                "stop": self._stop,
            }
        )


def stop_reason(excess: Excess, limit: float) -> tuple[str, str]:
    """What happened, and what to do."""
    if excess.kind == "failed":
        return (
            f"the judge failed at {excess.hits} of the last {excess.of} answers, more than {100 * limit:g}%",
            "look at the judge (gongqing ledger), then run the same command again: training goes on from its last "
            "checkpoint",
        )
    return (
        f"the judge refused {excess.hits} of the last {excess.of} texts, more than half: its vendor's filter, or too "
        "long for it",
        "the same texts would be refused again: take another judge (one that you serve yourself has no such "
        "filter), or a release without rows that show signs of risk ([prompts] allow_risk)",
    )


def _problem(error: ValidationError) -> str:
    """What is wrong with a request or an option, without its text."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the body'}: {first['msg']}"


async def serve(options: Options) -> None:
    """Serves until standard input ends. Raises GongqingError before it is ready."""
    known = settings.load(options.home)
    apart = {PROCESS: options.model_process, OUTCOME: options.model_outcome}
    async with open_backend(
        options.home,
        known.llm.model_copy(update={"timeout": options.timeout, "attempts": options.attempts}),
        options.provider,
        {task: apart.get(task) or options.model for task in (MINDCHAT, UNIFIED, PROCESS, OUTCOME)},
        budget=options.budget,
        budget_of=options.budget_of,
        at_once=options.at_once,
    ) as backend:
        seed = known.seed if options.seed is None else options.seed
        service = Service(backend, mode=options.mode, seed=seed, limit=options.failures)
        token = secrets.token_urlsafe()
        runner = web.AppRunner(service.app(token), access_log=None, shutdown_timeout=_GRACE)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
            ended = over()
            sys.stdout.write(json.dumps({"address": f"http://127.0.0.1:{runner.addresses[0][1]}/{token}"}) + "\n")
            sys.stdout.flush()
            in_order = await ended
        finally:
            await runner.cleanup()
        if not in_order:
            raise Interrupted  # what is broken off keeps its budget


def read_options(arguments: list[str] | None = None) -> Options:
    """The options of a command line, by default of this process; ends the process with code 2 for wrong ones."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.judge.service",
        description="Judges answers over HTTP.",
        argument_default=argparse.SUPPRESS,
    )
    for name, field in Options.model_fields.items():
        default = f" (default: {field.default})" if field.default is not None and not field.is_required() else ""
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, required=field.is_required(), help=f"{field.description}{default}".replace("%", "%%"))
    try:
        options = Options(**vars(parser.parse_args(arguments)))
    except ValidationError as error:
        parser.error(f"--{_problem(error).replace('_', '-', 1)}")
    if options.mode != "apart" and (options.model_process or options.model_outcome):
        parser.error("--model-process and --model-outcome are asked in --mode apart alone")
    return options


def main() -> None:
    """Entry point: exit code 2 for a request that cannot be carried out, with what to do on stderr."""
    keep_private()
    options = read_options()
    try:
        with suppress(Interrupted):  # the parent is gone
            asyncio.run(serve(options))
    except GongqingError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
