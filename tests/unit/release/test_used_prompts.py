"""Which prompts a release says were used: those that wrote its tables, and those that its chats are taught under."""

from pathlib import Path

import polars as pl
from released_rows import few_rows

from pipelines.judge.turns import system_prompt
from pipelines.release.assemble import used_prompts
from pipelines.release.checks.released import Released, pinned
from pipelines.settings import Settings
from pipelines.trainsets.prompt_sets import cer_system_prompt, coe_system_prompt
from schemas.tables import TABLES


def test_every_set_names_the_prompt_that_it_is_taught_under(labelled_store):
    told = used_prompts(Released(Path(), labelled_store, pinned(labelled_store)[0], Settings()))
    judges = ("rm_process", "rm_outcome", "rm_unified")
    taught = [coe_system_prompt(), cer_system_prompt("zh"), *(system_prompt(judge, "zh") for judge in judges)]
    assert {prompt.id: prompt.name for prompt in taught}.items() <= told.items()
    assert {"ecot", "annotate.emotions", "rewrite.judge.zh"} <= told.keys()
    assert all(name.startswith(f"{prompt}@") for prompt, name in told.items())


def test_versions_of_one_prompt_stand_side_by_side_and_an_unknown_text_by_its_digest(tmp_path):
    class Pinned:
        table = "sft_coe"

    def chat(text):
        said = [{"role": "system", "content": text}, {"role": "user", "content": "问"}]
        return {"row_id": text[:4], "split": "train", "variant": "none", "messages": said}

    rows = [chat(coe_system_prompt().text), chat("你是倾听者"), chat("你是另一位倾听者")]
    chats = pl.DataFrame(rows, schema=TABLES["sft_coe"].polars_schema())
    released = few_rows(split_of={"g1": "train"}, sft_coe=chats)
    object.__setattr__(released, "pins", {"sft_coe": Pinned()})
    told = used_prompts(released)
    assert told["coe"] == coe_system_prompt().name
    assert len(told["sft_coe"].split(", ")) == 2
