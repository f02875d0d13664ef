"""Tables that train and evaluate: splits, sampled rounds, verl prompt sets, SFT and reward-model sets, rollouts."""

import dataframely as dy

from schemas import labels
from schemas.dialogues import SPOKEN
from schemas.posts import RISK
from schemas.table import PRIVATE, Table, one_of

MESSAGE = dy.Struct(
    {
        "role": one_of(("system", "user", "assistant"), description="as chat templates name it"),
        "content": dy.String(description="the text"),
    }
)


class Splits(Table):
    """The split of every group, given once and kept (DESIGN §2.8)."""

    group_id = dy.String(primary_key=True, description="rows that share a text, an opening, an answer or an author")
    split = one_of(labels.SPLITS, description="train, validation or test")
    given_at = dy.String(description="the tables and versions in which the group was first seen")
    members = dy.List(dy.String(), description="hashes of the texts and authors that tie a row to this group")


class SampledTurns(Table):
    """C eq. 1: the rounds drawn from each dialogue."""

    dialogue_id = dy.String(primary_key=True, description="the dialogue")
    round = dy.Int64(primary_key=True, min=1, description="the round, from 1")
    n_rounds = dy.Int64(min=1, description="rounds of the dialogue")
    probability = dy.Float64(min=0, max=1, description="p(i) of C eq. 1 for this round")
    history = dy.List(SPOKEN, description="what was said up to the seeker's turn of this round")
    reference = dy.String(description="the supporter's reply in the source")
    reference_origin = one_of(labels.ORIGINS, description="who wrote the reference: human, model or unknown")
    strategies = dy.List(dy.String(), description="strategies of the reference, our English labels")
    emotion = dy.String(nullable=True, description="of the seeker's turn, as the source labels it", metadata=PRIVATE)
    needs_media = dy.Bool(description="the history holds a clip for which text does not do, as its source says")
    has_media = dy.Bool(
        nullable=True, description="the history holds a clip; null in versions from before it was noted"
    )
    lang = one_of(labels.LANGUAGES, description="language")
    source = dy.String(description="the data set")
    topic = dy.String(nullable=True, description="topic of the dialogue", metadata=PRIVATE)
    situation = dy.String(nullable=True, description="the seeker's situation")
    risk = dy.List(RISK, description="signs of risk in the seeker's turns")
    under_18 = dy.Bool(description="the seeker says to be younger than 18: out of everything that trains")
    group_id = dy.String(description="the group of the dialogue")


class SampledRewrites(SampledTurns):
    """The same rounds of the rewritten dialogues (C's D, R and P), for prompts alone: candidates, labels and rewritings
    are made of `sampled_turns`.
    """

    dialogue_id = dy.String(primary_key=True, description="the source's id, `~` and the variant")
    source_dialogue_id = dy.String(description="the dialogue it was made from")
    variant = one_of(("D", "R", "P"), description="duplicate, rewrite, or persona")


EXTRA_INFO = dy.Struct(
    {
        "split": one_of(labels.SPLITS, description="as the column of the same name"),
        "index": dy.Int64(min=0, description="a number that follows from the row's id"),
        "row_id": dy.String(description="as the column of the same name"),
        "source": dy.String(description="the site or the data set"),
        "lang": one_of(labels.LANGUAGES, description="language to answer in"),
        "topic": dy.String(nullable=True, description="topic, as the source gives it"),
        "variant": one_of(labels.VARIANTS, nullable=True, description="as the column of the same name"),
        "dialogue": dy.List(SPOKEN, description="the dialogue, for verl's reward, which sees no prompt"),
        "references": dy.List(dy.String(), description="every answer or reply of the source"),
        "reference_origin": one_of(labels.ORIGINS, description="who wrote these: human, model or unknown"),
        "reference_id": dy.String(nullable=True, description="the answer that is the ground truth"),
        "draw_probability": dy.Float64(nullable=True, description="how likely it was drawn among its siblings"),
        "prompt_version": dy.String(description="id and version of the system prompt"),
        "prompt_length": dy.Int64(min=0, description="length of the prompt"),
        "prompt_length_unit": dy.String(description="characters, or tokens of the named tokenizer"),
        "unjudged": dy.Bool(description="the rules doubted that the post asks for help, and no model has judged it"),
    }
)


class PromptSet(Table):
    """One prompt of a verl GRPO set (verl 0.9, `RLHFDataset`)."""

    row_id = dy.String(primary_key=True, description="the post, or the round of a dialogue")
    data_source = dy.String(regex=r"^gongqing/(ecot|coe|cer)$", description="names the reward; no name verl knows")
    prompt = dy.List(MESSAGE, min_length=2, description="system prompt and dialogue, the seeker's turn last")
    ability = dy.String(description="informational: empathetic support")
    reward_model = dy.Struct(
        {
            "style": dy.String(description="informational: rule"),
            "ground_truth": dy.String(description="an answer of the source; empty where there is none"),
        },
        description="what verl hands to the reward",
    )
    extra_info = dy.Struct(EXTRA_INFO.inner, description="all that a reward or a judge needs", metadata=PRIVATE)
    split = one_of(labels.SPLITS, description="train, validation or test")
    variant = one_of(
        labels.VARIANTS,
        nullable=True,
        description="D, R or P of C's rewriting, or none; null in sets of older versions",
    )


class GrpoEcot(PromptSet):
    """M: a post, to be answered in ECoT."""


class GrpoCoe(PromptSet):
    """E: a question with answers, to be answered in CoE. E's are human: see `extra_info.reference_origin`."""


class GrpoCer(PromptSet):
    """C: a sampled round, as it was or rewritten, to be answered in CER."""


class Sample(Table):
    """What every training set has, and where each of its rows comes from."""

    row_id = dy.String(primary_key=True, description="`made_from`, and which of its samples")
    made_from = dy.String(description="the post, or the candidate of a round, that the sample was made from")
    group_id = dy.String(description="the group of that row")
    split = one_of(labels.SPLITS, description="train, validation or test")
    variant = one_of(labels.VARIANTS, description="D, R or P of C's rewriting, or none")
    providers = dy.List(dy.String(), description="what wrote or judged parts of it, labels by people aside")


class ChatSet(Sample):
    """A set of chat messages to learn from."""

    messages = dy.List(MESSAGE, min_length=2, description="the chat; what is learnt ends it", metadata=PRIVATE)


class SftCoe(ChatSet):
    """E: the warm start on CoE chains. E's were reviewed by professionals; `reviewed` says whether a row's was."""

    reviewed = dy.Bool(
        nullable=True, description="whether a professional has reviewed the chain; null: made before this was noted"
    )


class SftCer(ChatSet):
    """C: the warm start on CER chains judged right, behind the prompts of `grpo_cer`: only the last reply is learnt."""


class RmProcess(ChatSet):
    """C: a process reward model, one verdict a step. Held-out rows measure it."""


class RmOutcome(ChatSet):
    """C: an outcome reward model, one verdict a response. Held-out rows measure it."""


class RmUnified(ChatSet):
    """C: UnifiReward, verdicts on steps and response over several turns, each learnt. Held-out rows measure it."""


class RmTriplets(Sample):
    """E eq. 5: triplets for the contrastive answer reward."""

    kind = one_of(labels.NEGATIVES, description="E's three kinds of negatives")
    query = dy.String(description="the question", metadata=PRIVATE)
    positive = dy.String(description="an answer to it, a professional's where one answered", metadata=PRIVATE)
    positive_id = dy.String(description="the answer that is the positive")
    positive_role = one_of(labels.AUTHOR_ROLES, description="who wrote it: professional, member or unknown")
    negative = dy.String(description="an answer that should score lower", metadata=PRIVATE)
    negative_ids = dy.List(dy.String(), min_length=1, description="the answers that it is of: `generic` has several")
    same_topic = dy.Bool(
        nullable=True, description="whether the negative answers a question of the same topic; null where not known"
    )


class Rollouts(Table):
    """What a policy wrote in training, and every term of its reward."""

    run_id = dy.String(primary_key=True, description="the training run")
    step = dy.Int64(primary_key=True, min=0, description="the step")
    output_index = dy.Int64(primary_key=True, min=0, description="the output within the step")
    uid = dy.String(description="its group: the outputs of one prompt in one step, by which advantages are taken")
    row_id = dy.String(nullable=True, description="the prompt's row; empty where the reward noted none")
    split = one_of(labels.SPLITS, nullable=True, description="of that row; empty where the reward noted none")
    prompt = dy.String(description="what the policy was asked, system prompt included", metadata=PRIVATE)
    output = dy.String(description="what the policy wrote", metadata=PRIVATE)
    rewards = dy.List(
        dy.Struct({"name": dy.String(), "value": dy.Float64()}),
        description="every term of the reward; `score` is what reached the advantage",
    )
    judge = dy.String(nullable=True, description="the judge's words", metadata=PRIVATE)
