"""What is written for Potato: whose items, with which texts, which questions, which accounts."""

import hashlib
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from potato_people import pairs, store
from potato_tasks import CONTENTS, task
from review_tasks import HOSTILE, hostile

from pipelines.core.files import held
from pipelines.errors import Busy, RequestError
from pipelines.review.contract import Kind
from pipelines.review.potato import SERVING, folder_of, passwords_of, projects_of, pull, push, require_stopped
from pipelines.review.potato_page import as_written, configuration, item_id, item_of
from pipelines.review.questions import screen_of

KINDS: tuple[Kind, ...] = ("coe", "cer", "rank", "compare")
KEYS = {"secret_key": "s", "admin_api_key": "a"}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def config_of(project: Path) -> dict[str, Any]:
    return json.loads((project / "config.yaml").read_text(encoding="utf-8"))


def contents(home: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in folder_of(home).rglob("*") if path.is_file() and path.name != ".pushing"]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_each_task_is_the_item_of_the_person_who_is_asked(tmp_path: Path) -> None:
    tasks = [task("cer", 1, "p1", [0, 1]), task("cer", 1, "p2", [1, 0]), task("cer", 2, "p1", [1, 0])]
    push(tmp_path, tasks)
    items = lines(folder_of(tmp_path) / "cer" / "items.jsonl")
    assert [item["annotators"] for item in items] == [["p1"], ["p2"], ["p1"]]
    first, second = CONTENTS["cer"]["replies"]
    assert [(item["reply1"], item["reply2"]) for item in items] == [(first, second), (second, first), (second, first)]
    config = config_of(folder_of(tmp_path) / "cer")
    assert (config["assignment_strategy"], config["batch_assignment"]) == ("batch", {"annotator_key": "annotators"})


def test_an_item_says_nothing_but_what_is_shown() -> None:
    """The page has all of it in its source: which reply is a model's, and which item it is, is not for the reader."""
    asked = task("cer", 7, "p1", [1, 0])
    item = item_of(asked)
    assert item.keys() == {"id", "annotators", "dialogue", "step1", "step2", "step3", "reply1", "reply2"}
    assert asked.item_id not in json.dumps(item)
    assert [turn["speaker"] for turn in item["dialogue"]] == ["求助者", "支持者", "求助者"]


def test_another_text_is_another_item() -> None:
    assert item_id(task("coe")) == item_id(task("coe"))
    others = {item_id(task("coe", L1="他很难过。")), item_id(task("coe", 2)), item_id(task("coe", 1, "p2"))}
    assert len(others - {item_id(task("coe"))}) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_asks_what_the_guidelines_ask(kind: Kind) -> None:
    asked = task(kind)
    config = configuration([asked], ["p1"], KEYS)
    screen = screen_of(asked)
    radio = [one for one in config["annotation_schemes"] if one["annotation_type"] == "radio"]
    assert [one["description"] for one in radio] == [question.ask for question in screen.questions]
    assert all(one["label_requirement"] == {"required": True} for one in radio)
    shown = [[choice["displayed_label"] for choice in one["labels"]] for one in radio]
    assert shown == [[choice.label for choice in question.choices] for question in screen.questions]
    texts = [one for one in config["annotation_schemes"] if one["annotation_type"] == "text"]
    assert [one["description"] for one in texts] == [text.ask for text in screen.texts]
    keys = {one["key"] for one in config["instance_display"]["fields"]}
    assert keys == item_of(asked).keys() - {"id", "annotators"}


def test_what_keeps_people_apart_is_set() -> None:
    config = configuration([task("cer")], ["p1", "p2"], KEYS)
    assert config["host"] == "127.0.0.1"
    assert config["require_password"] is True
    assert config["user_config"] == {"allow_all_users": False, "users": ["p1", "p2"]}
    assert config["item_properties"]["text_key"] == "id"  # /api/spans tells it of any item, to anybody
    assert not config.keys() & {"debug", "adjudication", "ai_support", "qda_mode", "solo_mode"}


def test_help_in_a_crisis_is_on_every_page() -> None:
    config = configuration([task("coe")], ["p1"], KEYS)
    assert "12356" in config["custom_footer_html"]
    assert "需要帮助的时候" in config["annotation_instructions"]


def test_rankings_of_three_and_of_four_are_two_projects(tmp_path: Path) -> None:
    pushed = push(tmp_path, [task("rank"), task("rank", 2, answers=["一", "二", "三", "四"])])
    assert pushed.projects == ("rank-3", "rank-4")
    assert [path.name for path in projects_of(tmp_path)] == ["rank-3", "rank-4"]


def test_the_same_tasks_again_change_nothing(tmp_path: Path) -> None:
    tasks = [task(kind, 1, who) for kind in KINDS for who in ("p1", "p2")]
    first = push(tmp_path, tasks)
    before = contents(tmp_path)
    again = push(tmp_path, tasks)
    assert (first.new, first.known, again.new, again.known) == (8, 0, 0, 8)
    assert contents(tmp_path) == before
    assert not again.passwords


def test_new_tasks_and_new_people_come_behind_the_old(tmp_path: Path) -> None:
    push(tmp_path, [task("cer", 2), task("cer", 1)])
    project = folder_of(tmp_path) / "cer"
    words, keys, users = passwords_of(folder_of(tmp_path)), config_of(project), lines(project / "users.jsonl")
    pushed = push(tmp_path, [task("cer", 3), task("cer", 1), task("cer", 1, "p2")])
    assert (pushed.new, pushed.known, list(pushed.passwords)) == (2, 1, ["p2"])
    asked = [task("cer", 2), task("cer", 1), task("cer", 3), task("cer", 1, "p2")]
    assert [item["id"] for item in lines(project / "items.jsonl")] == [item_id(one) for one in asked]
    assert passwords_of(folder_of(tmp_path)) == words | dict(pushed.passwords)
    assert config_of(project)["secret_key"] == keys["secret_key"]  # nobody is signed out
    assert lines(project / "users.jsonl")[:1] == users
    assert config_of(project)["user_config"]["users"] == ["p1", "p2"]


def test_what_is_over_is_taken_back_with_what_was_said_of_it(tmp_path: Path) -> None:
    gone, stays = task("coe"), task("coe", 2)
    push(tmp_path, [gone, stays, task("cer")])
    project = folder_of(tmp_path) / "coe"
    said = {item_id(one): pairs({"verdict:accept": "accept"}) for one in (gone, stays)}
    state = store(tmp_path, "p1", said, project="coe")
    history = [{"instance_id": item_id(one), "timestamp": "2026-01-02T03:04:05"} for one in (gone, stays)]
    state.with_name("annotation_history.jsonl").write_text("\n".join(map(json.dumps, history)), encoding="utf-8")
    pushed = push(tmp_path, [task("coe", 3)], lambda one: one.task_id == gone.task_id)
    assert (pushed.new, pushed.known, pushed.withdrawn) == (1, 0, 1)
    assert {item["id"] for item in lines(project / "items.jsonl")} == {item_id(stays), item_id(task("coe", 3))}
    assert [path for path in project.rglob("*") if path.is_file() and item_id(gone) in path.read_text()] == []
    labels, refusals = pull(tmp_path)
    assert ([label.task_id for label in labels], refusals) == ([stays.task_id], [])
    assert push(tmp_path, [], lambda one: one.kind == "coe").withdrawn == 2
    assert [path.name for path in projects_of(tmp_path)] == ["cer"]
    assert not project.exists()


def test_of_a_server_that_runs_nothing_is_taken_before_it_starts_again(tmp_path: Path) -> None:
    push(tmp_path, [task("cer")])
    project = folder_of(tmp_path) / "cer"
    with held(project / SERVING):
        assert push(tmp_path, [], lambda _: True).restart == ("cer",)
        with pytest.raises(Busy, match="people are labelling"):
            push(tmp_path, [task("cer")]) and require_stopped([project])
        assert project.exists()
    require_stopped([project])


def test_a_server_that_runs_has_to_start_again_for_what_is_new(tmp_path: Path) -> None:
    push(tmp_path, [task("cer"), task("coe")])
    with held(folder_of(tmp_path) / "cer" / SERVING):
        assert push(tmp_path, [task("cer", 2), task("coe", 2)]).restart == ("cer",)
        assert push(tmp_path, [task("cer", 2)]).restart == ()


def test_passwords_are_the_operators_and_hashed_for_the_server(tmp_path: Path) -> None:
    pushed = push(tmp_path, [task("cer", 1, who) for who in ("p1", "p2")])
    words = dict(pushed.passwords)
    assert len(set(words.values())) == 2
    assert min(map(len, words.values())) >= 16
    for user in lines(folder_of(tmp_path) / "cer" / "users.jsonl"):
        salt, _, hashed = user["password"].partition("$")
        assert hashlib.pbkdf2_hmac("sha256", words[user["username"]].encode(), salt.encode(), 100_000).hex() == hashed
    assert not any(word in repr(pushed) for word in words.values())
    files = [path for path in folder_of(tmp_path).rglob("*") if path.is_file()]
    holding = [path.name for path in files if any(word.encode() in path.read_bytes() for word in words.values())]
    assert holding == ["passwords.txt"]
    private = [path for path in files if not path.name.startswith(".")]
    assert len(private) == 6
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
    assert stat.S_IMODE(folder_of(tmp_path).stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["../p1", "p/1", ".p", "pocket", "Pocket", "p" * 65, "p 1", "p\t1", "p\n"])
def test_a_name_that_would_be_another_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RequestError, match="cannot have"):
        push(tmp_path, [task("cer", 1, name)])
    assert not projects_of(tmp_path)


def test_two_names_that_are_one_folder_are_refused_whenever_they_come(tmp_path: Path) -> None:
    push(tmp_path, [task("cer", 1, "Ann")])
    with pytest.raises(RequestError, match="cannot tell"):
        push(tmp_path, [task("coe", 1, "ann")])


def test_no_text_ends_the_script_that_it_is_written_into() -> None:
    items = [item_of(one) for kind in KINDS for one in hostile(kind)]
    assert len(items) == 4 * len(HOSTILE)
    sources = [json.dumps(item) for item in items]
    assert not [source for source in sources if "</" in source or "<!" in source or "<s" in source]
    shown = {item["step1"].replace("\u2060", "") for item in items if "step1" in item}
    assert shown == set(HOSTILE)
    assert as_written("他说<\u2060/b>，3 < 5") == "他说</b>，3 < 5"
