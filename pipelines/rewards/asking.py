"""How a reward asks what it cannot be itself, a judge or an encoder: HTTP, of a service on this machine.

The address stands in the environment, with a token in its path that the service wants, and that no error tells. A call
that nobody took is made again, a few times; what fails for good is raised so that verl stops: a reward of zero would
teach the policy that what it wrote was bad.
"""

import asyncio
import os
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import aiohttp

JUDGE, ENCODER = "GONGQING_JUDGE", "GONGQING_ENCODER"
# Both ours.
SECONDS = 3600.0  # for one call: the service itself gives up a judge that hangs, and says so long before
PAUSES = (0.5, 2.0, 5.0)  # seconds before each further call

_sessions: "WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession]" = WeakKeyDictionary()


class RewardFailed(RuntimeError):
    """Raised where there is no reward to be had. Whoever trains stops, and can go on from the last checkpoint."""


async def asked(variable: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a service answers.

    Args:
        variable: The variable of the environment that holds its address: `JUDGE` or `ENCODER`.
        path: With a slash in front.
        body: What is posted as JSON; without it the call is a GET.

    Raises:
        RewardFailed: There is no address, nobody answers, the answer is no JSON object or an error, or the service says
            that the run is to stop (503 with `stop`).
    """
    address = os.environ.get(variable)
    if not address:
        raise RewardFailed(f"{variable} is not set: gongqing train starts that service beside the run, and says where")
    where = "/".join(address.split("/")[:3]) + path  # without the token
    for pause in (*PAUSES, None):
        try:
            return await _once(address + path, where, body)
        except TimeoutError as error:
            raise RewardFailed(
                f"no answer from {where} ({variable}) in {SECONDS:g} s; see the service's log"
            ) from error
        except aiohttp.ClientError as error:
            if pause is None:
                what = str(error) or type(error).__name__
                raise RewardFailed(f"no answer from {where} ({variable}): {what}; see the service's log") from error
            await asyncio.sleep(pause)
    raise AssertionError("the last pause ends the loop")


async def verdict(path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """What the judge answers: `ok`, and what belongs to it. Raises RewardFailed, also for an answer without."""
    found = await asked(JUDGE, path, body)
    if not isinstance(found.get("ok"), bool):
        raise RewardFailed(f"the judge says ok {found.get('ok')!r}, and true or false was asked for")
    return found


async def close() -> None:
    """Close the connections of this event loop. A worker that lives as long as its loop need not."""
    session = _sessions.pop(asyncio.get_running_loop(), None)
    if session is not None:
        await session.close()


async def _once(url: str, where: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
    """One call; errors tell `where`. Raises what may pass as aiohttp's errors, and what will not as RewardFailed."""
    method = "GET" if body is None else "POST"
    async with _session().request(method, url, json=body, allow_redirects=False) as response:
        if 300 <= response.status < 400:
            raise RewardFailed(f"{where} sends elsewhere (status {response.status}): it is not followed")
        try:
            read = await response.json(content_type=None)
        except ValueError:
            read = None
        found = read if isinstance(read, dict) else {}
        if stop := found.get("stop"):
            raise RewardFailed(str(stop))
        if response.status >= 500:
            raise aiohttp.ClientPayloadError(f"status {response.status}: {found.get('problem', 'no reason given')}")
        if response.status >= 400:
            raise RewardFailed(f"{where} refuses: {found.get('problem', f'status {response.status}')}")
        if not isinstance(read, dict):
            raise RewardFailed(f"{where} answers with no JSON object")
        return found


def _session() -> aiohttp.ClientSession:
    loop = asyncio.get_running_loop()
    if loop not in _sessions:
        # Without a limit on connections: how many outputs are scored at a time is verl's to say, and the judge's.
        _sessions[loop] = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=SECONDS)
        )
    return _sessions[loop]
