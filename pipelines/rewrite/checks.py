"""What a rewrite is refused for without a model: it is a copy, it reads like a machine, it changes a fact."""

from collections.abc import Sequence

from pipelines.rewrite.facts import changed
from pipelines.rewrite.scripts import Script
from pipelines.split.eligible import Reason
from pipelines.text.artefacts import artefacts
from pipelines.text.keys import key_of
from pipelines.text.quotations import quotations, stands_in

# A line of so many letters and digits could have been worded otherwise; a share above this of such lines that are
# the same but for punctuation, or for so many letters at an end (嗯, 呀, well), makes a copy. Ours.
_TELLING_LETTERS = 8
_ADDED_LETTERS = 4
_COPIED_SHARE = 0.8

# Shorter quotations are words that are named, not speech; ours.
_SHORTEST_QUOTATION = 4


def first_fault(script: Script, texts: Sequence[str], instructions: str) -> Reason | None:
    """The first fault of a rewrite, as reason and detail; None where it is clean (C: the filter after rewriting).

    Args:
        texts: The rewritten lines, one for each line of the script.
        instructions: What the model was asked to do; whatever it copies of that is an artefact.

    Returns `unchanged`, `artefact` or `facts_changed`, and kinds with counts (``number 1, name 1``), no text.

    Raises ValueError where there are more or fewer lines than in the script.
    """
    pairs = [(line.text, text) for line, text in zip(script.lines, texts, strict=True)]
    if detail := copied(pairs):
        return "unchanged", detail
    if kinds := artefacts(pairs, instructions):
        return "artefact", _counts(kinds)
    if kinds := changed("\n".join(line.text for line in script.lines), "\n".join(texts), script.lang):
        return "facts_changed", _counts(kinds)
    return None


def copied(pairs: Sequence[tuple[str, str]]) -> str | None:
    """How many of the lines are copies (``9 of 10 lines``), where too many are; else None.

    Args:
        pairs: Each line before and after. Where all are short, all of them count.
    """
    keys = [(key_of(before, "marks"), key_of(after, "marks")) for before, after in pairs]
    counted = [pair for pair in keys if len(pair[0]) >= _TELLING_LETTERS] or keys
    same = sum(_is_copy(before, after) for before, after in counted)
    return f"{same} of {len(counted)} lines" if same > _COPIED_SHARE * len(counted) else None


def _is_copy(before: str, after: str) -> bool:
    short, long = sorted((before, after), key=len)
    return len(long) - len(short) <= _ADDED_LETTERS and (long.startswith(short) or long.endswith(short))


def misquotations(texts: Sequence[str]) -> int:
    """How many quotations stand in no other of the lines, word for word.

    An analysis quotes the history, and its label says that it is right. Rewritten beside a history whose words it no
    longer quotes it would be wrong for another reason than the one that people saw.
    """
    return sum(
        not stands_in(quoted, [*texts[:place], *texts[place + 1 :]], exactly=True)
        for place, text in enumerate(texts)
        for quoted in quotations(text)
        if len(quoted) >= _SHORTEST_QUOTATION
    )


def _counts(kinds: dict[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in kinds.items())
