"""Money in whole nano-units of a currency (1 USD = 10**9), so that a cap is kept exactly; and tokens, as counted."""

from dataclasses import dataclass
from decimal import Decimal

from pipelines.errors import RequestError

NANO = 10**9

# Of a currency. The ledger counts in nano-units, in 64 bits: beside this there is room for what is billed past a cap.
MOST = 9 * 10**9
# A host that reports more tokens of one call than this reports no count.
MOST_TOKENS = 10**9


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the host counted them. `cached` is a part of `prompt`; a chain of thought is part of `completion`."""

    prompt: int
    cached: int
    completion: int


@dataclass(frozen=True, slots=True)
class ReportedUsage:
    """What a host reports of a usage; None: it leaves a count out. `free`: a verdict, reported without a usage."""

    prompt: int | None = None
    cached: int = 0
    completion: int | None = None
    free: bool = False


def nano(amount: Decimal) -> int:
    """An amount in nano-units. Raises RequestError for one that is finer, negative, no number, or above MOST."""
    if amount.is_finite() and amount > MOST:
        raise RequestError(f"{amount} is more than the ledger can count", hint=f"give {MOST} at most")
    if amount.is_finite() and amount >= 0 and amount * NANO == (whole := int(amount * NANO)):
        return whole
    raise RequestError(f"{amount} is no amount of money", hint="give 0 or more, with nine decimals at most")


def amount(nano: int) -> Decimal:
    """Nano-units as an amount of the currency, exactly and without trailing zeros."""
    whole = (Decimal(nano) / NANO).normalize()
    return whole.quantize(Decimal(1)) if whole == whole.to_integral_value() else whole
