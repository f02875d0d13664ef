"""The retry policy: what is sent again, when and how often, for calls and for the Batch API alike.

Sent again is what got no answer in time, and what the host answers with one of RETRIED_STATUSES or from 500 on, unless
it asks to wait longer than LONGEST_WAIT. The SDK retries nothing: that would be paid for behind the ledger's back.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from pipelines.errors import HostRefused

RETRIED_STATUSES = frozenset({408, 409, 425, 429})
LONGEST_WAIT = 900.0  # seconds; a host that asks for more has closed for the day: ours


@dataclass(eq=False)
class RequestFailed(Exception):
    """A request that got no answer."""

    status: str  # one word for the ledger
    billed: Literal[False] | None  # False: nothing is owed; None: nobody knows
    after: float = 0.0  # seconds that the host asks to wait, 0 for none
    again: bool = True  # whether asking the same again may help
    refusal: HostRefused | None = None  # what ends the whole run; None: other questions may be answered


@dataclass(frozen=True)
class RetryPolicy:
    """How often something is sent, and the seconds between where the host names none: doubling from the first to the
    longest, and up to the jitter more. All ours.
    """

    tries: int
    first: float = 0.5
    longest: float = 60.0
    jitter: float = 1.0

    def attempts(self) -> Any:
        """The tries, each a context manager with its `num`; the last one raises."""
        import stamina

        # stamina would log every retry as a warning. The ledger has them all, and a progress bar is no place for them.
        stamina.instrumentation.set_on_retry_hooks(())
        return stamina.retry_context(
            on=should_retry,
            attempts=self.tries,
            timeout=None,
            wait_initial=self.first,
            wait_max=self.longest,
            wait_jitter=self.jitter,
        )


def should_retry(error: Exception) -> bool | float:
    """Whether to try again, and in how many seconds, where the host tells."""
    import openai

    if isinstance(error, RequestFailed):
        return error.again and (error.after or True)
    if isinstance(error, openai.APIStatusError):
        after = retry_after(error.response.headers)
        return is_retried(error.status_code) and after <= LONGEST_WAIT and (after or True)
    return isinstance(error, openai.APIConnectionError)


def is_retried(status: int) -> bool:
    """Whether a host that answers with this HTTP status may answer otherwise when it is asked the same again."""
    return status in RETRIED_STATUSES or status >= 500


def retry_after(headers: Any) -> float:
    """Seconds to wait: a number of them, or a date."""
    value = headers.get("retry-after", "0")
    try:
        return max(0.0, float(value))
    except ValueError:
        try:
            at = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return 0.0
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return max(0.0, (at - datetime.now(UTC)).total_seconds())
