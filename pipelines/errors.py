"""Every error that a person may meet, each saying what, where, and what to do.

A GongqingError ends a command with exit code 1: the work failed. A RequestError ends it with 2: the request was wrong.
"""

import difflib
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any


class GongqingError(Exception):
    """Base of all; `str()` gives what happened, where, and the hint."""

    exit_code = 1

    def __init__(self, what: str, *, where: object = None, hint: str = "") -> None:
        self.what = what
        self.where = where
        self.hint = hint
        super().__init__(what)

    def __str__(self) -> str:
        text = self.what if self.where is None else f"{self.what}\n  where: {self.where}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class Interrupted(GongqingError):
    """Raised by `pipelines.defs.running` for work that somebody ended, by Ctrl-C."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("interrupted", hint="the same command goes on where it was")


class RequestError(GongqingError):
    """Raised by the command line and the public calls for a request that cannot be carried out as asked."""

    exit_code = 2


class SettingsError(RequestError):
    """Raised by `pipelines.settings` for an unknown key or an impossible value."""


class UnknownName(RequestError):
    """Raised wherever a name is looked up in a closed set; names the nearest one."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str = "") -> None:
        known = sorted(known)
        near = difflib.get_close_matches(name, known, n=1)
        nearest = f"did you mean {near[0]!r}? " if near else ""
        listed = ", ".join(known) if known else "none"
        super().__init__(f"there is no {kind} {name!r}", hint=hint or f"{nearest}known: {listed}")


class UnreadableFile(RequestError):
    """Raised by `pipelines.ingest` and `pipelines.review` for a file that is missing, empty, or in no known form."""


class NoHost(RequestError):
    """Raised by `pipelines.llm.profiles.host` for a profile without a base URL."""


class NoKey(RequestError):
    """Raised by `pipelines.llm.profiles.key` where the variable that should hold the key is not set."""


class UnknownPrice(RequestError):
    """Raised by `pipelines.llm.money` for a model without a price, or a request whose cost has no upper bound."""


class StoreError(GongqingError):
    """Base of what `pipelines.store` raises."""


class NoVersion(StoreError):
    """Raised by `Store` when a table (or partition) is read that was never written."""


class DamagedVersion(StoreError):
    """Raised by `Store` when a file of a version is missing, cut short, or not what its manifest says."""


class InvalidRows(StoreError):
    """Raised by `Store.write` for rows that break their table's schema: nothing is written."""


class DamagedRelease(StoreError):
    """Raised by `pipelines.store.releases` where a file of a release is missing, or not what its manifest says."""


class OlderSchema(StoreError):
    """Raised by `Store.require_todays` for a version whose columns mean, or are, something else than they do today."""


class NewerHome(StoreError):
    """Raised by `Store` for a pointer, a manifest or columns that only a newer gongqing knows: nothing is touched."""


class StorageFull(StoreError):
    """Raised by `Store.write`, and by other writers, when the device is full: what stood there still does."""


class StorageDenied(StoreError):
    """Raised by `pipelines.core.files.storage_error` for a place that may not be read or written."""


class StorageBroken(StoreError):
    """Raised by `pipelines.core.files.storage_error` for a device that fails at reading or writing."""


class StorageUnreachable(StoreError):
    """Raised by `pipelines.store.object_storage`, and where polars reads from it, for a bucket that is not there,
    refuses its user, or does not answer.
    """


class ReleaseRefused(GongqingError):
    """Raised by `pipelines.operations.release`; `findings` (`pipelines.store.release_manifest`) are what to mend.

    All findings of the checks are there, warnings among them, so that everything can be mended in one go.
    """

    def __init__(self, name: str, findings: Sequence[Any]) -> None:
        self.findings = tuple(findings)
        refusals = "; ".join(one.what for one in self.findings if one.severity == "refuse")
        super().__init__(
            f"the release {name} is refused, and nothing was written: {refusals}",
            hint="mend what the findings name, each with its hint, then run the same command again",
        )


class LabelsRefused(RequestError):
    """Raised by `pipelines.operations.review` for labels of which some cannot be taken; `refusals`
    (`pipelines.review.importing`) are all of them, each with its file, line, task and reason.
    """

    def __init__(self, refusals: Sequence[Any]) -> None:
        self.refusals = tuple(refusals)
        super().__init__(
            f"{len(self.refusals):,} labels are refused, and none was taken",
            where="\n         ".join(map(str, self.refusals)),
            hint="mend or remove these lines, then import all files again (docs/reviewing.md)",
        )


class LlmError(GongqingError):
    """Base of what `pipelines.llm` raises once it has begun to ask."""


class BudgetSpent(LlmError):
    """Raised by `pipelines.llm.ledger` before a call that might pass the cap: it is not sent.

    A call that is `too_dear` alone ends no run; where no question is cheaper, `pipelines.llm` raises it.

    `spent`, `held` (by calls in flight or perhaps billed), `wanted` (by the refused call) and `cap` are amounts of
    `currency`. `waiting` is how many questions have no answer yet, where the caller knows.
    """

    def __init__(
        self, *, spent: Decimal, held: Decimal, wanted: Decimal, cap: Decimal, currency: str, waiting: int | None = None
    ) -> None:
        self.spent, self.held, self.wanted, self.cap = spent, held, wanted, cap
        self.currency, self.waiting = currency, waiting
        rest = "" if waiting is None else f"; {waiting} questions wait"
        if self.too_dear:
            super().__init__(
                f"the budget is too small: the call may cost {wanted:f} {currency}, and the whole budget is "
                f"{cap:f} {currency}{rest}",
                hint="ask again with a larger --budget",
            )
            return
        aside = f" and {held:f} set aside for calls that may yet be billed" if held else ""
        super().__init__(
            f"the budget is used up: {spent:f} {currency} spent{aside}, of {cap:f} {currency}; "
            f"the next call may cost {wanted:f}{rest}",
            hint="ask again with a larger --budget: what is answered is not asked again",
        )

    @property
    def too_dear(self) -> bool:
        """Whether the call alone may cost more than the whole budget."""
        return self.wanted > self.cap

    @property
    def figures(self) -> str:
        """What the call may cost, and what there is, for the detail of a drop."""
        return f"may cost {self.wanted:f}, of {self.cap:f} {self.currency} in all"

    def with_waiting(self, waiting: int) -> "BudgetSpent":
        """The same, with how many questions wait."""
        again: BudgetSpent = self.__reduce__()[0](waiting=waiting)
        return again

    def __reduce__(self) -> tuple[Any, ...]:
        """Its arguments are named ones, which pickling does not know of by itself."""
        names = ("spent", "held", "wanted", "cap", "currency", "waiting")
        return partial(BudgetSpent, **{name: getattr(self, name) for name in names}), ()


class HostRefused(LlmError):
    """Raised by `pipelines.llm` where a host refuses what it is asked and would refuse the rest as well."""


class TooManyInvalid(LlmError):
    """Raised by `pipelines.llm.failures` where more of a model's replies are invalid than [llm] failures allows."""


class LedgerError(LlmError):
    """Base of what `pipelines.llm.ledger` raises about its file."""


class DamagedLedger(LedgerError):
    """Raised by `Ledger` for a file that is damaged, no ledger of ours, or made by a newer version of this code."""


class LedgerFull(LedgerError):
    """Raised by `Ledger` when the device is full: what was to be written is not there, not even by half."""


class LedgerBusy(LedgerError):
    """Raised by `Ledger` when another process holds the file for too long, or a batch has yet to be collected."""


class Shrunk(GongqingError):
    """Raised by `pipelines.flow.runner` where a table would lose half of its rows to other answers, or any for want of
    money: nothing is written.

    `table`, how many rows it has `before` and would have `after`, and how many are `unasked`, for want of money.
    """

    def __init__(self, table: str, before: int, after: int, unasked: int = 0) -> None:
        self.table, self.before, self.after, self.unasked = table, before, after, unasked
        why = f"for {unasked:,} are not asked about yet" if unasked else "only for other answers or for want of them"
        super().__init__(
            f"{table} would shrink from {before:,} rows to {after:,}, {why}: it stays as it was",
            hint=f"look at who answers (provider, model, host): gongqing refresh --select {table} --allow-shrink "
            "makes it all the same, without asking again what was answered (in Dagster: allow_shrink of the resource "
            "clients)",
        )


class TrainingFailed(GongqingError):
    """Raised by `pipelines.train.launch` for a trainer that ended with an error, or was killed."""


class CrawlFailed(GongqingError):
    """Raised by `pipelines.crawl` for a crawl that did not come to its end."""


class Unaccounted(GongqingError):
    """Raised by `pipelines.store.reconciliation` when rows in are not rows kept and rows dropped."""


class Busy(GongqingError):
    """Raised by `pipelines.flow.refresh` when another refresh is at work; says who holds the lock."""


class PrivateText(GongqingError):
    """Raised by `pipelines.release.publish.public` for an export in which words stand that may not be published."""


class HubError(GongqingError):
    """Raised by `pipelines.release.publish.hub` and `.fetch` where the Hub refuses, or cannot be reached."""


class HubMoved(HubError):
    """Raised by `pipelines.release.publish.hub` where somebody else commits while a release is on its way."""


class TagTaken(HubError):
    """Raised by `pipelines.release.publish.hub` where the release's name is a tag of other content already."""


class ImpossibleTable(RequestError):
    """Raised by `pipelines.evaluate.ranking` for a table that no rankings give; `contradictions` say why."""

    def __init__(self, contradictions: Sequence[str]) -> None:
        self.contradictions = tuple(contradictions)
        super().__init__(
            f"no rankings give this table: {'; '.join(contradictions)}",
            hint="look at how its figures are rounded, and whether every rater ranked all of its models",
        )
