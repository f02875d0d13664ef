"""Signs of risk to life or limb, by the rules of `lexicons/risk.toml`.

A sign keeps a text out of everything that trains; it says nothing about the person. So a rule rather flags too much:
"我不想死" is flagged as well.
"""

import tomllib
from functools import cache
from pathlib import Path

import polars as pl

from pipelines.clean.script import as_simplified
from schemas.labels import RISKS
from schemas.posts import RISK


def risk(text: pl.Expr) -> pl.Expr:
    """The rules that match `text`, in either script, as a list of {kind, rule}; empty where none does."""
    simplified = as_simplified(text).str.replace_all("著", "着", literal=True)  # 活著, 想著
    signs = [
        pl.when(simplified.str.contains(pattern)).then(pl.struct(kind=pl.lit(kind), rule=pl.lit(rule)))
        for kind, rule, pattern in _rules()
    ]
    return pl.concat_list(signs).list.drop_nulls().cast(pl.List(RISK.dtype))


@cache
def _rules() -> tuple[tuple[str, str, str], ...]:
    path = Path(__file__).parent / "lexicons" / "risk.toml"
    rules = tomllib.loads(path.read_text(encoding="utf-8"))
    assert set(rules) <= set(RISKS), f"{path}: a kind that schemas.labels.RISKS does not list"
    return tuple(
        (kind, name, "|".join(f"({pattern})" for pattern in patterns))
        for kind in rules
        for name, patterns in rules[kind].items()
    )
