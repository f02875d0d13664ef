"""Schools, employers, hospitals and addresses: where they are named and where they are not."""

import tomllib
from pathlib import Path

import polars as pl

from pipelines.text.pii import vocabulary as voc
from pipelines.text.pii.redaction import find

SENTENCES = tomllib.loads(Path(__file__).with_name("places.toml").read_text(encoding="utf-8"))


def test_what_is_named_is_found_and_what_is_not_stays():
    wanted = {text: [place] for text, place in SENTENCES["found"].items()} | {text: [] for text in SENTENCES["stays"]}
    places: dict[str, list[list[str]]] = {text: [] for text in wanted}
    for row, start, end, kind, _ in find(pl.Series(list(wanted)), names="wide").iter_rows():
        text = list(wanted)[row]
        places[text].append([kind, text.encode()[start:end].decode()])
    assert {text: one for text, one in places.items() if one != wanted[text]} == {}


def test_every_list_of_the_lexicon_has_a_use():
    used = {name for kind in voc.lexicon("places")["of_kind"].values() for names in kind.values() for name in names}
    used |= {"administration", "place", "stop", "name_word", "generic", "no_address", "estate"}  # of all, or a value
    assert set(voc.lexicon("places")["classes"]) == used
