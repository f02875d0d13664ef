"""What goes into the ledger and what comes out of it. Amounts as `int` are nano-units of a currency."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from pipelines.errors import BudgetSpent
from pipelines.llm.money import Usage


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it leaves."""

    key: str  # SHA-256 of the exact payload and the index of the sample
    stage: str  # the table that it is made for
    alias: str  # of the profile
    model: str
    payload: bytes  # the canonical JSON of the body
    sample: int = 0  # which draw of the same payload
    currency: str = "USD"  # of the profile's price, in which `reserve` and `cost` are counted
    repair: bool = False  # it follows a reply that was wrong or cut short


@dataclass(frozen=True, slots=True)
class Answer:
    """What the host sent back, as it came."""

    body: bytes
    served: str | None
    finish_reason: str | None
    usage: Usage
    cost: int  # in the currency of the call


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded(Answer):
    """An answer in the ledger; `at` is when it came (UTC)."""

    key: str
    alias: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request that may be sent now: it stands in the ledger, and its reserve is set aside."""

    id: int
    call: Call
    reserve: int
    budget: int | None


@dataclass(frozen=True, slots=True)
class InProgress:
    """A session that is alive, maybe this one, has sent the same request: wait, and try again."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A cap, what was spent, and what is held for calls that are in flight or may have been billed."""

    id: int
    of: str
    cap: int
    currency: str
    spent: int
    held: int
    opened: datetime


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """An attempt without an end. `lost`: its session is dead, and nobody knows whether it was billed."""

    id: int
    key: str
    stage: str
    alias: str
    model: str
    started: datetime
    reserve: Decimal
    currency: str
    lost: bool
    batch: int | None


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch; `file`, `vendor`, `output`, `errors`: the host's ids of its files and of itself, where known."""

    id: int
    alias: str
    host: str
    file: str | None
    vendor: str | None
    created: datetime
    output: str | None = None
    errors: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The host's ids of the files that hold texts."""
        return tuple(file for file in (self.file, self.output, self.errors) if file is not None)


@dataclass(frozen=True, slots=True)
class Planned:
    """What became of calls that were to go into one batch: all in `attempts` is in the batch, if there is one."""

    batch: Batch | None
    attempts: tuple[Attempt, ...]
    recorded: bool  # whether any was answered meanwhile
    too_expensive: Mapping[str, BudgetSpent]  # by key, those that no budget of this size allows
    refused: Exception | None  # why the rest was left out


@dataclass(frozen=True, slots=True)
class Spend:
    """What one stage asked of one model on one day (UTC)."""

    stage: str
    alias: str
    model_asked: str
    model_served: str | None
    day: str
    currency: str
    calls: int  # answered, whatever the answer was worth
    failed: int  # ended without an answer
    unsettled: int  # in flight, or lost
    repairs: int  # of those answered
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    cost: Decimal
    at_risk: Decimal  # set aside for calls that are in flight, were lost, or failed in a way that may have been billed


@dataclass(frozen=True, slots=True)
class PaidCall:
    """One attempt at a request, and what it cost; `at` is its end, or its beginning where it has none (UTC)."""

    key: str
    alias: str
    model_served: str | None
    at: datetime
    status: str  # answered, or how else it ended
    tokens_in: int
    tokens_out: int
    cost: Decimal
    at_risk: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer."""

    stage: str
    sample: int
    payload: bytes
    answer: Recorded
