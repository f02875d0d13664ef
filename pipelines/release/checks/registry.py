"""All checks, in the order in which their findings are told."""

from collections.abc import Callable, Iterator

from pipelines.release.checks.anonymity import k_anonymity
from pipelines.release.checks.descendants import descendants, groups
from pipelines.release.checks.erased import erased
from pipelines.release.checks.media import media
from pipelines.release.checks.near import near_duplicates
from pipelines.release.checks.not_from_a_model import NOT_FROM_A_MODEL, UNJUDGED, not_from_a_model, unjudged
from pipelines.release.checks.personal import personal_data
from pipelines.release.checks.released import Released
from pipelines.release.checks.retold import retold
from pipelines.release.checks.risk import minors, risks
from pipelines.release.checks.sources import licences
from pipelines.release.checks.versions import empty
from pipelines.store.release_manifest import Finding

Check = Callable[[Released], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    *(near_duplicates, retold, descendants, groups),
    *(personal_data, not_from_a_model, unjudged, risks, minors, licences, erased),
    *(k_anonymity, media, empty),
)

# What somebody may allow by its name: it harms nobody, and the release is marked. The rest has to be mended.
ALLOWABLE = (NOT_FROM_A_MODEL,)
# What refuses only where somebody asks for it (`--strict`), and is told else.
STRICT = (UNJUDGED,)


def findings(released: Released, *, strict: bool = False) -> list[Finding]:
    """What all checks find: those that refuse first, each kind in the order of the checks."""
    found = [finding for check in CHECKS for finding in check(released)]
    if strict:
        found = [one.model_copy(update={"severity": "refuse"}) if one.check in STRICT else one for one in found]
    return sorted(found, key=lambda finding: finding.severity != "refuse")
