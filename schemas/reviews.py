"""Tables filled by people who review what was made."""

import dataframely as dy

from schemas import labels
from schemas.table import Table, one_of


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
