"""Tables that people fill: what was shown to whom, and what each of them says."""

import dataframely as dy

from schemas import labels
from schemas.table import PRIVATE, Table, instant, one_of

REVIEW_KINDS = ("coe", "cer", "rank", "compare")
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
    suggestion = dy.String(nullable=True, description="what a model suggests, which is shown and marked, as JSON")
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
