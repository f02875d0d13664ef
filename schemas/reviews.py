"""Tables that people fill: what was shown to whom, and what each of them says."""

import dataframely as dy

from schemas import labels
from schemas.table import PRIVATE, Table, instant, one_of

REVIEW_KINDS = ("coe", "cer", "rank", "compare")
MEASURES = ("raw", "alpha", "kappa", "fleiss", "ac1")
LEVELS_OF_PEOPLE = ("experts", "skilled", "crowd")
ROLES = ("annotator", "adjudicator", "gold", "calibration")


class ReviewTasks(Table):
    """What was shown to whom. A label counts only where it names one of these and the hash of what it shows."""

    task_id = dy.String(primary_key=True, description="the item, and who is asked")
    kind = one_of(REVIEW_KINDS, description="what is asked")
    item_id = dy.String(description="the row that is judged: a post, a candidate, a question")
    annotator = dy.String(description="pseudonym of who is asked")
    role = one_of(
        ROLES,
        description="one of those whose answers count, the third where these differ, or one of whom is asked what is "
        "known already: to see how they work (gold), or to practise first (calibration)",
    )
    order = dy.List(dy.Int64(min=0), description="which text of the item stands first, second, … as shown")
    shown = dy.String(description="a hash of what is shown")
    suggestion = dy.String(
        nullable=True, description="what a model suggests, which is shown and marked, as JSON", metadata=PRIVATE
    )
    item = dy.String(description="a hash of the item, whatever its order: one that was made again is asked again")
    batch = dy.String(description="the export that it went out with")
    made = instant(description="when it went out")


class CerVotes(Table):
    """C: what one person says of a candidate: each step right or wrong, and which response is better."""

    task_id = dy.String(primary_key=True, description="the task")
    dialogue_id = dy.String(description="the dialogue")
    round = dy.Int64(min=1, description="the sampled round")
    candidate = dy.Int64(min=1, description="the candidate")
    annotator = dy.String(description="pseudonym of who labelled it")
    role = one_of(ROLES, description="as in `review_tasks`")
    suggested = dy.Bool(description="a model's suggestion was shown")
    labelled = dy.String(description="a hash of what was labelled, as in `cer_labels`")
    step1 = dy.Bool(description="step 1 is right")
    step2 = dy.Bool(description="step 2 is right")
    step3 = dy.Bool(description="step 3 is right")
    preference = one_of(labels.PREFERENCES, description="first (the reference), second (the candidate), both, neither")
    comment = dy.String(nullable=True, description="what was remarked", metadata=PRIVATE)
    seconds = dy.Float64(nullable=True, min=0, description="how long it took")
    at = instant(nullable=True, description="when it was given")


class CoeReviews(Table):
    """E: what a professional says of a chain."""

    task_id = dy.String(primary_key=True, description="the task")
    post_id = dy.String(description="the question")
    answer_id = dy.String(description="the human answer that the chain leads to")
    annotator = dy.String(description="pseudonym of who reviewed it")
    role = one_of(ROLES, description="as in `review_tasks`")
    suggested = dy.Bool(description="a model's suggestion was shown")
    labelled = dy.String(description="a hash of the chain, its question and its answer")
    verdict = one_of(("accept", "mend", "reject"), description="what becomes of it")
    L1 = dy.String(nullable=True, description="the new text of the level, where it was mended", metadata=PRIVATE)
    L2 = dy.String(nullable=True, description="the new text of the level, where it was mended", metadata=PRIVATE)
    L3 = dy.String(nullable=True, description="the new text of the level, where it was mended", metadata=PRIVATE)
    L4 = dy.String(nullable=True, description="the new text of the level, where it was mended", metadata=PRIVATE)
    comment = dy.String(nullable=True, description="what was remarked", metadata=PRIVATE)
    seconds = dy.Float64(nullable=True, min=0, description="how long it took")
    at = instant(nullable=True, description="when it was given")


class Rankings(Table):
    """M, E: the place that one person gives each of several answers; of two answers, a comparison."""

    task_id = dy.String(primary_key=True, description="the task")
    item_id = dy.String(description="the question")
    kind = one_of(("rank", "compare"), description="all ranked, or the better of two")
    annotator = dy.String(description="pseudonym of the rater")
    role = one_of(ROLES, description="as in `review_tasks`")
    suggested = dy.Bool(description="a model's suggestion was shown")
    labelled = dy.String(description="a hash of the question and the answers")
    models = dy.List(dy.String(), min_length=2, description="who answered, in the order of the item")
    places = dy.List(dy.Int64(min=1), min_length=2, description="the place of each; of a tie both have the same")
    comment = dy.String(nullable=True, description="what was remarked", metadata=PRIVATE)
    seconds = dy.Float64(nullable=True, min=0, description="how long it took")
    at = instant(nullable=True, description="when it was given")


class Agreements(Table):
    """How far people agree on what was labelled: figures alone, no word of anybody."""

    kind = one_of(REVIEW_KINDS, primary_key=True, description="what was asked")
    question = dy.String(primary_key=True, description="which question of it")
    annotator = dy.String(
        primary_key=True, description="pseudonym of one person, held against the others; all: all people"
    )
    measure = one_of(
        MEASURES,
        primary_key=True,
        description="share of equal pairs, Krippendorff's alpha, Cohen's kappa (mean over pairs of people), Fleiss' "
        "kappa, Gwet's AC1",
    )
    value = dy.Float64(nullable=True, description="the figure; null: undefined, as where everybody says the same")
    low = dy.Float64(nullable=True, description="the lower bound of its 95 % interval, items drawn again")
    high = dy.Float64(nullable=True, description="the upper bound")
    n_items = dy.Int64(min=0, description="items with two labels or more")
    n_raters = dy.Int64(min=0, description="how many people labelled them")


class JudgeTests(Table):
    """Whether a model may stand in for one of the people who labelled (the alternative-annotator test)."""

    kind = one_of(REVIEW_KINDS, primary_key=True, description="what was asked")
    question = dy.String(primary_key=True, description="which question of it")
    model = dy.String(primary_key=True, description="the model that answered it as well")
    people = one_of(LEVELS_OF_PEOPLE, description="who the people are: it decides epsilon")
    epsilon = dy.Float64(min=0, max=1, description="how much less often than a person a model may be right")
    omega = dy.Float64(min=0, max=1, description="the share of people whom the model beats; it passes from .5 on")
    rho = dy.Float64(min=0, max=1, description="how often it is as near to the others as a person, or nearer")
    n_people = dy.Int64(min=0, description="how many people were tested")
    n_items = dy.Int64(min=0, description="items that the model and two people or more labelled")
    kappa = dy.Float64(nullable=True, min=-1, max=1, description="Cohen's, of the model with each person, in the mean")
    kappa_of_people = dy.Float64(nullable=True, min=-1, max=1, description="of each two people, in the mean")
    answers = dy.String(description="the name of the file with the model's answers")
    answers_sha256 = dy.String(regex="^[0-9a-f]{64}$", description="its SHA-256")
    measured_at = instant(description="when these figures were first measured (UTC)")
