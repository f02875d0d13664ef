"""Provider `written`: replies that people wrote to the questions of the samples."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from reviewed import KEY

from pipelines.core.stage import Stage
from pipelines.errors import UnreadableFile
from pipelines.flow.clients import ClientPool
from pipelines.flow.runner import Runner
from pipelines.flow.stages import STAGES
from pipelines.llm.prompts import Prompt
from pipelines.llm.providers import written
from pipelines.llm.providers.written import WrittenClient, key_of, replies_to
from pipelines.llm.questions import InvalidReply, Question
from pipelines.operations.sample_votes import read_votes, write_sample_votes
from pipelines.settings import Llm, Settings
from pipelines.store import Store

pytestmark = pytest.mark.xdist_group("written")

ASKING = [stage for stage in STAGES if stage.asks]


@pytest.fixture(scope="module")
def clients() -> Iterator[ClientPool]:
    with ClientPool(None, Llm(), provider="written") as opened:
        yield opened


@pytest.fixture(scope="module")
def store(sample_home: Path, clients: ClientPool, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The sample home, all that is asked answered by what was written, and labelled, as the demo does it."""
    home = tmp_path_factory.mktemp("written-home")
    shutil.copytree(sample_home / "data", home / "data")
    store = Store(home / "data")
    for stage in STAGES:
        Runner(store, Settings(), clients).run(stage)
        if stage.name == "cer_candidates":
            write_sample_votes(store, Settings(), KEY)
    return store


def test_there_are_some_hundred_replies_and_some_for_every_stage_that_asks():
    numbers = [len(replies_to(stage.name)) for stage in ASKING]
    assert sum(numbers) >= 350
    assert min(numbers) > 0


def test_every_vote_is_on_a_candidate_of_the_samples_and_what_is_agreed_on_is_taught(store: Store):
    assert store.version("cer_votes").rows == len(read_votes())
    consensus = Counter(store.read("cer_labels").collect()["consensus"])
    assert consensus["agreed"] >= 20
    assert consensus["adjudicated"] >= 6
    assert store.read_dropped("cer_labels").collect()["reason"].to_list() == ["no_two_agree"]
    assert store.read_dropped("rm_unified").collect().is_empty()
    split_of = Counter(store.read("rm_unified").collect()["split"])
    assert min(split_of["validation"], split_of["test"]) >= 4, "a batch of cpu_smoke, to validate on"


def test_every_table_has_rows_that_stand_where_nobody_says_again_who_answers(store: Store):
    """Nothing goes back to waiting for a model."""
    runner = Runner(store, Settings())
    assert not {table for stage in STAGES for table in stage.tables if not store.version(table).rows}
    assert not any(runner.waits_for_model(stage) or runner.is_stale(stage) for stage in STAGES)


@pytest.mark.parametrize("stage", ASKING, ids=lambda stage: stage.name)
def test_every_reply_answers_a_question_of_the_samples_and_becomes_a_row(
    stage: Stage, store: Store, clients: ClientPool
):
    plan = Runner(store, Settings(), clients).inputs(stage).plan
    assert plan is not None
    keys = [key_of(question) for question in plan.questions]
    lines = map(json.loads, (written.FOLDER / f"{stage.name}.jsonl").read_text(encoding="utf-8").splitlines())
    in_vain = {one["row_id"] for one in lines if (one["task"], one["alias"], one["sample"], one["inputs"]) not in keys}
    # Which posts train follows from their authors' pseudonyms, and so from the home's key.
    dropped = store.read_dropped(stage.name).collect()
    assert in_vain <= set(dropped.filter(reason="not_train")["row_id"]), "written for what nobody asks any more"
    rows = store.read(stage.name).collect()
    assert rows.height > 0
    assert set(rows["provider"]) <= {"written", "none"}
    assert set(rows["model_asked"].drop_nulls()) == {"written"}, "no model's name stands on what we wrote"
    assert dropped.filter(reason="personal_data").is_empty()
    unwritten = sum(key not in replies_to(stage.name) for key in keys)
    assert dropped.filter(reason="not_written").height == unwritten, "a row without a reply is counted"
    assert not Runner(store, Settings(), clients).is_stale(stage)


PROMPT = Prompt("annotate.test", "1-00000000", "Say something.")


def question(prompt: Prompt = PROMPT) -> Question[str]:
    def parse(text: str) -> str:
        if text == "no reply":
            raise InvalidReply("form", "write something else")
        return text

    return Question("test", "sample:p1", prompt, {"text": "我睡不着"}, parse, "qwen-plus")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of written replies to the stage `test`."""
    monkeypatch.setattr(written, "FOLDER", tmp_path)
    replies_to.cache_clear()
    yield tmp_path / "test.jsonl"
    replies_to.cache_clear()


def line(reply: str) -> str:
    task, alias, sample, inputs = key_of(question())
    told = {"task": task, "row_id": "sample:p1", "alias": alias, "sample": sample, "inputs": inputs, "reply": reply}
    return json.dumps(told, ensure_ascii=False)


def test_a_better_prompt_and_another_id_do_not_lose_a_reply(file: Path):
    file.write_text(line("先躺一会儿"), encoding="utf-8")
    other = replace(question(prompt=Prompt("annotate.test", "2-11111111", "Say it better.")), row_id="replica:7")
    (reply,) = WrittenClient(Llm()).ask("test", [other])
    assert (reply.value, reply.provenance.model_asked, reply.provenance.model_served) == ("先躺一会儿", "written", None)


def test_another_text_hand_draw_or_task_is_another_question(file: Path):
    file.write_text(line("先躺一会儿"), encoding="utf-8")
    for change in ({"inputs": {"text": "我睡得着"}}, {"model": "qwen2.5-72b"}, {"sample": 1}, {"task": "x"}):
        (reply,) = WrittenClient(Llm()).ask("test", [replace(question(), **change)])
        assert (reply.value, reply.reason) == (None, "not_written")


def test_a_line_that_is_no_reply_is_named(file: Path):
    for content, where in (
        ('{"task": "test"}', "line 2"),
        (line("no reply"), "test of sample:p1 is no reply to it: form"),
    ):
        file.write_text(f"{line('好')}\n{content}\n", encoding="utf-8")
        replies_to.cache_clear()
        with pytest.raises(UnreadableFile, match=where):
            WrittenClient(Llm()).ask("test", [question()])
