"""The stages: an order in which each finds what it is made from, and names that exist."""

from functools import reduce
from operator import getitem

from pipelines.flow.stages import STAGES
from pipelines.settings import Settings
from schemas.table import LlmMade
from schemas.tables import TABLES


def test_every_parent_is_made_before_it_is_needed():
    made = {"imported_posts", "imported_dialogues", "raw_posts"}
    for stage in STAGES:
        by_people = {"cer_votes", "coe_reviews", "rankings", "cer_labels"}
        assert set(stage.parents) - by_people <= made, "people alone fill these"
        made |= set(stage.tables)


def test_settings_that_a_stage_names_exist():
    dumped = Settings().model_dump()
    for stage in STAGES:
        for name in stage.reads:
            reduce(getitem, name.split("."), dumped)
        assert (stage.asks is None) == (stage.models(Settings()) == ())


def test_tables_of_stages_that_ask_name_the_model():
    """A stage asks or it runs, and the tables of those that ask say who answered: they, and what filters drafts."""
    for stage in STAGES:
        assert (stage.asks is not None) == ("models" in stage.parameters)
        by_models = stage.asks is not None or stage.name == "rewritten"
        assert {issubclass(TABLES[table], LlmMade) for table in stage.tables} == {by_models}, stage.name


def test_what_is_learnt_from_is_made_after_the_splits():
    chains = [stage for stage in STAGES if {"ecot_chains", "coe_chains", "cer_candidates"} & set(stage.tables)]
    assert len(chains) == 3
    assert all("splits" in stage.parents for stage in chains)
