"""Tasks go out to people and their labels come back: one home, from the export to the training sets."""

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from filled_sheet import opened
from labels_made import LABELLED
from reviewed import label, lines, read_tasks
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.errors import Busy, LabelsRefused, NoVersion, RequestError, UnknownName, UnreadableFile
from pipelines.flow.runner import Runner
from pipelines.flow.stages import MAKERS
from pipelines.operations.calibrate.judges import calibrate_judge
from pipelines.operations.review import inbox as inbox_module
from pipelines.operations.review.exporting import Exported, ExportOptions, export, sent_tasks, task_file, withdraw
from pipelines.operations.review.importing import import_from_server, import_labels
from pipelines.operations.review.inbox import take_all
from pipelines.operations.review.people import agreement_of, enrol, people, people_file
from pipelines.operations.review.team import pull, push
from pipelines.review.contract import Label
from pipelines.settings import Review
from pipelines.store import Store
from pipelines.store.suppression import SuppressionList
from schemas.reasoning import Coe

SETTINGS = LABELLED.model_copy(update={"review": Review(only_reviewed=True)})
NAMES = ["王老师", "李老师"]


@pytest.fixture(scope="module")
def made(labelled_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Chains, candidates and their sources, labelled by nobody. Read only."""
    store = Store(tmp_path_factory.mktemp("unlabelled"))
    for table in ("unique_posts", "coherent_dialogues", "sampled_turns", "splits", "coe_chains", "cer_candidates"):
        store.write(table, labelled_store.read(table))
    return store


@pytest.fixture
def store(made: Store, tmp_path: Path) -> Store:
    """The store of a home with a copy of them."""
    return Store(shutil.copytree(made.storage.root, tmp_path / "home" / "data"))


@pytest.fixture
def home(store: Store) -> Path:
    return store.storage.root.parent


def send(home: Path, kind: str = "cer", names: list[str] = NAMES, **more) -> Exported:
    out = more.pop("out", None)
    return export(home, SETTINGS, kind, names, ExportOptions(**more), out)


def tasks_of(exported: Exported) -> Iterator[list]:
    for one in exported.tasks:
        yield read_tasks(task_file(exported.folder, one))


def take(home: Path, kind: str, *texts: str):
    files = []
    for number, text in enumerate(texts):
        files.append(home.parent / f"labels-{number}.jsonl")
        files[-1].write_text(text, encoding="utf-8")
    return import_labels(home, kind, files)


def test_votes_become_labels_and_what_is_learnt_of_them(home, store):
    of_each = list(tasks_of(send(home)))
    both = [lines(*(label(task, preference="both", step3=True) for task in tasks)) for tasks in of_each]
    imported = take(home, "cer", *both)
    n_candidates = store.read("cer_candidates").collect().height
    assert (imported.new, imported.known) == (2 * n_candidates, 0)
    labels = store.read("cer_labels").collect()
    assert labels.height == n_candidates > 0
    assert {name for names in labels["annotators"] for name in names} == set(people(home))
    made = Runner(store, SETTINGS).run(MAKERS["rm_process"])[0]
    assert made.rows == 3 * n_candidates, "each label is of its candidate as it stands"
    assert set(store.read("rm_process").collect()["split"]) == {"train", "validation", "test"}


def test_the_same_labels_again_change_nothing(home, store):
    tasks = next(tasks_of(send(home)))
    text = lines(*(label(task) for task in tasks))
    first = take(home, "cer", text)
    again = take(home, "cer", text)
    assert (again.new, again.known, again.versions) == (0, len(tasks), [])
    assert (first.new, len(store.versions("cer_votes"))) == (len(tasks), 1)


@pytest.mark.parametrize("saved", ["题目,回答\n第一题,对\n", '[\n  {\n    "kind": "cer"\n  }\n]', "\ufeff\n \n"])
def test_a_file_without_any_label_is_refused_once(home, saved):
    send(home)
    with pytest.raises(UnreadableFile, match="there is no label") as error:
        take(home, "cer", saved)
    assert "as it went out, .xlsx" in str(error.value)


def test_a_spreadsheet_goes_out_and_its_answers_come_back(home, store):
    exported = send(home, sheet=True, page=True, size=2)
    [task, *_] = next(tasks_of(exported))
    book, page = (task_file(exported.folder, task.annotator, suffix) for suffix in (".xlsx", ".html"))
    assert "default-src 'none'" in page.read_text(encoding="utf-8")
    with pytest.raises(UnreadableFile, match="nothing is answered yet"):
        import_labels(home, "cer", [book])
    answers = {"step1": True, "step2": False, "step3": True, "preference": "both"}
    with opened(book) as sheet:
        sheet.give(task.task_id, answers)
    assert import_labels(home, "cer", [book]).new == 1
    assert import_labels(home, "cer", [book]).known == 1
    [vote] = store.read("cer_votes").collect().to_dicts()
    assert {name: vote[name] for name in answers} == answers
    with opened(book) as sheet:
        sheet.text(task.task_id, "reply1").value = "换了一句"
    with pytest.raises(LabelsRefused, match="was changed"):
        import_labels(home, "cer", [book])


def test_what_went_out_is_pushed_to_a_team_once_and_nothing_is_pulled_before_anybody_labels(home):
    exported = send(home)
    pushed = push(home, "cer")
    assert pushed.new == sum(exported.tasks.values())
    assert len(pushed.passwords) == len(NAMES)
    assert push(home, "cer") == (0, pushed.new, 0, {}, [])
    withdraw(home, "cer", NAMES[:1])
    assert push(home, "cer").withdrawn == pushed.new // 2
    with pytest.raises(NoVersion, match="nobody has a server"):
        push(home, "cer", "label-studio")
    with pytest.raises(UnknownName):
        push(home, "cer", "studio")
    imported, refused = pull(home, "cer")
    assert (imported.new, imported.known, refused) == (0, 0, [])


def test_nothing_is_half_imported(home, store):
    tasks = next(tasks_of(send(home)))
    with pytest.raises(LabelsRefused) as error:
        take(home, "cer", lines(*(label(task) for task in tasks), label(tasks[0], step1=False), {"task_id": "x"}))
    assert [(one.line, one.reason) for one in error.value.refusals] == [
        (len(tasks) + 1, "twice"),
        (len(tasks) + 2, "wrong_form"),
    ]
    assert f"line {len(tasks) + 1}, task {tasks[0].task_id}: the task has a label already" in str(error.value)
    assert not store.current("cer_votes")
    assert not store.current("cer_labels")


def test_labels_by_others_stay(home, store):
    listed = [task for of_one in tasks_of(send(home)) for task in of_one]
    tasks = [task for task in listed if task.item_id == listed[0].item_id]
    take(home, "cer", lines(*(label(task, preference="both") for task in tasks)))
    [ours] = store.read("cer_labels").collect().to_dicts()
    other = ours | {"candidate": 99, "annotators": ["invented-1", "invented-2"]}
    store.write("cer_labels", pl.DataFrame([ours, other], schema=store.read("cer_labels").collect_schema()))
    [more] = [tasks[1] for tasks in tasks_of(send(home))][:1]
    take(home, "cer", lines(label(more)))
    assert sorted(store.read("cer_labels").collect()["candidate"]) == sorted([ours["candidate"], 99])


def test_a_vote_on_what_a_candidate_was_counts_no_more(home, store):
    tasks = [task for listed in tasks_of(send(home)) for task in listed]
    take(home, "cer", lines(*(label(task, preference="both") for task in tasks)))
    before = store.read("cer_labels").collect()
    candidates = store.read("cer_candidates").collect()
    first = pl.int_range(pl.len()) == 0
    store.write(
        "cer_candidates", candidates.with_columns(response=pl.when(first).then(pl.lit("换一句")).otherwise("response"))
    )
    again = [task for listed in tasks_of(send(home)) for task in listed]
    assert len(again) == 2, "what was made again is asked again, and nothing else"
    assert {task.task_id for task in again}.isdisjoint(task.task_id for task in tasks)
    was = tasks[[task.item_id for task in tasks].index(again[0].item_id)]
    assert take(home, "cer", lines(label(was, preference="both"))).known == 1, "what is in the table stays known"
    [refusal] = refused(home, "cer", lines(label(was) | {"at": "2026-11-02T08:00:00Z"}))
    assert refusal.reason == "item_changed"
    take(home, "cer", lines(*(label(task, preference="neither") for task in again)))
    labels = store.read("cer_labels").collect()
    assert labels.height == before.height
    assert labels.filter(preference="neither").height == 1


def refused(home: Path, kind: str, text: str):
    with pytest.raises(LabelsRefused) as error:
        take(home, kind, text)
    return error.value.refusals


def test_chains_that_were_accepted_or_mended_are_taught_and_no_others(home, store):
    [tasks] = tasks_of(send(home, "coe", ["心理师"]))
    assert len(tasks) >= 4
    said = [
        {"verdict": "accept"},
        {"verdict": "mend", "edits": {"L2": "她把别人的疏忽读成了自己的错"}},
        {"verdict": "reject", "comment": "答非所问"},
    ]
    take(home, "coe", lines(*(label(task, **answers) for task, answers in zip(tasks, said, strict=False))))
    Runner(store, SETTINGS).run(MAKERS["sft_coe"])
    rows = {row["made_from"]: row for row in store.read("sft_coe").collect().to_dicts()}
    assert set(rows) == {tasks[0].item_id, tasks[1].item_id}
    assert all(row["reviewed"] for row in rows.values())
    taught = Coe.parse(rows[tasks[1].item_id]["messages"][-1]["content"])
    assert (tasks[1].content["L1"], "她把别人的疏忽读成了自己的错") == (taught.L1, taught.L2)
    reasons = dict(store.read_dropped("sft_coe").collect().select("row_id", "reason").iter_rows())
    assert reasons.pop(tasks[2].item_id) == "rejected"
    assert set(reasons.values()) == {"not_reviewed"}


def test_rankings_name_the_models_that_nobody_saw(home, store, tmp_path):
    answers = [{"model": name, "text": f"第{number}种说法"} for number, name in enumerate(("m-a", "m-b", "m-c"))]
    questions = tmp_path / "questions.jsonl"
    questions.write_text(json.dumps({"question_id": "q1", "question": "我睡不着", "answers": answers}))
    of_each = [tasks for [*tasks] in tasks_of(send(home, "rank", questions=questions))]
    for path in (home / "review").rglob("tasks-*.jsonl"):
        assert "m-a" not in path.read_text(encoding="utf-8")
    # Everybody holds the same answer for the best, wherever it stood.
    texts = [
        lines(label(task, places=[1 + (int(text[1]) + 1) % 3 for text in task.content["answers"]]))
        for [task] in of_each
    ]
    take(home, "rank", *texts)
    rows = store.read("rankings").collect()
    assert rows["models"].to_list() == [["m-a", "m-b", "m-c"]] * 2
    assert rows["places"].to_list() == [[2, 3, 1]] * 2


# --- What goes out


def test_the_order_of_replies_stays_at_home_and_so_do_names(home):
    exported = send(home)
    assert len(exported.tasks) == 2
    for one, tasks in zip(exported.tasks, tasks_of(exported), strict=True):
        text = task_file(exported.folder, one).read_text(encoding="utf-8")
        assert len(tasks) == exported.tasks[one]
        assert '"order"' not in text
        assert not any(name in text for name in NAMES)
    assert people_file(home).stat().st_mode & 0o777 == 0o600
    assert sorted(people(home).values()) == sorted(NAMES)


def test_an_export_again_asks_what_has_no_label_yet(home, store):
    first = send(home)
    tasks, _ = tasks_of(first)
    take(home, "cer", lines(*(label(task) for task in tasks[:2])))
    again = send(home, names=[*reversed(NAMES)])
    assert sum(again.tasks.values()) == sum(first.tasks.values()) - 2
    assert len(store.versions("review_tasks")) == 1, "a task that went out before stays as it was"


def test_what_went_out_can_be_handed_on_until_it_is_answered(home):
    listed = [task for tasks in tasks_of(send(home)) for task in tasks]
    sent = {task.task_id: task for task in sent_tasks(home, "cer")}
    assert {name: task.model_copy(update={"order": []}) for name, task in sent.items()} == {
        task.task_id: task for task in listed
    }
    assert {tuple(task.order) for task in sent.values()} == {(0, 1), (1, 0)}
    take(home, "cer", lines(label(listed[0])))
    assert set(sent) - {task.task_id for task in sent_tasks(home, "cer")} == {listed[0].task_id}


def test_what_may_not_be_shown_goes_to_nobody(home, store):
    by_dialogue = store.read("cer_candidates").collect()["dialogue_id"].unique().sort()
    SuppressionList(home).add([by_dialogue[0]])
    (home / "takedown.txt").write_text(f"{by_dialogue[1]}  # wishes it\n")
    shown = {task.item_id.partition("#")[0] for tasks in tasks_of(send(home)) for task in tasks}
    assert set(by_dialogue) - shown == {by_dialogue[0], by_dialogue[1]}
    [first, *_] = store.read("coe_chains").collect().to_dicts()
    SuppressionList(home).add([first["answer_id"]])
    exported = send(home, "coe")
    assert first["post_id"] not in {task.item_id for tasks in tasks_of(exported) for task in tasks}
    assert exported.left_out["no_answer"] == 1


def test_a_draw_of_some_is_the_beginning_of_a_greater_one(home):
    def ids(size: int) -> set[str]:
        return {task.item_id for tasks in tasks_of(send(home, size=size)) for task in tasks}

    assert len(ids(3)) == 3
    assert ids(3) < ids(5)


def test_what_two_differ_on_goes_to_a_third_person_whose_vote_decides(home, store):
    one, two = tasks_of(send(home))
    differing = {two[0].item_id}
    said = [label(task, preference="both", step1=True) for task in one]
    said += [label(task, preference="both", step1=task.item_id not in differing) for task in two]
    take(home, "cer", lines(*said))
    labels = store.read("cer_labels").collect()
    assert labels.height == len(one) - 1
    assert set(labels["consensus"]) == {"agreed"}
    [third] = [task for tasks in tasks_of(send(home, names=[*NAMES, "张老师"], third=True)) for task in tasks]
    assert third.item_id in differing
    assert sum(send(home, names=[*NAMES, "张老师"]).tasks.values()) == 0, "it is no task of the first round"
    assert people(home)[third.annotator] == "张老师"
    assert store.read("review_tasks").collect().filter(task_id=third.task_id)["role"].to_list() == ["adjudicator"]
    take(home, "cer", lines(label(third, preference="both", step1=False)))
    [decided] = store.read("cer_labels").collect().filter(consensus="adjudicated").to_dicts()
    assert (decided["step1"], len(decided["annotators"])) == (False, 3)
    assert sum(send(home, names=[*NAMES, "张老师"], third=True).tasks.values()) == 0


def test_what_cannot_be_is_said(home, store, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    empty = tmp_path / "empty"
    empty.touch()
    for error, call in (
        (UnknownName, lambda: send(home, "cor")),
        (UnknownName, lambda: import_labels(home, "cor", [])),
        (RequestError, lambda: send(home, names=["a", " a "])),
        (RequestError, lambda: send(home, names=["a", ""])),
        (RequestError, lambda: send(home, out=tmp_path / "full")),
        (RequestError, lambda: send(home, questions=empty)),
        (RequestError, lambda: send(home, "coe", third=True)),
        (NoVersion, lambda: send(home, "rank")),
        (NoVersion, lambda: take(home, "cer", "{}")),
        (RequestError, lambda: send(home, each=2)),
        (NoVersion, lambda: send(tmp_path / "other")),
    ):
        with pytest.raises(error):
            call()
    assert not store.current("review_tasks")


def test_a_pseudonym_that_is_known_stands_for_itself(home):
    [first] = enrol(home, ["王老师"])
    assert enrol(home, [first, "李老师"])[0] == first
    with pytest.raises(RequestError, match="named twice"):
        enrol(home, [first, "王老师"])


def test_a_killed_export_leaves_no_folder(home, store, monkeypatch):
    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            send(home)
    assert not list((home / "review").glob("cer-*[0-9]"))
    assert sum(send(home).tasks.values()) == 2 * store.read("cer_candidates").collect().height


def test_a_file_that_is_none_is_named(home, tmp_path):
    send(home)
    (tmp_path / "empty").touch()
    (tmp_path / "sheet.XLSX").write_bytes(b"PK\x03\x04")
    for name in ("empty", "nowhere", "sheet.XLSX"):
        with pytest.raises(UnreadableFile, match=name):
            import_labels(home, "cer", [tmp_path / name])


def test_names_are_the_same_in_capitals_and_other_widths(home):
    [one] = enrol(home, ["Ann  Lee"])
    assert enrol(home, ["ＡＮＮ lee"]) == [one]
    with pytest.raises(RequestError, match="named twice"):
        enrol(home, ["ann lee", "ANN LEE"])


def test_what_a_killed_export_left_is_in_no_later_one(home, tmp_path):
    (tmp_path / "out.part").mkdir()
    (tmp_path / "out.part" / "tasks-u_0.jsonl").write_text("half")
    exported = send(home, out=tmp_path / "out")
    assert {path.name for path in exported.folder.iterdir()} == {f"tasks-{one}.jsonl" for one in exported.tasks}


# --- Who leaves, who comes later


def test_the_tasks_of_who_leaves_go_to_others_and_their_labels_are_refused(home, store):
    one, two = tasks_of(send(home))
    take(home, "cer", lines(label(two[0])))
    assert withdraw(home, "cer", ["李老师"]) == len(two) - 1
    [refusal] = refused(home, "cer", lines(label(two[1])))
    assert refusal.reason == "unknown_task"
    again = send(home, names=["王老师", "张老师"])
    assert sum(again.tasks.values()) == len(one) + len(two) - 1
    assert set(store.read("review_tasks").collect().group_by("item_id").len()["len"]) == {2}


def test_who_was_never_asked_is_no_name_to_take_tasks_back_from(home):
    send(home)
    with pytest.raises(UnknownName, match="did you mean '李老师'"):
        withdraw(home, "cer", ["李老帅"])
    assert sorted(people(home).values()) == sorted(NAMES), "nobody is enrolled by a slip"
    [one] = [one for one, name in people(home).items() if name == "李老师"]
    assert withdraw(home, "cer", [one]) > 0


def test_new_items_are_shared_by_those_who_take_part_where_one_alone_is_named(home, store):
    candidates = store.read("cer_candidates").collect()
    store.write("cer_candidates", candidates.head(-1))
    send(home)
    store.write("cer_candidates", candidates)
    exported = send(home, names=["王老师"])
    assert list(exported.others.values()) == [1]
    assert sum(exported.tasks.values()) == candidates.height
    withdraw(home, "cer", NAMES)
    with pytest.raises(RequestError, match="2 people are asked about each item, and there are 1"):
        send(home, names=["王老师"])


def test_two_professionals_can_be_asked_about_each_chain(home):
    one, two = tasks_of(send(home, "coe", each=2))
    assert {task.item_id for task in one} == {task.item_id for task in two}
    take(home, "coe", lines(*(label(task) for task in (*one, *two))))
    [verdict] = [row for row in agreement_of(home, "coe").figures.to_dicts() if row["annotator"] is None]
    assert (verdict["raw"], verdict["n_items"]) == (1.0, len(one))


# --- Known answers, and what models suggest


def answered(path: Path, *rows: dict) -> Path:
    path.write_text(lines(*rows), encoding="utf-8")
    return path


def test_items_with_a_known_answer_are_asked_and_decide_nothing(home, store, tmp_path):
    ids = sorted(task.item_id for task in next(tasks_of(send(home, size=5))))
    right = {"step1": True, "step2": True, "step3": True, "preference": "both"}
    first = {"item_id": ids[0], "answers": right, "calibration": True, "why": "三步都对"}
    gold = answered(tmp_path / "gold.jsonl", first, {"item_id": ids[1], "answers": right})
    withdraw(home, "cer", NAMES)
    of_each = list(tasks_of(send(home, gold=gold)))
    assert [tasks[0].item_id for tasks in of_each] == [ids[0]] * 2
    roles = dict(store.read("review_tasks").collect().select("item_id", "role").iter_rows())
    assert (roles[ids[0]], roles[ids[1]]) == ("calibration", "gold")
    said = [label(task, preference="both", step3=task.item_id != ids[1]) for tasks in of_each for task in tasks]
    take(home, "cer", lines(*said))
    assert store.read("cer_labels").collect().height == store.read("cer_candidates").collect().height - 2
    assert agreement_of(home, "cer").work.select("known", "right").rows() == [(2, 0.5)] * 2
    for wrong, what in (({"item_id": "none", "answers": right}, "no such item"), (first | {"answers": {}}, "of cer")):
        with pytest.raises(UnreadableFile, match=what):
            send(home, gold=answered(tmp_path / "wrong.jsonl", wrong))


def test_what_a_model_suggests_is_marked_and_such_labels_are_no_independent_ones(home, store, tmp_path):
    [first, *_] = sorted(store.read("coe_chains").collect()["post_id"])
    row = {"item_id": first, "model": "m-7", "answers": {"verdict": "reject", "comment": "不接"}}
    exported = send(home, "coe", each=2, suggestions=answered(tmp_path / "s.jsonl", row))
    listed = [task for tasks in tasks_of(exported) for task in tasks]
    assert [task.item_id for task in listed if "suggestion" in task.content] == [first] * 2
    assert not any("m-7" in path.read_text(encoding="utf-8") for path in (home / "review").rglob("tasks-*"))
    take(home, "coe", lines(*(label(task) for task in listed)))
    reviews = store.read("coe_reviews").collect()
    assert set(reviews.filter("suggested")["post_id"]) == {first}
    [verdict] = [row for row in agreement_of(home, "coe").figures.to_dicts() if row["annotator"] is None]
    assert verdict["n_items"] == reviews["post_id"].n_unique() - 1
    assert [task for task in sent_tasks(home, "coe", answered=True) if task.content.get("suggestion")]


# --- Labels that come again, or come wrong


def test_a_corrected_answer_takes_the_place_of_the_first_and_the_labels_follow(home, store):
    one, two = tasks_of(send(home))
    take(home, "cer", lines(*(label(task, preference="both") for task in (*one, *two))))
    later = {"at": "2026-11-02T08:00:00Z"}
    imported = take(home, "cer", lines(label(one[0], preference="neither") | later))
    assert (imported.new, imported.replaced) == (1, 1)
    assert store.read("cer_labels").collect().height == len(one) - 1, "the two differ now"
    with pytest.raises(LabelsRefused, match="answered before"):
        take(home, "cer", lines(label(two[0], preference="neither")))


def test_of_a_server_what_is_right_is_taken_and_the_rest_is_listed(home, store):
    one, two = tasks_of(send(home))
    sent = [Label.model_validate_json(lines(label(task))) for task in one]
    sent += [Label.model_validate_json(lines(label(two[0]) | {"annotator": one[0].annotator}))]
    imported = import_from_server(home, "cer", sent, "server")
    assert (imported.new, [refusal.reason for refusal in imported.refusals]) == (len(one), ["another_person"])
    assert store.read("cer_votes").collect().height == len(one)


def test_a_sheet_without_answers_and_a_bad_one_are_named_beside_the_others(home):
    exported = send(home, sheet=True, size=2)
    blank, other = (task_file(exported.folder, one, ".xlsx") for one in exported.tasks)
    [task, *_] = read_tasks(other.with_suffix(".jsonl"))
    with opened(other) as sheet:
        sheet.give(task.task_id, {"step1": True, "step2": True, "step3": True, "preference": "first"})
    imported = import_labels(home, "cer", [blank, other])
    assert (imported.new, imported.empty) == (1, (blank,))
    with pytest.raises(RequestError, match="named twice"):
        import_labels(home, "cer", [other, other])
    [begun, *_] = read_tasks(blank.with_suffix(".jsonl"))
    with opened(blank) as sheet:
        sheet.answer(begun.task_id, "step1").value = "对"
    with pytest.raises(LabelsRefused) as error:
        import_labels(home, "cer", [blank, other])
    [refusal] = error.value.refusals
    assert (refusal.file, refusal.task_id, refusal.reason) == (str(blank), begun.task_id, "missing_answer")


# --- Models beside people, and labels that arrive by themselves


def test_a_model_is_held_against_the_people_who_labelled(home, store, tmp_path):
    people_ = ["甲", "乙", "丙", "丁"]
    for listed in tasks_of(send(home, names=people_)):
        take(
            home, "cer", lines(*(label(task, preference="both", step1=int(task.shown, 16) % 9 > 0) for task in listed))
        )
    right = {"step1": True, "step2": True, "step3": False, "preference": "both"}
    ids = sorted(set(store.read("review_tasks").collect()["item_id"]))
    model = answered(tmp_path / "m.jsonl", *({"item_id": one, "model": "m", "answers": right} for one in ids))
    rows = {row["question"]: row for row in calibrate_judge(home, "cer", model, "experts").to_dicts()}
    assert set(rows) == {"step1", "step2", "step3", "preference"}
    assert (rows["preference"]["omega"], rows["preference"]["kappa_of_people"]) == (1.0, None)
    assert rows["step1"]["n_people"] == 4
    assert 0 < rows["step1"]["rho"] <= 1
    assert len(store.versions("judge_tests")) == 1
    calibrate_judge(home, "cer", model, "experts")
    assert len(store.versions("judge_tests")) == 1, "the same figures change nothing"
    both = [{"item_id": one, "model": name, "answers": right} for one in ids for name in ("m", "n")]
    of_both = calibrate_judge(home, "cer", answered(tmp_path / "both.jsonl", *both), "experts")
    assert set(of_both["model"]) == {"m", "n"}
    with pytest.raises(UnreadableFile, match="the same item_id and model twice"):
        calibrate_judge(home, "cer", answered(tmp_path / "twice.jsonl", *both, both[0]), "experts")
    for kind, of, error in (
        ("rank", "experts", RequestError),
        ("cer", "friends", UnknownName),
        ("coe", "crowd", NoVersion),
    ):
        with pytest.raises(error):
            calibrate_judge(home, kind, model, of)


def test_files_in_the_inbox_are_taken_once_and_what_is_wrong_is_moved_aside(home, store):
    one, two = tasks_of(send(home))
    inbox = home / "review" / "inbox" / "cer"
    inbox.mkdir(parents=True)
    (inbox / "a.jsonl").write_text(lines(*(label(task) for task in one)))
    (inbox / "b.jsonl").write_text(lines(label(two[0], preference="王小明")))
    first = take_all(home)
    assert (first.new, [path.name for path in first.refused]) == (len(one), ["b.jsonl"])
    assert (inbox / "taken" / "a.jsonl").exists()
    reasons = (inbox / "refused" / "b.jsonl.txt").read_text(encoding="utf-8")
    assert "an answer is none of its choices" in reasons
    assert "王小明" not in reasons
    assert take_all(home).new == 0
    (inbox / "b.jsonl").write_text(lines(label(two[0])))
    assert take_all(home, time.time()).new == 0, "somebody may be writing it still"
    assert take_all(home, time.time() + 60).new == 1
    assert sorted(path.name for path in (inbox / "taken").iterdir()) == ["a.jsonl", "b.jsonl"]
    assert store.read("cer_votes").collect().height == len(one) + 1


def test_what_was_taken_before_another_begins_is_told(home, monkeypatch):
    """Its file lies in `taken`: without a word of it now nothing would refresh what follows."""
    one, two = tasks_of(send(home))
    inbox = home / "review" / "inbox" / "cer"
    inbox.mkdir(parents=True)
    (inbox / "a.jsonl").write_text(lines(label(one[0])))
    (inbox / "b.jsonl").write_text(lines(label(two[0])))
    imported = inbox_module.import_labels

    def busy_for_the_second(home_, kind, files):
        if files[0].name == "b.jsonl":
            raise Busy("a refresh is at work")
        return imported(home_, kind, files)

    with monkeypatch.context() as patched:
        patched.setattr(inbox_module, "import_labels", busy_for_the_second)
        taken = take_all(home)
        assert (taken.new, (inbox / "b.jsonl").exists()) == (1, True)
        with pytest.raises(Busy):
            take_all(home)
    assert take_all(home).new == 1


# --- The commands


@pytest.fixture
def gongqing(home, monkeypatch):
    """Runs a command of `gongqing review` on the home; gives what it prints as JSON."""
    monkeypatch.setenv("GONGQING_HOME", str(home))

    def run(*words: str):
        ran = CliRunner().invoke(app, ["review", *words, "--json"], catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        return json.loads(ran.output)

    return run


def test_the_commands_take_tasks_out_and_labels_in_and_say_how_far_people_agree(gongqing, home, tmp_path):
    assert gongqing("agreement", "cer") == {"agreement": [], "people": []}
    sent = gongqing("export", "cer", "--annotators", "王老师,李老师", "--size", "5", "--out", str(tmp_path / "out"))
    assert sorted(sent["tasks"].values()) == [5, 5]
    files = []
    for name in sent["files"].values():
        files.append(f"{name}.labels")
        texts = lines(*(label(task, preference="both") for task in read_tasks(Path(name))))
        Path(files[-1]).write_text(texts, encoding="utf-8")
    taken = gongqing("import", "cer", *files)
    assert (taken["new"], taken["known"], [one["table"] for one in taken["versions"]]) == (
        10,
        0,
        ["cer_votes", "cer_labels"],
    )
    found = gongqing("agreement", "cer")
    [step1] = [one for one in found["agreement"] if one["question"] == "step1" and one["annotator"] is None]
    assert (step1["n_items"], step1["raw"]) == (5, 1.0)
    assert [(one["items"], one["median"]) for one in found["people"]] == [(5, 31.5)] * 2


def test_the_commands_say_in_words_what_they_did(home, monkeypatch):
    monkeypatch.setenv("GONGQING_HOME", str(home))

    def said(*words: str) -> str:
        ran = CliRunner().invoke(app, ["review", *words], catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        return ran.output

    assert "nobody has labelled anything yet" in said("agreement", "coe")
    out = said("export", "coe", "--annotators", "王老师")
    assert re.match(r"王老师: [0-9]+ tasks in .*tasks-u_[0-9a-f]{16}\.jsonl\n", out)
    [path] = (home / "review").glob("*/tasks-*.jsonl")
    labels = path.with_suffix(".labels")
    labels.write_text(lines(*(label(task) for task in read_tasks(path))), encoding="utf-8")
    assert re.search(
        r"^[0-9]+ new labels, 0 that were there already\ncoe_reviews: ", said("import", "coe", str(labels))
    )
    assert "undefined" in said("agreement", "coe"), "one professional alone agrees with nobody"
