"""Messages to those who asked for them: one of each cause and window, with how often it came meanwhile.

Who is told stands in GONGQING_RECEIVERS: addresses of apprise, a space between two, as `feishu://TOKEN mailtos://…`.
They hold secrets, so that no file and no message of ours has them.
"""

import datetime as dt
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from crawlers.dates import SHANGHAI
from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.errors import GongqingError, RequestError
from pipelines.operations.alerts.causes import Cause
from pipelines.settings import PREFIX

RECEIVERS = PREFIX + "RECEIVERS"
_DAY = dt.timedelta(days=1)


class Known(BaseModel):
    """What is known of a cause: since when, when it was told, and how often it came since and was not."""

    since: dt.datetime
    sent: dt.datetime | None = None
    more: int = 0


class State(BaseModel):
    """What somebody was told of. `begun`: since when; `cursor`: up to which moment the runs of Dagster were looked at,
    `runs`: which of the last ones.
    """

    begun: dt.datetime
    cursor: dt.datetime
    runs: list[str] = Field(default_factory=list)
    events: dict[str, Known] = Field(default_factory=dict)
    standing: dict[str, Known] = Field(default_factory=dict)
    digest: dt.date | None = None


class Refused(GongqingError):
    """Raised where no receiver has taken a message: it is sent again the next time."""


Send = Callable[[str, str], None]


def receivers() -> list[str]:
    """The addresses that GONGQING_RECEIVERS names."""
    return os.environ.get(RECEIVERS, "").split()


def send(addresses: Iterable[str], title: str, text: str) -> list[str]:
    """Sends a message to all; returns the kinds of those that did not take it, as others did.

    Raises RequestError for an address that is none, Refused where nobody took it.
    """
    import apprise

    asset = apprise.AppriseAsset(app_id="gongqing", storage_mode=apprise.PersistentStoreMode.MEMORY)
    refused, taken = [], 0
    for number, address in enumerate(addresses, 1):
        kind, receiver = address.partition("://")[0], apprise.Apprise(asset=asset)
        if not receiver.add(address):
            hint = "as apprise has them: feishu://…, dingtalk://…, wecombot://…, slack://…, mailtos://…, json://…"
            raise RequestError(f"receiver {number} is no address of apprise", where=RECEIVERS, hint=hint)
        if receiver.notify(title=f"gongqing: {title}", body=text or title, body_format=apprise.NotifyFormat.TEXT):
            taken += 1
        else:
            refused.append(kind)
    if not taken:
        raise Refused("nobody took the message", where=", ".join(refused), hint="gongqing alerts --test tries again")
    return refused


class Sender:
    """What was told, kept in the home behind every message: who is killed in between tells one message twice at most.

    Hold the lock `alerts` of the home as long as there is one.
    """

    def __init__(self, home: Path, now: dt.datetime, window: dt.timedelta, send: Send) -> None:
        self._path, self._now, self._window, self._send = Home(home).alerts, now, window, send
        self.sent = 0
        if self._path.exists():
            try:
                self.state = State.model_validate_json(self._path.read_bytes())
            except ValidationError as error:
                hint = "remove the file: what happens from then on is told"
                raise RequestError("what was told cannot be read", where=self._path, hint=hint) from error
        else:
            self.state = State(begun=now, cursor=now)

    def event(self, cause: Cause) -> None:
        """Tells what has happened once; again within the window it is counted. Raises what `send` raises."""
        known = self.state.events.setdefault(cause.key, Known(since=self._now))
        if self._within(known, self._window):
            known.more += 1
        else:
            self._tell(cause, known)

    def flush(self) -> None:
        """Tells how often what was told came again, once its window is over; then it is forgotten."""
        for key, known in list(self.state.events.items()):
            if not self._within(known, self._window):
                if known.more:
                    self._tell(Cause(key, key), known)
                else:
                    del self.state.events[key]
        self.save()

    def stand(self, causes: Iterable[Cause]) -> None:
        """Tells what stands and has stood for as long as it may, once a day; what stands no longer is forgotten."""
        causes = list(causes)
        keys = {cause.key for cause in causes}
        self.state.standing = {key: known for key, known in self.state.standing.items() if key in keys}
        for cause in causes:
            known = self.state.standing.setdefault(cause.key, Known(since=self._now))
            if self._now - known.since >= cause.patience and not self._within(known, _DAY):
                self._tell(cause, known)
        self.save()

    def daily(self, hour: int | None, news: Callable[[], str]) -> None:
        """Tells the day's news once a day, from an hour in Shanghai on: so that silence is noticed."""
        local = self._now.astimezone(SHANGHAI)
        if hour is not None and local.hour >= hour and self.state.digest != local.date():
            self._send(f"news of {local.date()}", news())
            self.sent += 1
            self.state.digest = local.date()
            self.save()

    def save(self) -> None:
        """Keeps what was told."""
        write_whole(self._path, self.state.model_dump_json().encode())

    def _within(self, known: Known, window: dt.timedelta) -> bool:
        """Whether it was told in the window; of a clock that was put back nothing is known."""
        return known.sent is not None and dt.timedelta() <= self._now - known.sent < window

    def _tell(self, cause: Cause, known: Known) -> None:
        again = f"\nand {known.more:,} times more since {known.sent:%Y-%m-%d %H:%M} UTC" if known.more else ""
        self._send(cause.title, f"{cause.details}{again}".strip())
        self.sent += 1
        known.sent, known.more = self._now, 0
        self.save()
