"""Tables that models make of posts and dialogues: topics, emotions, reasoning chains."""

import dataframely as dy
import polars as pl

from schemas import labels
from schemas.table import PRIVATE, LlmMade, Table, one_of
from schemas.taxonomy import TAXONOMY


def _reasoning() -> dy.String:
    """What a model that thinks says before it answers: kept apart, and never a part of a training set."""
    return dy.String(nullable=True, description="the model's own reasoning, apart from the record", metadata=PRIVATE)


class Topics(LlmMade):
    """Main topic and subtopic of a post whose source gives none of the taxonomy, and whether it asks for help at all.

    A judgement is a row, also where it says that the post is out of place: what is made of posts leaves those out.
    """

    row_id = dy.String(primary_key=True, description="a post")
    topic = one_of(tuple(TAXONOMY), nullable=True, description="main topic; null only where not relevant")
    subtopic = dy.String(nullable=True, description="subtopic of the taxonomy, one of those of `topic`")
    relevant = dy.Bool(description="whether somebody asks for help with a trouble of mind or of living together")
    risk = dy.List(one_of(labels.RISKS), description="second opinion: signs of risk to life or limb; empty: none")
    why = dy.String(description="the grounds, in a sentence or two", metadata=PRIVATE)

    @dy.rule()
    def relevant_posts_have_a_topic(cls) -> pl.Expr:
        """No post that asks for help is left without a topic."""
        return ~pl.col("relevant") | pl.col("topic").is_not_null()

    @classmethod
    def _sampling_overrides(cls) -> dict[str, pl.Expr]:
        return {"relevant": pl.col("relevant") & pl.col("topic").is_not_null()}


class Emotions(LlmMade):
    """The emotion of a post or an answer (E's mismatched negatives need it)."""

    row_id = dy.String(primary_key=True, description="a post or an answer")
    unit = one_of(("post", "answer"), description="which of the two")
    emotion = one_of(labels.EMOTIONS.en, description="that prevails; of an answer, that it meets or conveys")
    intensity = dy.Int8(nullable=True, min=1, max=5, description="how strong, 1–5; null where it was not asked for")
    why = dy.String(description="the grounds, in a sentence or two", metadata=PRIVATE)


class EcotChains(LlmMade):
    """M §3.1: situation, motivation, strategy, answer. For inspection and evaluation; M trains by RL alone."""

    post_id = dy.String(primary_key=True, description="the post")
    group_id = dy.String(description="the group of the post")
    situation = dy.String(description="the seeker's emotional and social context", metadata=PRIVATE)
    motivation = dy.String(description="the need beneath it", metadata=PRIVATE)
    strategy = dy.String(description="how to support", metadata=PRIVATE)
    answer = dy.String(description="the reply to the seeker", metadata=PRIVATE)
    reasoning = _reasoning()


class CoeChains(LlmMade):
    """E §3.2: the chain L1–L4 that leads from a question to a human answer."""

    post_id = dy.String(primary_key=True, description="the question")
    group_id = dy.String(description="the group of the question")
    answer_id = dy.String(description="the human answer that the chain leads to")
    author_role = one_of(labels.AUTHOR_ROLES, description="who wrote it: no professional, only where none answered")
    draw_probability = dy.Float64(min=0, max=1, description="how likely this answer was drawn among its siblings")
    L1 = dy.String(description="emotions and context", metadata=PRIVATE)
    L2 = dy.String(description="causes and beliefs", metadata=PRIVATE)
    L3 = dy.String(description="intent", metadata=PRIVATE)
    L4 = dy.String(description="response strategy", metadata=PRIVATE)
    answer = dy.String(description="the human answer, verbatim", metadata=PRIVATE)
    reasoning = _reasoning()


class CerCandidates(LlmMade):
    """C: three controllable steps and a response to a sampled round, from its history only.

    Its split, and that of its labels, is that of its group in `splits`: nothing learns from a held-out one.
    """

    dialogue_id = dy.String(primary_key=True, description="the dialogue")
    round = dy.Int64(primary_key=True, min=1, description="the sampled round")
    candidate = dy.Int64(primary_key=True, min=1, description="which of the models' candidates")
    group_id = dy.String(description="the group of the dialogue")
    lang = one_of(labels.LANGUAGES, description="language of the dialogue, and of the candidate")
    stage = one_of(labels.STAGES.en, description="step 1: stage of the conversation")
    history_reasoning = dy.String(description="step 1, free text", metadata=PRIVATE)
    sentiment = one_of(labels.SENTIMENTS.en, description="step 2: sentiment")
    emotion = dy.String(description="step 2: fine-grained emotion")
    intensity = dy.Int8(min=1, max=5, description="step 2: intensity, 1–5")
    emotion_reasoning = dy.String(description="step 2, free text", metadata=PRIVATE)
    strategy = one_of(labels.STRATEGIES.en, description="step 3: strategy")
    strategy_reasoning = dy.String(description="step 3, free text", metadata=PRIVATE)
    response = dy.String(description="the reply", metadata=PRIVATE)
    reasoning = _reasoning()


class CerLabels(Table):
    """C: what annotators say of a candidate: each step right or wrong, and which response is better."""

    dialogue_id = dy.String(primary_key=True, description="the dialogue")
    round = dy.Int64(primary_key=True, min=1, description="the sampled round")
    candidate = dy.Int64(primary_key=True, min=1, description="the candidate that was labelled")
    labelled = dy.String(description="a hash of what was labelled: one that was made again is labelled again")
    step1 = dy.Bool(description="step 1 is right")
    step2 = dy.Bool(description="step 2 is right")
    step3 = dy.Bool(description="step 3 is right")
    preference = one_of(labels.PREFERENCES, description="first (the reference), second (the candidate), both, neither")
    annotators = dy.List(dy.String(), min_length=2, description="pseudonyms of who labelled it")
    consensus = one_of(("agreed", "adjudicated"), description="two agreed, or a third decided")
