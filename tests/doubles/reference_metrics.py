"""The automatic figures as their packages give them, each called as its manual says."""

from nltk.translate.meteor_score import single_meteor_score
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu import sentence_bleu

from pipelines.evaluate.metrics import BLEU_1, METEOR_EXACT, ROUGE_L_CHARACTER, ROUGE_L_PAPER, Figure, zh_tokens


class _NoWords:
    """A stemmer and a WordNet that know no word."""

    def stem(self, token):
        return token

    def synsets(self, token):
        return []


class _ZhTokens:
    def tokenize(self, text):
        return zh_tokens(text)


_PAPER, _CHARACTER = RougeScorer(["rougeL"]), RougeScorer(["rougeL"], tokenizer=_ZhTokens())


def by_their_packages(answer: str, reference: str) -> dict[Figure, float]:
    """BLEU-1 out of sacrebleu's BLEU of four tokens: the precision of single ones, and the penalty of short texts."""
    bleu = sentence_bleu(answer, [reference], tokenize="zh")
    tokens = [zh_tokens(reference), zh_tokens(answer)]
    return {
        BLEU_1: bleu.bp * bleu.precisions[0] / 100,
        ROUGE_L_PAPER: _PAPER.score(reference, answer)["rougeL"].fmeasure,
        ROUGE_L_CHARACTER: _CHARACTER.score(reference, answer)["rougeL"].fmeasure,
        METEOR_EXACT: single_meteor_score(*tokens, stemmer=_NoWords(), wordnet=_NoWords()),
    }
