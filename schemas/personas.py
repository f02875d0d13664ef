"""C, "Personality-based Conversation Rewriting": DISC profiles, personas, rewritten dialogues and labelled rounds."""

import dataframely as dy

from schemas import labels
from schemas.dialogues import SPOKEN, TURN, Dialogues
from schemas.table import NO_MODEL, PRIVATE, LlmMade, Table, one_of

_LANG = Dialogues.columns()["lang"]


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
    lang = _LANG
    group_id = dy.String(description="the group of the dialogue")


class PersonaFits(Table):
    """How the personas of a role were clustered: given once, and kept until it is fitted again."""

    role = one_of(labels.ROLES, primary_key=True, description="which speaker")
    k = dy.Int64(min=1, description="how many clusters")
    elbow = dy.Bool(description="whether the curve showed an elbow; else the rule for a curve without one gave k")
    curve = dy.List(dy.Float64(), description="the sum of squared errors for 1, 2, … clusters")
    names = dy.List(dy.String(), description="the leading traits of each cluster")
    centres = dy.List(dy.List(dy.Float64()), description="the centre of each cluster")
    mean = dy.List(dy.Float64(), description="what was taken off each coordinate")
    scale = dy.List(dy.Float64(), description="what each coordinate was then divided by")
    error = dy.Float64(min=0, description="mean squared distance to the nearest centre, when it was fitted")
    pool = dy.List(dy.String(), description="the personas it was fitted on: these, and no later ones, are drawn")
    fitted_by = dy.String(description="the settings that it was fitted by, as JSON")


class Personas(Table):
    """The cluster of each profile; seekers and supporters are clustered apart."""

    persona_id = dy.String(primary_key=True, description="`dialogue_id/role` of the profile")
    role = one_of(labels.ROLES, description="which speaker")
    cluster = dy.Int64(min=0, description="the cluster, from 0")
    cluster_name = dy.String(description="its leading traits")
    vector = dy.List(dy.Float64(), description="what was clustered: standardised D, I, S, C, or an embedding")
    distance = dy.Float64(min=0, description="how far it is from the centre of its cluster")
    fitted = dy.Bool(description="whether the clusters were fitted on it: only these are drawn")
    description = dy.String(description="the personality in a few sentences", metadata=PRIVATE)
    lang = _LANG
    group_id = dy.String(description="the group of the dialogue")


class Variant(LlmMade):
    """What every table of rewritten texts has. A copy (D) was made by nobody: its provider is `none`."""

    provider = one_of(
        ("openai", "replay", *NO_MODEL, "none"),
        description="what wrote it: an API, a recording, people, rules (older versions); none: a copy",
    )
    variant = one_of(("D", "R", "P"), primary_key=True, description="duplicate, rewrite, or persona")
    dialogue_id = dy.String(description="the dialogue that it was made from")
    persona_id = dy.String(nullable=True, description="the persona drawn for the seeker; null but for P")
    supporter_persona_id = dy.String(nullable=True, description="the same for the supporter")
    lang = _LANG
    group_id = dy.String(description="the group of the source dialogue")


LINE = dy.Struct(
    {
        "who": one_of(("seeker", "supporter", "reference", "response", "analysis"), description="who says it"),
        "text": dy.String(description="the words"),
    }
)


class RewriteDrafts(Variant):
    """A dialogue, or a labelled round with its replies and steps, as it was rewritten; nobody has judged it yet."""

    unit = one_of(("dialogue", "label"), primary_key=True, description="which of the two")
    row_id = dy.String(primary_key=True, description="`dialogue_id`, or `dialogue_id#round/candidate`")
    source = dy.String(description="a hash of what it was made from: of one that changed it is made again")
    lines = dy.List(LINE, description="as many, by the same speakers in the same order as before", metadata=PRIVATE)
    similarity = dy.Float64(min=-1, max=1, description="to what it was: the encoder's cosine, or the share of wording")


class RewriteJudgements(LlmMade):
    """What a second look says of a draft."""

    unit = one_of(("dialogue", "label"), primary_key=True, description="as in the draft")
    row_id = dy.String(primary_key=True, description="as in the draft")
    variant = one_of(("R", "P"), primary_key=True, description="as in the draft; a copy needs no judge")
    judged = dy.String(description="a hash of the lines that were judged: a draft that was made again is judged again")
    same_meaning = dy.Bool(description="whether it means what the source means")
    strategies_lost = dy.List(dy.Int64(), description="lines, from 1, that do not do any more what their label says")
    why = dy.String(description="the grounds, in a sentence or two", metadata=PRIVATE)


class RewrittenDialogues(Variant):
    """A dialogue rewritten turn by turn: to a persona (P), without one (R), or copied (D)."""

    dialogue_id = dy.String(primary_key=True, description="the source's id, `~` and the variant")
    source_dialogue_id = dy.String(description="the dialogue it was made from")
    variant = one_of(("D", "R", "P"), description="duplicate, rewrite, or persona")
    turns = dy.List(TURN, description="as many, with roles and strategies as in the source", metadata=PRIVATE)


class RewrittenRounds(Variant):
    """A labelled round rewritten whole, history, both replies and steps, with the verdicts of its label (C)."""

    dialogue_id = dy.String(primary_key=True, description="the source's id, `~` and the variant")
    round = dy.Int64(primary_key=True, min=1, description="the sampled round")
    candidate = dy.Int64(primary_key=True, min=1, description="the candidate that was labelled")
    source_dialogue_id = dy.String(description="the dialogue it was made from")
    variant = one_of(("D", "R", "P"), description="duplicate, rewrite, or persona")
    history = dy.List(SPOKEN, description="what was said up to the seeker's turn of the round", metadata=PRIVATE)
    reference = dy.String(description="the reply of the source", metadata=PRIVATE)
    response = dy.String(description="the candidate's reply", metadata=PRIVATE)
    stage = one_of(labels.STAGES.en, description="step 1: stage, as the candidate had it")
    history_reasoning = dy.String(description="step 1, free text", metadata=PRIVATE)
    sentiment = one_of(labels.SENTIMENTS.en, description="step 2: sentiment")
    emotion = dy.String(description="step 2: fine-grained emotion")
    intensity = dy.Int8(min=1, max=5, description="step 2: intensity, 1–5")
    emotion_reasoning = dy.String(description="step 2, free text", metadata=PRIVATE)
    strategy = one_of(labels.STRATEGIES.en, description="step 3: strategy")
    strategy_reasoning = dy.String(description="step 3, free text", metadata=PRIVATE)
    step1 = dy.Bool(description="step 1 is right, as people said of the source")
    step2 = dy.Bool(description="step 2 is right, as people said of the source")
    step3 = dy.Bool(description="step 3 is right, as people said of the source")
    preference = one_of(labels.PREFERENCES, description="first (the reference), second (the candidate), both, neither")
