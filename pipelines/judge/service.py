"""The judge as a service of its own process, which the reward workers of a run of training ask.

    python -m pipelines.judge.service --provider openai --model qwen-plus --budget 20 --at-once 32

Prints ``{"address": "http://127.0.0.1:PORT/TOKEN"}`` when it is ready; others of this machine do not know the token,
and get 404. It ends with its standard input: whoever started it holds the other end, and however they die it closes. A
line ``end`` before that says that the work is done, and closes the budget; else the next service goes on with what
this one had spent.

POST /mindchat and /compeer take a judgement's request and give its result, ``{"ok": true, …}`` or ``{"ok": false,
"problem": …}``; 400 for a request that is none. When the judge has failed or refused too often, or nothing more can be
asked, every answer is 503 ``{"stop": …}``. GET /about tells who judges, how often it failed, and how often it refused.
"""

import argparse
import asyncio
import json
import secrets
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines import settings
from pipelines.core.modes import keep_private
from pipelines.core.service import over
from pipelines.errors import GongqingError, Interrupted
from pipelines.judge import mindchat
from pipelines.judge.asking import NoVerdict, Refused
from pipelines.judge.backend import JudgeBackend, open_backend
from pipelines.judge.turns import Case
from pipelines.judge.unified import MODES, OUTCOME, PROCESS, UNIFIED, Judge, Mode
from pipelines.judge.verdicts import reference_first
from pipelines.llm.failures import Excess, Failures, Outcome
from pipelines.llm.interface import JUDGES

_LARGEST = 1 << 24  # bytes of a request
_GRACE = 2.0  # seconds that those who wait have at the end
Result = dict[str, Any]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Turn(BaseModel):
    """What was said; other columns of a turn are not looked at."""

    role: Literal["seeker", "supporter"]
    text: str


class ToScore(_Request):
    """POST /mindchat."""

    row_id: str
    lang: Literal["zh", "en"]
    dialogue: list[Turn] = Field(min_length=1)
    answer: str


class ToCompare(_Request):
    """POST /compeer: what is null is missing in the candidate."""

    row_id: str
    lang: Literal["zh", "en"]
    dialogue: list[Turn] = Field(min_length=1)
    steps: list[str | None] = Field(min_length=3, max_length=3)
    response: str | None
    reference: str


class Service:
    """Judges, and stops judging."""

    def __init__(self, backend: JudgeBackend, *, mode: Mode, seed: int, limit: float) -> None:
        """`seed` draws the place of the reference; `limit` is the share of failures that is borne."""
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

    async def _scored(self, asked: ToScore) -> Result:
        dialogue = [turn.model_dump() for turn in asked.dialogue]
        found = await self._backend.ask(
            mindchat.question(asked.row_id, asked.lang, dialogue, asked.answer, self._backend.models[mindchat.TASK])
        )
        return {
            "fluency": found.fluency_comfort,
            "empathy": found.empathic_understanding,
            "support": found.support_encouragement,
            "words": found.why,
        }

    async def _compared(self, asked: ToCompare) -> Result:
        dialogue = [turn.model_dump() for turn in asked.dialogue]
        first = reference_first(asked.row_id, self._seed)
        case = Case(dialogue, asked.steps, asked.response, asked.reference, first)
        judge = Judge(asked.row_id, asked.lang, case, self._backend.models, self._backend.ask)
        found = await judge.judged(self._mode)
        return {"steps": found.steps, "preference": found.preference, "words": found.words}

    def _judging(self, form: type[Any], judge: Callable[[Any], Awaitable[Result]]) -> Any:
        """A handler: reads, judges, counts, and stops."""

        async def handle(request: web.Request) -> web.Response:
            try:
                asked = form.model_validate_json(await request.read())
            except ValidationError as error:
                return web.json_response({"problem": _told(error)}, status=400)
            answer = {} if self._stop else await self._tried(judge, asked)
            if self._stop:
                return web.json_response({"stop": self._stop}, status=503)
            return web.json_response(answer)

        return handle

    async def _tried(self, judge: Callable[[Any], Awaitable[Result]], asked: Any) -> Result:
        outcome: Outcome = "judged"
        try:
            answer: Result = {"ok": True, **await judge(asked)}
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
            self._stop = str(
                GongqingError(
                    f"{what} ({answer.get('problem', 'not at the last one')})",
                    where=f"provider {self._backend.provider}, model {models}",
                    hint=hint,
                )
            )
        return answer

    async def _about(self, _: web.Request) -> web.Response:
        return web.json_response(
            {
                "provider": self._backend.provider,
                "model": self._backend.models[UNIFIED],
                "model_process": self._backend.models[PROCESS],
                "model_outcome": self._backend.models[OUTCOME],
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


def _told(error: ValidationError) -> str:
    """What is wrong with a request, and nothing of what people wrote."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the body'}: {first['msg']}"


async def serve(told: argparse.Namespace) -> None:
    """Serves until standard input ends. Raises GongqingError before it is ready."""
    known = settings.load(told.home)
    llm = known.llm.model_copy(update={"timeout": told.timeout, "attempts": told.attempts})
    seed = known.seed if told.seed is None else told.seed
    async with open_backend(
        told.home,
        llm,
        told.provider,
        _models(told),
        budget=told.budget,
        budget_of=told.budget_of,
        at_once=told.at_once,
    ) as backend:
        service = Service(backend, mode=told.mode, seed=seed, limit=told.failures)
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


def _models(told: argparse.Namespace) -> dict[str, str]:
    """Who is asked, by task."""
    apart = {PROCESS: told.model_process, OUTCOME: told.model_outcome}
    return {task: apart.get(task) or told.model for task in (mindchat.TASK, UNIFIED, PROCESS, OUTCOME)}


def _arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m pipelines.judge.service", description="Judges answers over HTTP.")
    add = parser.add_argument
    add("--home", type=Path, default=settings.home(), help="where ledger and settings are (default: GONGQING_HOME)")
    add("--provider", choices=JUDGES, default="openai", help="who judges (default: %(default)s)")
    add("--model", required=True, help="alias of a profile")
    add("--model-process", help="alias of the profile that judges steps in mode apart (default: --model)")
    add("--model-outcome", help="alias of the profile that judges responses in mode apart (default: --model)")
    add("--mode", choices=MODES, default="unified", help="how /compeer asks (default: %(default)s)")
    add("--failures", type=_share, default=0.05, help="share of failures that is borne (default: %(default)s, ours)")
    add("--budget", type=_amount, default=None, help="the most that may be spent, in the profile's currency")
    add("--budget-of", default="judge", help="whose budget that is (default: %(default)s)")
    add(
        "--at-once",
        type=_count,
        default=None,
        help="the most calls in flight, of all workers (default: as the profile says)",
    )
    add("--timeout", type=_seconds, default=120.0, help="seconds that one call may take (default: %(default)s, ours)")
    add("--attempts", type=_count, default=3, help="how often a call that failed is made (default: %(default)s, ours)")
    add("--seed", type=int, default=None, help="of the reference's place (default: as the settings say)")
    told = parser.parse_args(given)
    if told.mode != "apart" and (told.model_process or told.model_outcome):
        parser.error("--model-process and --model-outcome are asked in --mode apart alone")
    return told


def _share(text: str) -> float:
    if not 0 <= (share := float(text)) <= 1:
        raise ValueError(text)
    return share


def _count(text: str) -> int:
    if (count := int(text)) < 1:
        raise ValueError(text)
    return count


def _seconds(text: str) -> float:
    if not (seconds := float(text)) > 0:
        raise ValueError(text)
    return seconds


def _amount(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None


def main() -> None:
    """Entry point: exit code 2 for a request that cannot be carried out, with what to do on stderr."""
    keep_private()
    told = _arguments()
    try:
        with suppress(Interrupted):  # nobody waits any more
            asyncio.run(serve(told))
    except GongqingError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
