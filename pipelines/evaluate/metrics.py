"""The automatic figures of E §4.1.4, over answers beside what people answered, and the baselines to read them by.

Every figure names its mode, for E does not say how Chinese was cut into words. Tokens are those of sacrebleu's `zh`: a
Chinese character each, and what is not Chinese by words. The exception is ROUGE-L in the mode `paper`: rouge-score's
default tokenizer, which sees Latin letters and digits alone; E's figures are of that size.

What has nothing in common scores 0, and so does an empty answer, beside an empty reference as well. Figures of overlap
are undefined (None) of an answer without references, Distinct-1 never is.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from pipelines.core.estimates import DRAWS, bootstrap, ratios
from pipelines.errors import RequestError
from schemas.ids import unit_interval


class Figure(NamedTuple):
    """What is measured, and how."""

    metric: str
    mode: str


BLEU_1 = Figure("bleu_1", "zh")
ROUGE_L_PAPER = Figure("rouge_l", "paper")
ROUGE_L_CHARACTER = Figure("rouge_l", "character")
METEOR_EXACT = Figure("meteor_exact", "zh")
DISTINCT_1_ANSWER = Figure("distinct_1", "answer")
DISTINCT_1_CORPUS = Figure("distinct_1", "corpus")
# Of the mode of its ROUGE-L.
N_AVG_PAPER = Figure("n_avg", "paper")
N_AVG_CHARACTER = Figure("n_avg", "character")
OF_ANSWER = (
    *(BLEU_1, ROUGE_L_PAPER, ROUGE_L_CHARACTER, METEOR_EXACT, DISTINCT_1_ANSWER),
    *(N_AVG_PAPER, N_AVG_CHARACTER),
)

# A figure over many answers. `n_answers` have it; null: undefined, or without an interval.
SCORES = pl.Schema(
    {"metric": pl.String, "mode": pl.String, "n_answers": pl.Int64, "value": pl.Float64}
    | {"low": pl.Float64, "high": pl.Float64}
)

# Comfort that fits whatever was asked: a model that scores no higher has not read the question.
GENERIC_COMFORT = (
    "谢谢你愿意把这些说出来，我能感觉到你现在很不容易。遇到这样的事，难过、委屈、焦虑都是很正常的，请不要责怪自己。"
    "给自己一点时间，慢慢来，试着和信任的人聊一聊，好好吃饭，好好睡觉，做一些让自己放松的事情。"
    "你并不孤单，一切都会慢慢好起来的，抱抱你。"
)


BASELINES = ("post_copied", "generic_comfort", "sibling")


class Answer(NamedTuple):
    """An answer to a question, and the answers of people that it is held against."""

    question_id: str
    text: str
    references: Sequence[str]


class Question(NamedTuple):
    """A post, and what people answered."""

    question_id: str
    post: str
    answers: Sequence[str]


def bleu_1(answer: str, reference: str) -> float:
    """BLEU of single tokens (Papineni 2002), 0 … 1: sacrebleu's, by sentence, with its penalty of what is short."""
    score: float = _sacrebleu().sentence_score(answer, [reference]).score
    return score / 100


def rouge_l(answer: Sequence[str], reference: Sequence[str]) -> float:
    """ROUGE-L of tokens (Lin 2004): rouge-score's F1 of the longest common subsequence, 0 … 1."""
    common = _common_subsequence(answer, reference)
    if not common:
        return 0.0
    precision, recall = common / len(answer), common / len(reference)
    return 2 * precision * recall / (precision + recall)


def meteor_exact(answer: Sequence[str], reference: Sequence[str]) -> float:
    """METEOR of tokens (Lavie and Agarwal 2007), 0 … 1: nltk's, where only what is written alike matches, whatever its
    case: neither stems nor synonyms, which are English. Of a copy of n tokens it is 1 − 1/(2n³).
    """
    _require("nltk")
    from nltk.translate.meteor_score import single_meteor_score

    return float(single_meteor_score(reference, answer, stemmer=_OnlyExact, wordnet=_OnlyExact))


def distinct_1(tokens: Sequence[str]) -> float:
    """Distinct-1 (Li 2015): which share of the tokens differ; 0 of none."""
    return len(set(tokens)) / len(tokens) if tokens else 0.0


def n_avg(bleu_1: float, rouge_l: float, meteor: float, distinct_1: float) -> float:
    """E's NAvg: the mean of its four figures. Distinct-1 weighs most in it: it says little of how good an answer is."""
    return (bleu_1 + rouge_l + meteor + distinct_1) / 4


def score_answer(answer: str, references: Sequence[str]) -> dict[Figure, float | None]:
    """The figures of one answer (OF_ANSWER): of those of overlap the mean over all references."""
    tokens, words = zh_tokens(answer), _latin_words(answer)
    by_reference: defaultdict[Figure, list[float]] = defaultdict(list)
    for reference in references:
        others = zh_tokens(reference)
        by_reference[BLEU_1].append(bleu_1(answer, reference))
        by_reference[ROUGE_L_PAPER].append(rouge_l(words, _latin_words(reference)))
        by_reference[ROUGE_L_CHARACTER].append(rouge_l(tokens, others))
        by_reference[METEOR_EXACT].append(meteor_exact(tokens, others))
    figures: dict[Figure, float | None] = dict.fromkeys(OF_ANSWER)
    means = {figure: sum(scores) / len(scores) for figure, scores in by_reference.items()}
    distinct = distinct_1(tokens)
    figures |= means | {DISTINCT_1_ANSWER: distinct}
    if means:
        rest = (means[METEOR_EXACT], distinct)
        figures[N_AVG_PAPER] = n_avg(means[BLEU_1], means[ROUGE_L_PAPER], *rest)
        figures[N_AVG_CHARACTER] = n_avg(means[BLEU_1], means[ROUGE_L_CHARACTER], *rest)
    return figures


def score_answers(answers: Sequence[Answer], *, draws: int = DRAWS, seed: int = 0) -> pl.DataFrame:
    """The figures of many answers, in the mean over those that have them, with intervals by question (`bootstrap`).

    Distinct-1 of the corpus has no interval: a draw with repetitions repeats itself.

    Returns rows of SCORES, a figure each. Raises RequestError where the extra `evaluate` is not installed.
    """
    scored = [score_answer(answer.text, answer.references) for answer in answers]
    values = np.array([[one[figure] for figure in OF_ANSWER] for one in scored], np.float64).reshape(-1, len(OF_ANSWER))
    defined = np.isfinite(values)
    number = {question: place for place, question in enumerate(dict.fromkeys(one.question_id for one in answers))}
    sums, counts = np.zeros((2, len(number), len(OF_ANSWER)))
    of_question = [number[answer.question_id] for answer in answers]
    np.add.at(sums, of_question, np.where(defined, values, 0))
    np.add.at(counts, of_question, defined)
    estimates = bootstrap(ratios(sums, counts), len(number), draws=draws, seed=seed)
    rows: list[tuple[Any, ...]] = [
        (*figure, n, *estimate)
        for figure, n, estimate in zip(OF_ANSWER, defined.sum(axis=0).tolist(), estimates, strict=True)
    ]
    corpus = [token for answer in answers for token in zh_tokens(answer.text)]
    rows.append((*DISTINCT_1_CORPUS, len(answers), distinct_1(corpus) if answers else None, None, None))
    return pl.DataFrame(rows, schema=SCORES, orient="row")


def baselines(questions: Sequence[Question], *, seed: int = 0) -> dict[str, list[Answer]]:
    """What a table is read by: answers that no model wrote, for `score_answers`.

    * post_copied: the post, given back.
    * generic_comfort: the same few sentences for everybody, of ours (GENERIC_COMFORT).
    * sibling: one of the human answers, drawn by `seed` and question, against the others: of those questions alone that
      have two or more.
    """
    siblings = []
    for one in questions:
        if len(one.answers) > 1:
            place = int(unit_interval(seed, "sibling", one.question_id) * len(one.answers))
            others = [*one.answers[:place], *one.answers[place + 1 :]]
            siblings.append(Answer(one.question_id, one.answers[place], others))
    copied = [Answer(one.question_id, one.post, one.answers) for one in questions]
    comforted = [Answer(one.question_id, GENERIC_COMFORT, one.answers) for one in questions]
    return dict(zip(BASELINES, (copied, comforted, siblings), strict=True))


def zh_tokens(text: str) -> list[str]:
    """A text's tokens as sacrebleu's `zh` cuts them: a Chinese character or mark each, what is not Chinese by words."""
    tokens: str = _zh_tokenizer()(text)
    return tokens.split()


def _latin_words(text: str) -> list[str]:
    """What rouge-score sees of a text: its Latin letters and digits, in lower case."""
    _require("rouge_score")
    from rouge_score.tokenize import tokenize

    words: list[str] = tokenize(text, None)
    return words


def _common_subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence (Hyyrö 2004: a row of the table is one integer, a bit a token)."""
    places: defaultdict[str, int] = defaultdict(int)
    for place, token in enumerate(one):
        places[token] |= 1 << place
    every = (1 << len(one)) - 1
    row = every
    for token in other:
        matched = row & places.get(token, 0)
        row = ((row + matched) | (row - matched)) & every
    return len(one) - row.bit_count()


class _OnlyExact:
    """For nltk a stemmer and a dictionary that know no word."""

    @staticmethod
    def stem(token: str) -> str:
        return token

    @staticmethod
    def synsets(token: str) -> tuple[()]:  # noqa: ARG004 - as nltk asks
        return ()


@cache
def _sacrebleu() -> Any:
    _require("sacrebleu")
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize="zh", max_ngram_order=1, effective_order=True)


@cache
def _zh_tokenizer() -> Any:
    _require("sacrebleu")
    from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

    return TokenizerZh()


@cache
def _require(package: str) -> None:
    """Raises RequestError where a package of the extra is not installed."""
    from importlib import import_module

    try:
        import_module(package)
    except ImportError as error:
        raise RequestError(
            f"{package} is not installed", where="evaluate", hint='install the extra: pip install -e ".[evaluate]"'
        ) from error
