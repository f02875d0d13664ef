"""One model at its host: its client, its limits, and what its host means by each answer that is none."""

import asyncio
import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pipelines.errors import HostRefused
from pipelines.llm.limits import Limits
from pipelines.llm.payload import LONGEST, Payload, Request
from pipelines.llm.profiles import Profile, host, key
from pipelines.llm.providers.bodies import ABOUT_ONE, MOST_IN_A_ROW, code_of, may_pass, verdict_of
from pipelines.llm.providers.incoming import Redirected, TooLarge, held, reply_bytes
from pipelines.settings import Llm

# Ours. To connect takes no thinking; who asks to wait longer than this has closed for the day.
_CONNECT_SECONDS = 10.0
LONGEST_WAIT = 900.0

# Connections of one client, of which an endpoint has as many as it needs. For every request a pool looks at the socket
# of each connection that is idle: with 64 in one pool that takes longer than all the rest of a call.
_CONNECTIONS = 8

_NO_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
# By name: the SDK hands on the errors of whichever HTTP client it was given.
_NEVER_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol"})
_REMEDIES = {
    401: "look at the key in the environment",
    402: "top up the account",
    403: "look at what the key may ask, and from where",
    404: "look at model and base_url of the profile",
}
# Of a host that will have none of the questions: what of a profile decides their form.
UNLIKED = "look at the profile of the model: model, structured, limit_field, max_tokens, extra_body"


class RequestFailed(Exception):
    """A request that got no answer.

    status: one word for the ledger.
    billed: False: nothing is owed; None: nobody knows.
    after: seconds that the host asks to wait, 0 for none.
    flooded: whether the host has too much to do.
    again: whether asking the same again may help.
    refusal: what ends the whole run, None where other questions may be answered.
    """

    def __init__(
        self,
        status: str,
        *,
        billed: bool | None,
        after: float = 0.0,
        flooded: bool = False,
        again: bool = True,
        refusal: HostRefused | None = None,
    ) -> None:
        super().__init__(status)
        self.status, self.billed, self.after, self.flooded = status, billed, after, flooded
        self.again, self.refusal = again and refusal is None, refusal


class Endpoint:
    """A profile that is asked. Lives in one event loop."""

    def __init__(self, profile: Profile, llm: Llm) -> None:
        """Raises NoHost and NoKey."""
        import httpx2
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        self.profile = profile
        self.host = host(profile)
        most = llm.concurrency or profile.concurrency
        self.limits = Limits(most, profile.requests_per_minute, profile.tokens_per_minute)
        self.hopeless: dict[str, str] = {}  # by key: the status of what the host would not have, for this run
        self._in_a_row = 0  # questions that brought nothing, since the last answer
        self._timeout = llm.timeout
        theirs = profile.key_variable == "OPENAI_API_KEY"
        trusted = httpx2.create_ssl_context()
        secret = key(profile)
        self.most = reply_bytes(LONGEST * profile.max_tokens)  # bytes of one reply
        self._clients = [
            AsyncOpenAI(
                base_url=self.host,
                # What the environment holds for one host is not to be seen by another.
                api_key=secret or "none",
                organization=None if theirs else "",
                project=None if theirs else "",
                max_retries=0,  # the SDK's would be paid for behind the ledger's back
                http_client=DefaultAsyncHttpxClient(
                    verify=trusted,
                    follow_redirects=False,  # what is asked goes to the host of the profile, and nowhere else
                    headers={"Accept-Encoding": "identity"},
                    event_hooks={"response": [held(self.most, [secret] if secret else [])]},
                    timeout=httpx2.Timeout(None, connect=min(_CONNECT_SECONDS, llm.timeout)),
                    limits=httpx2.Limits(
                        max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS, keepalive_expiry=30.0
                    ),
                ),
            )
            for _ in range(-(-most // _CONNECTIONS))
        ]
        self._busy = [0] * len(self._clients)

    @property
    def client(self) -> Any:
        """One of the SDK's clients, for what is not a single call: with a timeout of its own."""
        return self._clients[0].with_options(timeout=self._timeout)

    async def close(self) -> None:
        """Closes the connections."""
        for client in self._clients:
            await client.close()

    async def post(self, request: Request) -> bytes:
        """The bytes that answer a request: a completion or not, or a verdict on its text. Raises RequestFailed."""
        import openai

        try:
            # One limit for the whole of it: a host that sends white space while one waits in its queue never times out.
            async with asyncio.timeout(self._timeout):
                body: bytes = await self._posted(request.payload)
        except openai.APIStatusError as error:
            return self._status(error.response, request)
        except Redirected as error:
            raise RequestFailed(
                f"http_{error.status}", billed=False, refusal=redirected(self.profile, self.host, error)
            ) from None
        except TooLarge as error:
            raise self._too_large(request, error) from None
        except (TimeoutError, openai.APITimeoutError) as error:
            raise RequestFailed("timeout", billed=_billed(error)) from None
        except openai.APIConnectionError as error:
            raise RequestFailed("connection", billed=_billed(error)) from None
        return body

    async def _posted(self, payload: Payload) -> bytes:
        """The bytes of the answer, through the client with the least to do."""
        place = min(range(len(self._busy)), key=self._busy.__getitem__)
        create: Any = self._clients[place].chat.completions.with_raw_response.create
        self._busy[place] += 1
        try:
            # The SDK lays `extra_body` over its own and leaves it as it is: what is sent is the payload and no more.
            body: bytes = (await create(model=payload["model"], messages=[], extra_body=payload)).content
            return body
        finally:
            self._busy[place] -= 1

    def _status(self, response: Any, request: Request) -> bytes:
        """What an HTTP status other than 200 means."""
        status: int = response.status_code
        code = _code(response.content)
        if status in ABOUT_ONE:
            verdict = verdict_of(response.content, lengthened=request.lengthened)
            if verdict is not None:
                return verdict
        told = f"http_{status}"
        after = retry_after(response.headers)
        if may_pass(status) and code not in _NO_CREDIT and after <= LONGEST_WAIT:
            raise RequestFailed(told, billed=False, after=after, flooded=status == 429)
        if status in ABOUT_ONE and code not in _NO_CREDIT:
            raise self._not_had(request, told, code)
        closed = f", and asks to wait {after:.0f} s" if after > LONGEST_WAIT else ""
        hint = _REMEDIES.get(402 if code in _NO_CREDIT else status, "look at the profile of the model")
        raise RequestFailed(told, billed=False, refusal=self._refusal(f"{status}{_aside(code)}{closed}", hint))

    def _not_had(self, request: Request, told: str, code: str | None) -> RequestFailed:
        """One question that the host would not have: it alone is at fault, unless many are in a row."""
        self._in_a_row += 1
        refusal = None
        if self._in_a_row >= MOST_IN_A_ROW:
            status = f"{told.removeprefix('http_')}{_aside(code)} to {self._in_a_row} questions in a row"
            refusal = self._refusal(status, UNLIKED)
        self.hopeless[request.key] = told
        return RequestFailed(told, billed=False, again=False, refusal=refusal)

    def _too_large(self, request: Request, error: TooLarge) -> RequestFailed:
        """A reply that nobody can hold: the question is not sent again, and a host that sends many such is no host."""
        self.hopeless[request.key] = "too_large"
        return RequestFailed(
            "too_large", billed=None, again=False, refusal=self.unanswered(f"replies of more than {error.most} bytes")
        )

    def answered(self) -> None:
        """The host has answered a question."""
        self._in_a_row = 0

    def unanswered(self, status: str) -> HostRefused | None:
        """A question got no answer after all its tries: why no other is to be asked, where many are in a row."""
        self._in_a_row += 1
        if self._in_a_row < MOST_IN_A_ROW:
            return None
        return no_answers(self.profile, self.host, f"{self._in_a_row} questions in a row", status)

    def _refusal(self, status: str, hint: str) -> HostRefused:
        return HostRefused(
            f"{self.profile.alias} answers {status}: nothing more is sent",
            where=f"{self.host}, model {self.profile.model}",
            hint=hint,
        )


def redirected(profile: Profile, host: str, error: Redirected) -> HostRefused:
    """What ends a run whose questions would go to a host that nobody has named."""
    return HostRefused(
        f"{profile.alias} answers {error.status}, and sends to {error.to}: that is not followed; nothing more is sent",
        where=f"{host}, model {profile.model}",
        hint="look at base_url of the profile; where the other host is the right one, name it there",
    )


def no_answers(profile: Profile, host: str, which: str, status: str) -> HostRefused:
    """What ends a run that would else take a host that is down for rows without an answer."""
    longer = ", or give it longer ([llm] timeout; the judge of a run: [rewards] judge_timeout)"
    return HostRefused(
        f"{profile.alias} gives no answers: {which} ({status}); nothing more is sent",
        where=f"{host}, model {profile.model}",
        hint=f"try again later{longer if 'timeout' in status else ''}: what was answered is kept",
    )


def _billed(error: BaseException) -> bool | None:
    """Of a request that nobody has taken nothing is owed; of another nobody knows."""
    return False if type(error.__cause__).__name__ in _NEVER_SENT else None


def _aside(code: str | None) -> str:
    return f" ({code})" if code else ""


def _code(body: bytes) -> str | None:
    """The code of the error in a body."""
    try:
        return code_of(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def retry_after(headers: Any) -> float:
    """Seconds to wait: a number of them, or a date."""
    told = headers.get("retry-after")
    if told is None:
        return 0.0
    try:
        return max(0.0, float(told))
    except ValueError:
        try:
            at = parsedate_to_datetime(told)
        except (ValueError, OverflowError):
            return 0.0
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return max(0.0, (at - datetime.now(UTC)).total_seconds())
