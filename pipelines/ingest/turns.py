"""From utterances to turns in which seeker and supporter alternate."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from pipelines.ingest.forms import Unfit, shown
from pipelines.ingest.records import Origin, Utterance
from schemas.labels import normalise_strategies

ALIASES = {
    "seeker": "seeker speaker user usr human client patient help-seeker 来访者 求助者 用户",
    "supporter": (
        "supporter listener assistant sys gpt bot model therapist counselor counsellor 心理咨询师 咨询师 支持者"
    ),
}
_ROLES = {alias: role for role, aliases in ALIASES.items() for alias in aliases.split()}


class Joined(NamedTuple):
    """Turns as rows of `schemas.dialogues.TURN`, what joining them set aside, and the counts that an import reports."""

    turns: list[dict[str, Any]]
    attributes: list[tuple[str, str]]
    notes: Counter[str]
    unknown_strategies: Counter[str]


def role_of(name: str) -> str | None:
    """seeker, supporter, or None for a name that stands for neither."""
    return _ROLES.get(name.strip().casefold())


def n_rounds(roles: Sequence[str]) -> int:
    """Seeker turns that a supporter turn answers."""
    return sum(pair == ("seeker", "supporter") for pair in pairwise(roles))


def join(utterances: Sequence[Utterance], origin: Origin) -> Joined:
    """Turns that alternate: utterances of one speaker in a row are one turn, a line each.

    Empty utterances are left out and counted. A joined turn has the strategies of all its utterances, the emotion
    that most of them have (the first of several alike) and the latest feedback; where they differ, all of them
    stand in the attributes. A dialogue of one side has turns but no round: it is for the filters to judge.
    Raises Unfit for a role that stands for neither side, and where no utterance holds anything.
    """
    spoken = [(_role(utterance, i), utterance) for i, utterance in enumerate(utterances)]
    visible = [(role, utterance) for role, utterance in spoken if _visible(utterance.text)]
    groups = [(role, [one for _, one in group]) for role, group in groupby(visible, key=lambda pair: pair[0])]
    if not groups:
        raise Unfit("no_turns", "nobody says anything")
    unknown = Counter(name for _, one in visible for name in normalise_strategies([*one.strategies]).unknown)
    notes = Counter(
        empty_turns=len(spoken) - len(visible),
        joined_turns=len(visible) - len(groups),
        opened_by_supporter=int(groups[0][0] == "supporter"),
        one_sided=int(len(groups) == 1),
    )
    attributes = []
    for i, (_, group) in enumerate(groups):
        for what, labels in (("emotions", _emotions(group)), ("feedback", _feedback(group))):
            if len(set(labels)) > 1:
                attributes.append((f"turns.{i}.{what}", "|".join(map(str, labels))))
    if notes["empty_turns"]:
        attributes.append(("empty_turns", str(notes["empty_turns"])))
    return Joined([_turn(role, group, origin) for role, group in groups], attributes, notes, unknown)


def _visible(text: str) -> bool:
    """Whether `text` holds more than white space, control and zero-width characters."""
    return any(unicodedata.category(character)[0] not in "ZC" for character in text)


def _role(utterance: Utterance, i: int) -> str:
    role = role_of(utterance.role)
    if role is None:
        raise Unfit("unknown_role", f"utterance {i + 1}: {shown(utterance.role)}")
    return role


def _turn(role: str, group: list[Utterance], origin: Origin) -> dict[str, Any]:
    strategies = list(dict.fromkeys(name for utterance in group for name in utterance.strategies))
    emotions, feedback = _emotions(group), _feedback(group)
    return {
        "role": role,
        "text": "\n".join(utterance.text.strip() for utterance in group),
        "strategies": normalise_strategies(strategies).known,
        "source_strategies": strategies,
        "emotion": Counter(emotions).most_common(1)[0][0] if emotions else None,
        "feedback": feedback[-1] if feedback else None,
        "origin": origin.seeker if role == "seeker" else origin.supporter,
        "media": [clip._asdict() | {"available": False} for utterance in group for clip in utterance.media],
    }


def _emotions(group: list[Utterance]) -> list[str]:
    return [utterance.emotion for utterance in group if utterance.emotion]


def _feedback(group: list[Utterance]) -> list[int]:
    return [utterance.feedback for utterance in group if utterance.feedback is not None]
