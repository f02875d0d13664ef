"""How far candidates agree with the labels of their source (C): ESConv labels strategies, some sets emotions.

A candidate is no prediction of the reference: several strategies may be right at one moment. So agreement is read
beside what chance would give (Cohen's kappa), and against other models, never as a score to be raised.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

import polars as pl

from schemas.labels import EMOTIONS

# One line of the report. `labelled`: candidates whose round the source labels with names that we know. `agreeing`: the
# share of these whose label is among the source's (a turn may carry several strategies). `single`: those with exactly
# one label of the source, over which `kappa` is taken; null: undefined, as where everybody says the same.
AGREEMENT = pl.Schema(
    {
        "source": pl.String,
        "model_asked": pl.String,
        "field": pl.String,
        "labelled": pl.Int64,
        "agreeing": pl.Float64,
        "single": pl.Int64,
        "kappa": pl.Float64,
    }
)


def agreement(candidates: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Agreement of candidates with the labels of their rounds, by source, model and field.

    Args:
        candidates: Rows of `cer_candidates`.
        turns: Rows of `sampled_turns`, with the strategies of the reference and the emotion of the seeker's turn.

    Returns:
        A frame of AGREEMENT, sorted; a field that a source does not label has no line. Emotions are compared by the
        closed set `EMOTIONS`: another word of a candidate agrees with nothing.
    """
    labels = turns.select("dialogue_id", "round", "source", "strategies", labelled_emotion="emotion")
    joined = candidates.join(labels, on=["dialogue_id", "round"], how="inner", maintain_order="left")
    pairs: defaultdict[tuple[str, str, str], list[tuple[str, list[str]]]] = defaultdict(list)
    for row in joined.iter_rows(named=True):
        emotion = _emotion(row["labelled_emotion"] or "")
        for field, word, true in (
            ("strategy", row["strategy"], list(dict.fromkeys(row["strategies"]))),
            ("emotion", _emotion(row["emotion"]) or row["emotion"], [emotion] if emotion else []),
        ):
            if true:
                pairs[row["source"], row["model_asked"], field].append((word, true))
    lines = [(*key, *_measured(of_key)) for key, of_key in sorted(pairs.items())]
    return pl.DataFrame(lines, schema=AGREEMENT, orient="row")


def _emotion(word: str) -> str | None:
    label = EMOTIONS.find(word)
    return label.en if label else None


def _measured(pairs: list[tuple[str, list[str]]]) -> tuple[int, float, int, float | None]:
    agreeing = sum(word in true for word, true in pairs) / len(pairs)
    single = [(word, true[0]) for word, true in pairs if len(true) == 1]
    return len(pairs), agreeing, len(single), kappa(single)


def kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Cohen's kappa of two raters: (p_o - p_e) / (1 - p_e) (Cohen, 1960).

    None: undefined, where nothing was rated, or where chance alone would give full agreement.
    """
    if not pairs:
        return None
    n = len(pairs)
    first, second = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    observed = sum(one == other for one, other in pairs)
    by_chance = sum(count * second[label] for label, count in first.items())
    return None if by_chance == n * n else (observed / n - by_chance / n**2) / (1 - by_chance / n**2)
