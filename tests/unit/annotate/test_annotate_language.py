"""In which language a reply is."""

import pytest

from pipelines.llm.language import require_language, share
from pipelines.llm.questions import InvalidReply


def test_the_share_of_letters_in_a_language():
    for text, zh, en in (
        ("he is sad", 0.0, 1.0),
        ("他说OK吧", 0.6, 0.4),
        ("他 很, 难 受！！！", 1.0, 0.0),
        ("……", 0.0, 0.0),
        ("12356", 0.0, 0.0),
        ("это по-русски", 0.0, 0.0),
        ("〇𠀀", 1.0, 0.0),
    ):
        assert (share(text, "zh"), share(text, "en")) == (pytest.approx(zh), pytest.approx(en)), text


def test_the_section_that_leaves_the_language_is_named():
    require_language("zh", why="他很难受", other="他说OK吧")
    with pytest.raises(InvalidReply, match="L2 must be written in Chinese") as refused:
        require_language("zh", L1="他很难受", L2="he is sad")
    assert refused.value.problem == "language:L2"
    with pytest.raises(InvalidReply, match="English"):
        require_language("en", response="他很难受")
