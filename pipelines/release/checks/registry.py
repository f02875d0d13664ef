"""All checks, in the order in which their findings are listed."""

from collections.abc import Callable, Iterator

from pipelines.release.checks.leaks import descendants, groups, near_duplicates, text_reuse
from pipelines.release.checks.not_from_a_model import NOT_FROM_A_MODEL, UNJUDGED, not_from_a_model, unjudged
from pipelines.release.checks.people import erased, k_anonymity, minors, personal_data, risks
from pipelines.release.checks.released import Released, empty
from pipelines.release.checks.sources import licences, media
from pipelines.store.release_manifest import Finding

Check = Callable[[Released], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    *(near_duplicates, text_reuse, descendants, groups),
    *(personal_data, not_from_a_model, unjudged, risks, minors, licences, erased),
    *(k_anonymity, media, empty),
)

# What may be allowed by its name: it harms nobody, and the release is marked. The rest has to be mended.
ALLOWABLE = (NOT_FROM_A_MODEL,)
# What refuses under `--strict` alone, and is a warning else.
STRICT = (UNJUDGED,)


def findings(released: Released, *, strict: bool = False) -> list[Finding]:
    """What all checks find: those that refuse first, each kind in the order of the checks."""
    listed = [finding for check in CHECKS for finding in check(released)]
    if strict:
        listed = [one.model_copy(update={"severity": "refuse"}) if one.check in STRICT else one for one in listed]
    return sorted(listed, key=lambda finding: finding.severity != "refuse")
