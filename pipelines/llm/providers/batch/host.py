"""A host's Batch API: what it is asked, again where that may help, until it answers or will not."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from pipelines.errors import HostRefused
from pipelines.llm.payload import LONGEST
from pipelines.llm.profiles import Profile
from pipelines.llm.providers.batch.lines import ENDPOINT, Lines
from pipelines.llm.providers.endpoint import LONGEST_WAIT, redirected, retry_after
from pipelines.llm.providers.incoming import Redirected, TooLarge, reply_bytes

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")

_OVER = frozenset({"completed", "expired", "failed", "cancelled"})
_LISTED_AT_ONCE = 100
_CLOCKS_DIFFER = 3600.0  # seconds between the host's clock and ours, at most

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds; the figures are ours.

    first, longest: between two looks at a batch, doubling.
    appears: how long a batch that was made, without anybody hearing of it, may stay out of the host's list.
    gone: how old a batch is that the host may have forgotten; one that is younger is asked for with the wrong key.
    tries: how often a call is put into a batch, and how often the host is asked the same thing.
    again: before the host is asked the same thing again, doubling.
    """

    first: float = 10.0
    longest: float = 300.0
    appears: float = 120.0
    gone: float = 3 * 86400.0
    tries: int = 6
    again: float = 1.0
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep)


class BatchHost:
    """The host of a profile, through the SDK's client (with `max_retries=0`). Batches are the SDK's objects.

    Every method raises HostRefused: where it cannot be reached, or answers nothing but errors.
    """

    def __init__(self, client: "AsyncOpenAI", profile: Profile, patience: Patience) -> None:
        self._most = reply_bytes(LONGEST * profile.max_tokens)  # bytes of a line of results
        self.url = str(client.base_url)
        self._client, self._profile, self._patience = client, profile, patience
        self.doubtful: set[str] = set()  # names of files that may be there though nobody heard of it

    async def uploaded(self, name: str, content: bytes) -> str:
        """The id of a new file, the only one of its name: what was kept though no answer came is deleted."""
        import openai

        delay = self._patience.again
        for last in range(self._patience.tries - 1, -1, -1):
            try:
                found = await self._client.files.create(file=(name, content), purpose="batch")
                file = str(self._told(found, "id").id)
                for other in await self.named(name) if name in self.doubtful else ():
                    if other != file:
                        await self.removed(other)
                return file
            except (openai.APIConnectionError, openai.InternalServerError, openai.RateLimitError) as error:
                if not isinstance(error, openai.RateLimitError):
                    self.doubtful.add(name)
                await self._wait(delay, error, last)
                delay *= 2
            except (openai.APIStatusError, Redirected, TooLarge) as error:
                raise self._refused(error) from error
        raise AssertionError("the last try returns or raises")

    async def named(self, name: str) -> list[str]:
        """The ids of the files for batches that bear a name."""
        page: Any = await self._again(_or_none(lambda: self._client.files.list(purpose="batch")))
        found: list[str] = []
        while page is not None:
            found += [file.id for file in page.data if file.filename == name]
            page = await self._again(page.get_next_page) if page.has_next_page() else None
        return found

    async def made(self, file: str, label: Mapping[str, str], since: datetime) -> Any:
        """A new batch of a file. What was asked to be made may have been made though no answer came: then it is found
        by its label.
        """
        import openai

        delay = self._patience.again
        for last in range(self._patience.tries - 1, -1, -1):
            try:
                batch = await self._client.batches.create(
                    input_file_id=file, endpoint=ENDPOINT, completion_window="24h", metadata=dict(label)
                )
                return self._told(batch, "id")
            except (openai.APIConnectionError, openai.InternalServerError) as error:
                if (there := await self.found(label, since)) is not None:
                    return there
                if not last:
                    raise self._refused(error) from error
            except openai.RateLimitError as error:
                await self._wait(delay, error, last)
                delay *= 2
            except (openai.APIStatusError, Redirected, TooLarge) as error:
                raise self._refused(error) from error
        raise AssertionError("the last try returns or raises")

    async def found(self, label: Mapping[str, str], since: datetime) -> Any | None:
        """The batch with a label, made after `since`; None where there is none, and none can still appear."""
        until = self._patience.clock() + self._patience.appears
        while True:
            last = self._patience.clock() >= until
            async for batch in self._listed():
                if batch.created_at < since.timestamp() - _CLOCKS_DIFFER:
                    break
                if (batch.metadata or {}) == label:
                    return batch
            if last:
                return None
            await self._patience.sleep(max(0.0, until - self._patience.clock()))

    async def over(self, batch_id: str) -> Any | None:
        """A batch once it has ended, however it did; None where the host knows of none."""
        delay = self._patience.first
        while True:
            batch = await self.known(batch_id)
            if batch is None or batch.status in _OVER:
                return batch
            await self._patience.sleep(delay)
            delay = min(2 * delay, self._patience.longest)

    async def known(self, batch_id: str, tries: int | None = None) -> Any | None:
        """A batch as it stands; None where the host knows of none."""
        found = await self._again(_or_none(lambda: self._client.batches.retrieve(batch_id)), tries)
        return None if found is None else self._told(found, "status")

    async def read(self, file: str, take: Callable[[list[bytes]], Awaitable[None]]) -> None:
        """Hands the lines of a file on as they come, some at a time, so that no file has to fit into memory; none where
        the host does not know it. Where the connection breaks, it is read from its beginning: lines come again.

        Split at line feeds alone: a text may hold other line breaks.
        """
        await self._again(_or_none(lambda: self._streamed(file, take)))

    async def _streamed(self, file: str, take: Callable[[list[bytes]], Awaitable[None]]) -> None:
        import httpx2
        import openai

        lines = Lines(self._most)
        try:
            async with self._client.files.with_streaming_response.content(file) as response:
                async for some in response.iter_bytes():
                    lines.add(some)
                    if lines.full:
                        await take(lines.taken())
        except httpx2.RequestError as error:  # the SDK's own errors end with the headers
            raise openai.APIConnectionError(request=error.request) from error
        lines.add(b"\n")
        await take(lines.taken())
        if lines.left_out:
            log.warning("%d lines of a batch's results are longer than a reply may be", lines.left_out)

    async def removed(self, file: str, tries: int | None = None) -> bool:
        """Whether the host had a file; it has it no more."""
        return await self._again(_or_none(lambda: self._client.files.delete(file)), tries) is not None

    async def _listed(self) -> AsyncIterator[Any]:
        """All batches, newest first."""
        page: Any = await self._again(self._first_page)
        while True:
            for batch in page.data:
                yield batch
            if not page.has_next_page():
                return
            page = await self._again(page.get_next_page)

    async def _first_page(self) -> Any:
        return await self._client.batches.list(limit=_LISTED_AT_ONCE)

    async def _again(self, ask: Callable[[], Awaitable[T]], tries: int | None = None) -> T:
        """Asks what may be asked twice."""
        import openai

        delay = self._patience.again
        for last in range((tries or self._patience.tries) - 1, -1, -1):
            try:
                return await ask()
            except (openai.APIConnectionError, openai.InternalServerError, openai.RateLimitError) as error:
                await self._wait(delay, error, last)
                delay *= 2
            except (openai.APIStatusError, Redirected, TooLarge) as error:
                raise self._refused(error) from error
        raise AssertionError("the last try returns or raises")

    async def _wait(self, delay: float, error: Exception, tries_left: int) -> None:
        """Until the host may be asked again: after `delay` seconds, or when it says."""
        response = getattr(error, "response", None)
        after = 0.0 if response is None else retry_after(response.headers)
        if not tries_left or after > LONGEST_WAIT:
            raise self._refused(error) from error
        await self._patience.sleep(max(delay, after))

    def _told(self, found: Any, name: str) -> Any:
        """What came with status 200, where it has what it must have: the SDK does not look."""
        if not isinstance(getattr(found, name, None), str):
            raise self._refusal(f"sends what has no {name}")
        return found

    def _refused(self, error: Exception) -> HostRefused:
        if isinstance(error, Redirected):
            return redirected(self._profile, self.url, error)
        if isinstance(error, TooLarge):
            return self._refusal(f"sends {error}, which nobody reads")
        status = getattr(error, "status_code", None)
        return self._refusal(f"answers {status}" if status else "cannot be reached")

    def _refusal(self, told: str) -> HostRefused:
        return HostRefused(
            f"the host of {self._profile.alias} {told}: no batch can be asked",
            where=f"{self.url}, model {self._profile.model}",
            hint="look at key, model and base_url of the profile; what has left is collected by the next --batch",
        )


def _or_none(ask: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T | None]]:
    """As `ask`, and None for what the host does not know."""
    import openai

    async def asking() -> T | None:
        try:
            return await ask()
        except openai.NotFoundError:
            return None

    return asking
