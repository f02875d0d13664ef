"""In which language a reply is."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.llm.language import require_language, share
from pipelines.llm.questions import InvalidReply
from pipelines.text.keys import han_ratio


@pytest.mark.parametrize(
    ("text", "zh", "en"),
    [
        ("他很难受", 1.0, 0.0),
        ("he is sad", 0.0, 1.0),
        ("他说OK吧", 0.6, 0.4),
        ("他 很, 难 受！！！", 1.0, 0.0),
        ("……", 0.0, 0.0),
        ("", 0.0, 0.0),
        ("12356", 0.0, 0.0),
        ("это по-русски", 0.0, 0.0),
        ("〇𠀀", 1.0, 0.0),
    ],
)
def test_the_share_of_letters_in_a_language(text: str, zh: float, en: float):
    assert share(text, "zh") == pytest.approx(zh)
    assert share(text, "en") == pytest.approx(en)


@given(
    st.text(
        alphabet=st.one_of(st.characters(categories=["L", "Nd", "P", "Zs", "So"]), st.sampled_from("他很难受")),
        max_size=40,
    )
)
def test_the_chinese_share_is_that_of_the_house(text: str):
    # Marks that combine are letters to neither; what Python's and Rust's tables of Unicode disagree on is left out.
    ours, house = share(text, "zh"), pl.select(han_ratio(pl.lit(text))).item()
    assert abs(ours - house) < 1e-9


def test_the_section_that_leaves_the_language_is_named():
    require_language("zh", why="他很难受", other="他说OK吧")
    with pytest.raises(InvalidReply, match="L2 must be written in Chinese") as refused:
        require_language("zh", L1="他很难受", L2="he is sad")
    assert refused.value.problem == "language:L2"
    with pytest.raises(InvalidReply, match="English"):
        require_language("en", response="他很难受")
