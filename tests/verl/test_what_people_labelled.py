"""From people's labels to what is learnt: E's reviewed chains by a spreadsheet, C's votes by files, up to a dry run."""

import shutil
from pathlib import Path

import pytest
from fake_model import FakePool
from filled_sheet import opened
from labels_made import LABELLED
from reviewed import label, lines, read_tasks
from train_env import start_command

from pipelines.flow.runner import Runner
from pipelines.flow.stages import MAKERS, STAGES
from pipelines.operations.release import release
from pipelines.operations.review.exporting import ExportOptions, export, task_file
from pipelines.operations.review.importing import import_labels
from pipelines.settings import Review
from pipelines.store.store import Store

REVIEWED = LABELLED.model_copy(update={"review": Review(only_reviewed=True)})
pytestmark = [pytest.mark.xdist_group("training"), pytest.mark.timeout(300)]

SAID = [{"verdict": "accept"}, {"verdict": "mend", "edits": {"L2": "把一句话当成了整个自己。"}}, {"verdict": "reject"}]


@pytest.fixture(scope="module")
def home(training_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which nobody has labelled anything yet."""
    home = tmp_path_factory.mktemp("reviewed") / "home"
    shutil.copytree(training_home, home, ignore=shutil.ignore_patterns("cer_labels", "training", "releases"))
    return home


def test_chains_that_a_professional_let_pass_in_a_spreadsheet_are_what_e_learns(home: Path) -> None:
    store = Store(home / "data")
    exported = export(home, REVIEWED, "coe", ["心理师"], ExportOptions(sheet=True))
    [(person, count)] = exported.tasks.items()
    tasks = read_tasks(task_file(exported.folder, person))
    assert count == len(tasks) > 9
    verdicts = {task.task_id: SAID[place % 3] for place, task in enumerate(tasks)}
    book = task_file(exported.folder, person, ".xlsx")
    with opened(book) as sheet:
        for task in tasks:
            sheet.give(task.task_id, verdicts[task.task_id])
    assert import_labels(home, "coe", [book]).new == count
    Runner(store, REVIEWED).run(MAKERS["sft_coe"])
    taught = {row["made_from"]: row for row in store.read("sft_coe").collect().to_dicts()}
    wanted = {task.item_id for task in tasks if verdicts[task.task_id]["verdict"] != "reject"}
    assert set(taught) == wanted
    mended = [task.item_id for task in tasks if verdicts[task.task_id]["verdict"] == "mend"]
    assert all(SAID[1]["edits"]["L2"] in taught[one]["messages"][-1]["content"] for one in mended)


def test_what_two_and_a_third_agree_on_is_rewritten_and_learnt_by_c(home: Path) -> None:
    store = Store(home / "data")
    exported = export(home, LABELLED, "cer", ["甲", "乙", "丙", "丁"])
    files = []
    for person in exported.tasks:
        tasks = read_tasks(task_file(exported.folder, person))
        # Everybody finds the same, but for the third step of one item of nine, on which the two differ.
        said = [
            label(task, preference="both", step3=int(task.item_id.encode().hex(), 16) % 9 > 0 or person < task.shown)
            for task in tasks
        ]
        files.append(task_file(exported.folder, person, ".labels"))
        files[-1].write_text(lines(*said), encoding="utf-8")
    import_labels(home, "cer", files)
    thirds = export(home, LABELLED, "cer", ["戊"], ExportOptions(third=True))
    decided = [label(task, preference="both") for task in read_tasks(task_file(thirds.folder, *thirds.tasks))]
    if decided:
        path = task_file(thirds.folder, *thirds.tasks, ".labels")
        path.write_text(lines(*decided), encoding="utf-8")
        import_labels(home, "cer", [path])
    labels = store.read("cer_labels").collect()
    assert labels.height == store.read("cer_candidates").collect().height
    assert (labels["consensus"] == "adjudicated").sum() == len(decided)
    runner = Runner(store, LABELLED, FakePool(None, LABELLED.llm))
    for stage in STAGES:
        if stage.group in ("review", "rewrite", "training"):
            runner.run(stage)
    tables = {name: store.read(name).collect() for name in ("rewritten_rounds", "sft_cer", "rm_process", "rm_outcome")}
    tables["rm_unified"] = store.read("rm_unified").collect()
    assert [name for name, rows in tables.items() if rows.is_empty()] == []
    for name in ("rm_process", "rm_outcome", "rm_unified"):
        assert set(tables[name]["split"]) == {"train", "validation", "test"}, name
    assert store.read("agreements").collect().filter(kind="cer", annotator="all").height > 0


def test_the_warm_start_is_ready_to_run(home: Path) -> None:
    Runner(Store(home / "data"), REVIEWED).run(MAKERS["sft_coe"])
    release(home, "v1", allow=["not_from_a_model"], settings=REVIEWED)
    process = start_command(home, "train", "empathy_sft", "--preset", "cpu_smoke", "--dry-run", COLUMNS="200")
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert "empathy_sft" in stdout
