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


Told = Callable[[int, int], None]  # of bytes that have arrived, and of all


def nobody(done: int, total: int) -> None:
    """Who is told where nobody listens."""


def nothing() -> None:
    """What is done where nobody asks for anything."""


def require_repo(repo: str) -> None:
    """Raises RequestError for what is no name of a data set: the client makes one of its own of half a name."""
    if not _REPO.fullmatch(repo):
        raise RequestError(
            f"{repo!r} is no name of a data set on the Hub",
            hint="OWNER/NAME: letters, figures, hyphens, underscores and points",
        )


def hub_client(*, anonymous: bool = False) -> Any:
    """An `HfApi` with the token of the environment; `anonymous` does without where there is none.

    Raises NoKey where HF_TOKEN is not set, RequestError where huggingface_hub is not installed.
    """
    token = os.environ.get(TOKEN)
    if not token and not anonymous:
        raise NoKey(
            "there is no token for the Hub",
            where=f"the environment variable {TOKEN}",
            hint="make one that may write at huggingface.co/settings/tokens, and set the variable",
        )
    # Read once, when the client is imported.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_DISABLE_SHARED_BLOBS", "1")  # a copy outside the home, which no erase would reach
    elsewhere = hub_address() != _HUB
    if elsewhere:
        os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
    try:
        from huggingface_hub import HfApi, constants
        from huggingface_hub.utils import logging
    except ModuleNotFoundError as error:
        raise RequestError("huggingface_hub is not installed", hint="pip install huggingface_hub") from error
    if elsewhere and os.environ["HF_HUB_DISABLE_XET"] == "1":
        constants.HF_HUB_DISABLE_XET = True  # where something else had imported it before
    # Its warnings name the signed address of an upload, whoever knows which may write there.
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    return HfApi(token=token or False)


@contextmanager
def hub_errors(doing: str, repo: str) -> Iterator[None]:
    """Errors of the client as ours, without addresses: those may be signed."""
    from huggingface_hub.errors import (
        HfHubHTTPError,
        RemoteEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except RevisionNotFoundError:
        raise HubError(f"{doing}: there is no such revision", where=repo, hint="name a tag of it") from None
    except RepositoryNotFoundError:
        raise HubError(
            f"{doing}: there is no such data set, or the token may not see it", where=repo, hint="check both"
        ) from None
    except RemoteEntryNotFoundError:
        raise HubError(
            f"{doing}: there is no such file",
            where=repo,
            hint="name a data set, and a revision, that gongqing published",
        ) from None
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "no status"
        refused = f"{doing}: the Hub answered {status}"
        raise HubError(
            f"{refused}: {error.server_message}" if error.server_message else refused,
            where=repo,
            hint=_REMEDIES.get(status, _AGAIN),
        ) from None
    except (OSError, RuntimeError, _transport_error()) as error:
        cause = error.__cause__ or error
        raise HubError(
            f"{doing}: the way to the Hub broke off ({type(cause).__name__})",
            where=repo,
            hint=_AGAIN,
        ) from None


_AGAIN = "run the same command again: what has arrived is not sent twice"
_REMEDIES = {
    401: f"check the token in {TOKEN}",
    403: f"check the token in {TOKEN}: it must be allowed to write there",
}


def _transport_error() -> type[Exception]:
    """What the HTTP library under the client raises: httpx2 in its second major, httpx in its first."""
    from huggingface_hub import get_session

    module = type(get_session()).__module__.partition(".")[0]
    return __import__(module).TransportError  # type: ignore[no-any-return]
