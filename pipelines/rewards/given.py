"""What verl hands to a reward beside what the reward names: `reward_kwargs` of the recipe, and things of its own."""

from collections.abc import Collection, Mapping
from typing import Any

# verl's own, and what our manager adds.
_OF_VERL = frozenset(("data_source", "solution_str", "ground_truth", "extra_info", "length"))


def refuse_unknown(given: Mapping[str, Any], known: Collection[str] = ()) -> None:
    """Raises TypeError for a setting that a reward does not have: one that is misspelt would train something else.

    Args:
        given: What a reward was handed and does not name.
        known: Settings that another part of it reads.
    """
    if unknown := sorted(given.keys() - _OF_VERL - set(known)):
        raise TypeError(f"the reward has no setting {', '.join(unknown)}: look at reward_kwargs")
