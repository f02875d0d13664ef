"""C, "Personality-based Conversation Rewriting": DISC profiles, personas, rewritten dialogues."""

import dataframely as dy

from schemas import labels
from schemas.dialogues import TURN, Dialogues
from schemas.table import PRIVATE, LlmMade, Table, one_of


def _trait(name: str) -> dy.Float64:
    return dy.Float64(min=0, max=1, description=f"{name}, 0–1")


class DiscProfiles(LlmMade):
    """The DISC profile of one speaker of a dialogue."""

    dialogue_id = dy.String(primary_key=True, description="the dialogue")
    role = one_of(labels.ROLES, primary_key=True, description="which speaker")
    D = _trait("dominance")
    I = _trait("influence")  # noqa: E741  # the name of the trait
    S = _trait("steadiness")
    C = _trait("compliance")
    evidence = dy.List(dy.String(), description="quotes of the speaker, verbatim", metadata=PRIVATE)
    description = dy.String(description="the personality in a few sentences", metadata=PRIVATE)


class Personas(Table):
    """The cluster of each profile; seekers and supporters are clustered apart."""

    persona_id = dy.String(primary_key=True, description="`dialogue_id/role` of the profile")
    role = one_of(labels.ROLES, description="which speaker")
    cluster = dy.Int64(min=0, description="the cluster, from 0")
    cluster_name = dy.String(description="its leading traits")
    vector = dy.List(dy.Float64(), description="what was clustered: standardised D, I, S, C, or an embedding")
    description = dy.String(description="the personality in a few sentences", metadata=PRIVATE)


class RewrittenDialogues(LlmMade):
    """A dialogue rewritten turn by turn: to a persona (P), without one (R), or copied (D)."""

    dialogue_id = dy.String(primary_key=True, description="the rewritten dialogue")
    source_dialogue_id = dy.String(description="the dialogue it was made from")
    variant = one_of(("D", "R", "P"), description="duplicate, rewrite, or persona")
    persona_id = dy.String(nullable=True, description="the persona drawn; null but for P")
    turns = dy.List(
        TURN, description="the turns; as many, with roles and strategies as in the source", metadata=PRIVATE
    )
    lang = Dialogues.columns()["lang"]
    group_id = dy.String(description="the group of the source dialogue")
