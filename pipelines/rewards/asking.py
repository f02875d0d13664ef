"""What a reward asks of a service beside the run (`pipelines.train.services`), over HTTP."""

import asyncio
import os
from typing import Any

import aiohttp

SECONDS = 600.0  # that an answer may take, the queue of the service included: ours
_ATTEMPTS = 4  # where nobody answers at the address
_PAUSE = 0.25  # seconds before the second attempt, twice as long before each next


class RewardFailed(RuntimeError):
    """Raised by a reward that cannot be had: the run stops, and says why."""


async def asked(variable: str, path: str, body: dict[str, Any], *, seconds: float = SECONDS) -> dict[str, Any]:
    """What a service answers to a question.

    Only a connection that fails is tried again: a question that came through may have cost money.

    Args:
        variable: Of the environment, with the address of the service.
        path: What is asked for, with its leading slash.
        body: Of the question; it goes as JSON.
        seconds: That the answer may take.

    Raises RewardFailed where no service is named or reached, where it takes longer, answers no JSON object, or says
    that the run is to stop.
    """
    address = os.environ.get(variable)
    if not address:
        raise RewardFailed(f"{variable} names no service for {path}: start the run by gongqing train")
    timeout = aiohttp.ClientTimeout(total=seconds)
    for attempt in range(_ATTEMPTS):
        await asyncio.sleep(_PAUSE * (2**attempt - 1))
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(address + path, json=body) as told,
            ):
                return await _read(told, variable, path)
        except TimeoutError:
            raise RewardFailed(f"{path} of {variable} took longer than {seconds:g} s") from None
        except aiohttp.ClientConnectorError as error:
            failed = error
        except aiohttp.ClientError as error:
            raise RewardFailed(f"{path} of {variable} broke off: {type(error).__name__}") from error
    raise RewardFailed(f"{path} of {variable} cannot be reached: {type(failed).__name__}") from failed


async def _read(told: aiohttp.ClientResponse, variable: str, path: str) -> dict[str, Any]:
    try:
        found = await told.json()
    except (aiohttp.ContentTypeError, ValueError):
        found = None
    if isinstance(found, dict) and told.status == 503 and "stop" in found:
        raise RewardFailed(str(found["stop"]))
    if not isinstance(found, dict) or told.status != 200:
        raise RewardFailed(f"{path} of {variable} answered with status {told.status}, and no JSON object")
    return found
