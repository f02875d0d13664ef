"""Tables of what was said about posts and dialogues: topics, emotions, reasoning chains. Made by models or by rules."""

import dataframely as dy

from schemas import labels
from schemas.table import PRIVATE, LlmMade, one_of


class Topics(LlmMade):
    """Main topic and subtopic of a post, from the taxonomy, where the source gives none."""

    row_id = dy.String(primary_key=True, description="a post")
    topic = dy.String(description="main topic of the taxonomy")
    subtopic = dy.String(nullable=True, description="subtopic of the taxonomy")


class Emotions(LlmMade):
    """The emotion of a post or an answer (E's mismatched negatives need it)."""

    row_id = dy.String(primary_key=True, description="a post or an answer")
    unit = one_of(("post", "answer"), description="which of the two")
    emotion = dy.String(description="the emotion that prevails")


class EcotChains(LlmMade):
    """M §3.1: situation, motivation, strategy, answer. For inspection and evaluation; M trains by RL alone."""

    post_id = dy.String(primary_key=True, description="the post")
    situation = dy.String(description="the seeker's emotional and social context", metadata=PRIVATE)
    motivation = dy.String(description="the need beneath it", metadata=PRIVATE)
    strategy = dy.String(description="how to support", metadata=PRIVATE)
    answer = dy.String(description="the reply to the seeker", metadata=PRIVATE)


class CoeChains(LlmMade):
    """E §3.2: the chain L1–L4 that leads from a question to a human answer."""

    post_id = dy.String(primary_key=True, description="the question")
    answer_id = dy.String(description="the human answer that the chain leads to")
    draw_probability = dy.Float64(min=0, max=1, description="how likely this answer was drawn among its siblings")
    L1 = dy.String(description="emotions and context", metadata=PRIVATE)
    L2 = dy.String(description="causes and beliefs", metadata=PRIVATE)
    L3 = dy.String(description="intent", metadata=PRIVATE)
    L4 = dy.String(description="response strategy", metadata=PRIVATE)
    answer = dy.String(description="the human answer, verbatim", metadata=PRIVATE)
    reasoning = dy.String(
        nullable=True, description="the model's own reasoning, apart from the chain", metadata=PRIVATE
    )


class CerCandidates(LlmMade):
    """C: three controllable steps and a response to a sampled round, from its history only."""

    dialogue_id = dy.String(primary_key=True, description="the dialogue")
    round = dy.Int64(primary_key=True, min=1, description="the sampled round")
    candidate = dy.Int64(primary_key=True, min=1, description="which of the models' candidates")
    stage = one_of(labels.STAGES.en, description="step 1: stage of the conversation")
    history_reasoning = dy.String(description="step 1, free text", metadata=PRIVATE)
    sentiment = one_of(labels.SENTIMENTS.en, description="step 2: sentiment")
    emotion = dy.String(description="step 2: fine-grained emotion")
    intensity = dy.Int8(min=1, max=5, description="step 2: intensity, 1–5")
    emotion_reasoning = dy.String(description="step 2, free text", metadata=PRIVATE)
    strategy = one_of(tuple(label.en for label in labels.ANSWERABLE_STRATEGIES), description="step 3: strategy")
    strategy_reasoning = dy.String(description="step 3, free text", metadata=PRIVATE)
    response = dy.String(description="the reply", metadata=PRIVATE)
