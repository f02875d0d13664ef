"""What platforms leave in a text goes; prose that looks like it stays (artefacts.toml)."""

import tomllib
from pathlib import Path

from columns import over

from pipelines.clean.normalise import normalised

SENTENCES = tomllib.loads(Path(__file__).with_name("artefacts.toml").read_text(encoding="utf-8"))


def test_artefacts_go():
    wanted = {text: left for pairs in SENTENCES["gone"].values() for text, left in pairs.items()}
    made = dict(zip(wanted, over(normalised, *wanted), strict=True))
    assert len(made) > 70
    assert {text: left for text, left in made.items() if left != wanted[text]} == {}


def test_prose_stays():
    made = over(normalised, *SENTENCES["stays"])
    # The colon behind a Chinese character is unified; nothing else changes.
    assert [one.replace("：", ":") for one in made] == [one.replace("：", ":") for one in SENTENCES["stays"]]
