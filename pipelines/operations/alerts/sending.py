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
_AT_ONCE = 10  # messages of what stands; more are one
# A run may be written down a little later than it says, and a clock be put back by an hour: so far behind the last look
# runs are looked at again.
OVERLAP = dt.timedelta(hours=2)


class Known(BaseModel):
    """What is known of a cause: since when (None: it stands no longer), when it was told, how often it came since and
    was not, and what was said of it.
    """

    since: dt.datetime | None
    sent: dt.datetime | None = None
    more: int = 0
    title: str = ""
    details: str = ""


class State(BaseModel):
    """What somebody was told of. `begun`: since when; `cursor`: up to which moment the runs of Dagster were looked at;
    `looked_at`: runs that ended shortly before it, and causes of these, each with the moment.
    """

    begun: dt.datetime
    cursor: dt.datetime
    looked_at: dict[str, dt.datetime] = Field(default_factory=dict)
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
    """Sends a message to all; returns which did not take it, as others did: their kinds, and addresses that are none.

    Raises RequestError where all addresses are none, Refused where nobody took it. No redirect is followed: a message
    goes to no other host, and one that answers so has not taken it.
    """
    import apprise

    asset = apprise.AppriseAsset(
        app_id="gongqing", storage_mode=apprise.PersistentStoreMode.MEMORY, http_redirects=False
    )
    refused, wrong, taken = [], [], 0
    for number, address in enumerate(addresses, 1):
        kind, receiver = address.partition("://")[0], apprise.Apprise(asset=asset)
        if not receiver.add(address):
            wrong.append(f"receiver {number} is no address of apprise")
        elif receiver.notify(title=f"gongqing: {title}", body=text or title, body_format=apprise.NotifyFormat.TEXT):
            taken += 1
        else:
            refused.append(f"{kind}, number {number}")
    if wrong and not taken and not refused:
        hint = "as apprise has them: feishu://…, dingtalk://…, wecombot://…, slack://…, mailtos://…, json://…"
        raise RequestError("; ".join(wrong), where=RECEIVERS, hint=hint)
    if not taken:
        where = "; ".join([*refused, *wrong])
        raise Refused("nobody took the message", where=where, hint="gongqing alerts --test tries again")
    return [*refused, *wrong]


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
            except ValidationError:
                written = dt.datetime.fromtimestamp(self._path.stat().st_mtime, dt.UTC)
                self.state = State(begun=written, cursor=written)  # of what happened since nobody was told
                title = "what was told before could not be read: from now on it is noted anew"
                self.event(Cause("told", title, f"{self._path}; what stands is told again"))
        else:
            self.state = State(begun=now, cursor=now)
        # A clock that was ahead once must not hide what happens until then.
        self.state.begun, self.state.cursor = min(self.state.begun, now), min(self.state.cursor, now)
        for known in self.state.standing.values():
            known.since = known.since and min(known.since, now)

    def is_new(self, name: str, at: dt.datetime) -> bool:
        """Whether a run, or what else ended at a moment, is none that was looked at, or that ended before the first
        look.
        """
        return at >= self.state.begun and name not in self.state.looked_at

    def look_at(self, name: str, at: dt.datetime, causes: Iterable[Cause]) -> None:
        """Tells the causes of a run that ended at a moment, each once, however often a refusal broke that off."""
        for cause in causes:
            key = f"{name} {cause.key}"
            if key not in self.state.looked_at:
                self.event(cause)
                self.state.looked_at[key] = at
                self.save()
        self.state.looked_at[name] = at
        self.state.cursor = max(self.state.cursor, at)
        self.state.looked_at = {
            key: when for key, when in self.state.looked_at.items() if when >= self.state.cursor - OVERLAP
        }
        self.save()

    def event(self, cause: Cause) -> None:
        """Tells what has happened once; again within the window it is counted. Raises what `send` raises."""
        known = self.state.events.setdefault(cause.key, Known(since=self._now))
        known.title, known.details = cause.title, cause.details
        if self._within(known, self._window):
            known.more += 1
        else:
            self._tell(cause, known)

    def flush(self) -> None:
        """Tells how often what was told came again, once its window is over; then it is forgotten."""
        for key, known in list(self.state.events.items()):
            if not self._within(known, self._window):
                if known.more:
                    again = f"again: {known.details}" if known.details else ""
                    self._tell(Cause(key, known.title or key, again), known)
                else:
                    del self.state.events[key]
        self.save()

    def stand(self, causes: Iterable[Cause]) -> None:
        """Tells what stands and has stood for as long as it may, once a day. What stands no longer is told anew when it
        comes again, but within the window of its message.
        """
        by_key = {cause.key: cause for cause in causes}
        for key, known in list(self.state.standing.items()):
            if key not in by_key:
                known.since = None
                if not self._within(known, self._window):
                    del self.state.standing[key]
        due = []
        for cause in by_key.values():
            known = self.state.standing.setdefault(cause.key, Known(since=self._now))
            since = known.since = known.since or self._now
            told = known.sent is not None and known.sent >= since
            if self._now - since >= cause.patience and not self._within(known, _DAY if told else self._window):
                due.append((cause, known))
        if len(due) > _AT_ONCE:
            self._send(f"{len(due)} things stand", "\n".join(cause.title for cause, _ in due))
            self.sent += 1
            for _, known in due:
                known.sent = self._now
        else:
            for cause, known in due:
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
        again = f"\nand {known.more:,} more since {known.sent:%Y-%m-%d %H:%M} UTC" if known.more else ""
        self._send(cause.title, f"{cause.details}{again}".strip())
        self.sent += 1
        known.sent, known.more = self._now, 0
        self.save()
