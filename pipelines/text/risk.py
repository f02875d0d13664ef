"""Signs of risk to life or limb, by the rules of `lexicons/risk.toml`.

A sign keeps a text out of everything that trains, so a rule rather flags too much ("我不想死").
"""

from functools import cache

import polars as pl

from pipelines.text.lexicon import filled, lexicon
from pipelines.text.script import as_simplified
from pipelines.text.words import Words, spelled
from schemas.labels import RISKS
from schemas.posts import RISK

_SIGNS = pl.List(RISK.dtype)


def risk(text: pl.Expr, *, simplified: bool = False) -> pl.Expr:
    """The rules that match `text`, as a list of {kind, rule}; empty where none does, or where there is no text.

    `text` is in either script; `simplified`: it has been turned into Simplified characters already.
    """
    if not simplified:
        text = as_simplified(text).str.replace_all("著", "着", literal=True)  # 活著, 想著
    return text.map_batches(_risk, return_dtype=_SIGNS, is_elementwise=True)


def _risk(texts: pl.Series) -> pl.Series:
    counted = texts.alias("text").to_frame().with_columns(_near().counted(texts).values())
    # A bit a rule, and a list a set of rules: making a list of structs in every row costs more than all of the rules.
    bits = [_holds(*rule).cast(pl.UInt32) * (1 << place) for place, rule in enumerate(_patterns())]
    held = counted.select(pl.sum_horizontal(bits)).to_series()
    sets = held.unique().sort()
    signs = [{"kind": kind, "rule": rule} for kind, rule, _ in _patterns()]
    lists = pl.Series([[sign for place, sign in enumerate(signs) if one >> place & 1] for one in sets], dtype=_SIGNS)
    return lists.gather(sets.search_sorted(held)).alias(texts.name)


def _holds(kind: str, rule: str, patterns: list[str]) -> pl.Expr:
    """Whether any pattern matches; they are put to the texts alone that hold one of the rule's words.

    They are put one by one: the engine is slower by far with the alternation of them all.
    """
    near = pl.when(pl.col(f"{kind} {rule}") > 0).then("text").otherwise(pl.lit(""))
    return pl.any_horizontal(near.str.contains(pattern) for pattern in patterns)


@cache
def _near() -> Words:
    near = lexicon("risk", __file__)["near"]
    return Words({f"{kind} {rule}": spelled(near[kind][rule]) for kind, rule, _ in _patterns()})


@cache
def _patterns() -> list[tuple[str, str, list[str]]]:
    """Kind and name of each rule, and the patterns of which any is a sign."""
    tables = lexicon("risk", __file__)
    words: dict[str, str] = tables["words"]
    kinds = {kind: rules for kind, rules in tables.items() if kind not in ("near", "words")}
    assert set(kinds) <= set(RISKS), "lexicons/risk.toml: a kind that schemas.labels.RISKS does not list"
    return [
        (kind, name, [filled(pattern, words) for pattern in patterns])
        for kind, rules in kinds.items()
        for name, patterns in rules.items()
    ]
