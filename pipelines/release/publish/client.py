"""The Hub's client as this project uses it: the token out of the environment alone, and no word of it in any log.

xet, the Hub's newer way of uploading, is used with the Hub itself. Other endpoints rarely have it, and the client does
not fall back by itself (`spec/llm.md` §E), so it is switched off for them.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pipelines.errors import HubError, NoKey, RequestError

TOKEN = "HF_TOKEN"  # noqa: S105 - the name of the variable
_HUB = "https://huggingface.co"
_REPO = re.compile(
    r"(?!.*(?:--|\.\.))[A-Za-z0-9_](?:[\w.-]{0,94}[A-Za-z0-9_])?/[A-Za-z0-9_](?:[\w.-]{0,94}[A-Za-z0-9_])?", re.ASCII
)


def hub_address() -> str:
    """Where the Hub is: HF_ENDPOINT, or the Hub itself."""
    return os.environ.get("HF_ENDPOINT", _HUB).rstrip("/")


Progress = Callable[[int, int], None]  # is called with the bytes that have arrived, and all


def require_repo(repo: str) -> None:
    """Raises RequestError for what cannot name a data set: the client would complete half a name."""
    if not _REPO.fullmatch(repo):
        raise RequestError(
            f"{repo!r} cannot name a data set on the Hub",
            hint="OWNER/NAME: letters, figures, hyphens, underscores and points",
        )


def set_environment() -> None:
    """Sets what huggingface_hub reads once, when it is imported."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_DISABLE_SHARED_BLOBS", "1")  # a copy outside the home, which no erasure would reach
    if hub_address() != _HUB:
        os.environ.setdefault("HF_HUB_DISABLE_XET", "1")


def hub_client(*, anonymous: bool = False) -> Any:
    """An `HfApi` with the token of the environment; `anonymous` does without where there is none.

    Raises NoKey where HF_TOKEN is not set.
    """
    token = os.environ.get(TOKEN)
    if not token and not anonymous:
        raise NoKey(
            "there is no token for the Hub",
            where=f"the environment variable {TOKEN}",
            hint="make one that may write at huggingface.co/settings/tokens, and set the variable",
        )
    set_environment()
    from huggingface_hub import HfApi, constants
    from huggingface_hub.utils import logging

    if hub_address() != _HUB and os.environ["HF_HUB_DISABLE_XET"] == "1":
        constants.HF_HUB_DISABLE_XET = True  # where something else had imported it before
    # Its warnings name the signed address of an upload, with which anybody may write there.
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    return HfApi(token=token or False)


_AGAIN = "run the same command again: what has arrived is not sent twice"
_HINTS = {401: f"check the token in {TOKEN}", 403: f"check the token in {TOKEN}: it must be allowed to write there"}


@contextmanager
def hub_errors(doing: str, repo: str) -> Iterator[None]:
    """Errors of the client as ours, without addresses: those may be signed."""
    from huggingface_hub import errors

    missing = (
        (errors.RevisionNotFoundError, "there is no such revision", "name a tag of it"),
        (errors.RepositoryNotFoundError, "there is no such data set, or the token may not see it", "check both"),
        (errors.RemoteEntryNotFoundError, "there is no such file", "name a data set and tag that gongqing published"),
    )
    try:
        yield
    except errors.HfHubHTTPError as error:
        for kind, problem, hint in missing:
            if isinstance(error, kind):
                raise HubError(f"{doing}: {problem}", where=repo, hint=hint) from None
        status = error.response.status_code if error.response is not None else "no status"
        message = f": {error.server_message}" if error.server_message else ""
        raise HubError(
            f"{doing}: the Hub answered {status}{message}", where=repo, hint=_HINTS.get(status, _AGAIN)
        ) from None
    except (OSError, RuntimeError, _transport_error()) as error:
        cause = type(error.__cause__ or error).__name__
        raise HubError(f"{doing}: the way to the Hub broke off ({cause})", where=repo, hint=_AGAIN) from None


def _transport_error() -> type[Exception]:
    """What the HTTP library under the client raises: httpx2 in its second major, httpx in its first."""
    from huggingface_hub import get_session

    module = type(get_session()).__module__.partition(".")[0]
    return __import__(module).TransportError  # type: ignore[no-any-return]
