"""What models answer to held-out questions, and how good that is: one partition an evaluation."""

import dataframely as dy

from schemas import labels
from schemas.table import PRIVATE, Table, one_of


class ModelAnswers(Table):
    """What was evaluated: the answers of models, and of the baselines that a table is read by."""

    row_id = dy.String(primary_key=True, description="the held-out row of a prompt set that is answered")
    model = dy.String(primary_key=True, description="who answers: a model, or a baseline's name")
    baseline = dy.Bool(description="no model wrote it: the post copied, generic comfort, or a sibling answer")
    lang = one_of(labels.LANGUAGES, description="language of the question")
    output = dy.String(description="all that was written", metadata=PRIVATE)
    answer = dy.String(
        nullable=True,
        description="what the seeker is to read of it; null where its form does not tell",
        metadata=PRIVATE,
    )
    dialogue = dy.List(
        dy.Struct({"role": dy.String(), "text": dy.String()}), description="what is answered", metadata=PRIVATE
    )
    references = dy.List(dy.String(), description="what people answered", metadata=PRIVATE)
    request_key = dy.String(nullable=True, description="the request that it is the reply to; null: read from a file")


class Evaluations(Table):
    """The figures of an evaluation, each with its mode and, where it has one, its interval of 95 %."""

    suite = dy.String(primary_key=True, description="what was measured: automatic, judge, people, sage, esc_eval, …")
    model = dy.String(primary_key=True, description="of whom: a model, a baseline, a judge, a set of a release")
    judge = dy.String(primary_key=True, description="by whom; empty where nobody judges")
    metric = dy.String(primary_key=True, description="the figure")
    mode = dy.String(primary_key=True, description="how it is taken; empty where there is one way alone")
    subset = dy.String(primary_key=True, description="of which rows: all, a type of seeker, the worst decile, …")
    n = dy.Int64(min=0, description="how many things it is the figure of")
    value = dy.Float64(nullable=True, description="the figure; null where it is undefined")
    low = dy.Float64(nullable=True, description="its lower bound; null where there is none")
    high = dy.Float64(nullable=True, description="its upper bound")
