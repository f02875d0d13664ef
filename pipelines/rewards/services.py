"""The services that a reward asks, a judge and an encoder: HTTP, on this machine; and what they are shown of a row.

The address stands in the environment, with a token in its path that the service wants, and that no error shows. A call
that failed on its way is made again, a few times; what fails for good is raised so that verl stops: a reward of zero
would teach the policy that its output was bad.
"""

import asyncio
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

import aiohttp
import numpy as np
from numpy.typing import NDArray

Vectors: TypeAlias = NDArray[np.float64]

JUDGE, ENCODER = "GONGQING_JUDGE", "GONGQING_ENCODER"
# Both ours.
SECONDS = 3600.0  # for one call: the service itself gives up a judge that hangs, and reports it long before
PAUSES = (0.5, 2.0, 5.0)  # seconds before each further call

# verl's own arguments of a reward, and what our manager adds.
_OF_VERL = frozenset(("data_source", "solution_str", "ground_truth", "extra_info", "length"))

_sessions: "WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession]" = WeakKeyDictionary()


class RewardFailed(RuntimeError):
    """Raised where there is no reward to be had. Training stops, and can go on from the last checkpoint."""


async def request(variable: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The answer of a service.

    Args:
        variable: The variable of the environment that holds its address: `JUDGE` or `ENCODER`.
        path: With a slash in front.
        body: Posted as JSON; without it the call is a GET.

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
    """The judge's answer: `ok`, and what belongs to it. Raises RewardFailed, also for an answer without."""
    answer = await request(JUDGE, path, body)
    if not isinstance(answer.get("ok"), bool):
        raise RewardFailed(f"the judge says ok {answer.get('ok')!r}, and true or false was asked for")
    return answer


async def encoded(texts: Sequence[str], kind: Literal["query", "answer"]) -> Vectors:
    """The encoder's vectors [n, d] of n texts. Raises RewardFailed, also for anything else."""
    rows = (await request(ENCODER, "/embed", {"texts": list(texts), "kind": kind})).get("vectors")
    try:
        vectors: Vectors = np.array(rows, np.float64)
    except (TypeError, ValueError):  # rows that differ in length, or hold what is no number
        vectors = np.empty(0)
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise RewardFailed(f"the encoder does not give one vector for each text ({len(texts)})")
    if not np.isfinite(vectors).all():
        raise RewardFailed("the encoder gives what is no number: its weights are broken")
    return vectors


async def close() -> None:
    """Close the connections of this event loop. A worker that lives as long as its loop need not."""
    session = _sessions.pop(asyncio.get_running_loop(), None)
    if session is not None:
        await session.close()


async def _once(url: str, where: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
    """One call; errors name `where`. Raises what may pass as aiohttp's errors, and what will not as RewardFailed."""
    method = "GET" if body is None else "POST"
    async with _session().request(method, url, json=body, allow_redirects=False) as response:
        if 300 <= response.status < 400:
            raise RewardFailed(f"{where} sends elsewhere (status {response.status}): it is not followed")
        try:
            read = await response.json(content_type=None)
        except ValueError:
            read = None
        answer = read if isinstance(read, dict) else {}
        if stop := answer.get("stop"):
            raise RewardFailed(str(stop))
        if response.status >= 500:
            raise aiohttp.ClientPayloadError(f"status {response.status}: {answer.get('problem', 'no reason given')}")
        if response.status >= 400:
            raise RewardFailed(f"{where} refuses: {answer.get('problem', f'status {response.status}')}")
        if not isinstance(read, dict):
            raise RewardFailed(f"{where} answers with no JSON object")
        return answer


def _session() -> aiohttp.ClientSession:
    loop = asyncio.get_running_loop()
    if loop not in _sessions:
        # Without a limit on connections: how many outputs are scored at a time is verl's to say, and the judge's.
        _sessions[loop] = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=SECONDS)
        )
    return _sessions[loop]


# --- the row of a prompt set


def case(extra_info: Mapping[str, Any]) -> dict[str, Any]:
    """What every judge is shown of a row (`schemas.training.EXTRA_INFO`): its id, its language, its dialogue."""
    return {"row_id": extra_info["row_id"], "lang": extra_info["lang"], "dialogue": dialogue(extra_info)}


def dialogue(extra_info: Mapping[str, Any]) -> list[dict[str, str]]:
    """The turns of a row as plain JSON: verl may hand over arrays."""
    return [{"role": str(turn["role"]), "text": str(turn["text"])} for turn in extra_info["dialogue"]]


def refuse_unknown(kwargs: Mapping[str, Any], known: Collection[str] = ()) -> None:
    """Raises TypeError for a setting that a reward does not have: one that is misspelt would train something else.
    `kwargs` are what verl hands over beside a reward's parameters, `known` settings that its other part reads.
    """
    if unknown := sorted(kwargs.keys() - _OF_VERL - set(known)):
        raise TypeError(f"the reward has no setting {', '.join(unknown)}: look at reward_kwargs")
