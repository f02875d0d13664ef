"""Three people label in the real Potato, on loopback; nobody reads another's labels, by whatever route."""

import html
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import polars as pl
import pytest
from potato_people import Person, list_routes, require_review_env, stored
from potato_tasks import GOOD, task
from review_tasks import hostile
from web_ui import free_port

from pipelines.errors import Busy
from pipelines.operations.review import team
from pipelines.operations.review.exporting import ExportOptions, export, sent_tasks
from pipelines.review.contract import Task
from pipelines.review.potato import folder_of, passwords_of, pull, push, serving
from pipelines.review.potato_page import item_id
from pipelines.review.potato_server import Server, serve
from pipelines.settings import Settings
from pipelines.store.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("potato")]

PEOPLE = ("p1", "p2", "p3")
ITEM_ID = pl.format("{}#{}/{}", "dialogue_id", "round", "candidate").alias("row_id")
OPTIONS = ("first", "second", "both", "neither")
RIGHT = {"step1": True, "step2": True, "step3": True}
# Of an item the votes of two, of the steps and of what is better as the item has it (first: the source's reply).
VOTES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *((RIGHT | {"preference": one}, RIGHT | {"preference": one}) for one in OPTIONS),
    *((RIGHT | {f"step{n}": False, "preference": "both"}, RIGHT | {"preference": "both"}) for n in (1, 2, 3)),
    *(
        (RIGHT | {"preference": one}, RIGHT | {"preference": other})
        for n, one in enumerate(OPTIONS)
        for other in OPTIONS[n + 1 :]
    ),
    (dict.fromkeys(RIGHT, False) | {"preference": "first"}, RIGHT | {"preference": "neither"}),
    *((dict.fromkeys(RIGHT, False) | {"preference": one}, RIGHT | {"preference": one}) for one in OPTIONS[:1]),
]


class Vote(NamedTuple):
    task: Task
    answers: dict[str, Any]


def as_shown(vote: dict[str, Any], order: list[int]) -> dict[str, Any]:
    """A vote as its person gives it, who sees the second reply first where the order says so."""
    turned = {"first": "second", "second": "first"} if order == [1, 0] else {}
    return {**vote, "preference": turned.get(vote["preference"], vote["preference"]), "comment": "记一笔\n第二行"}


def cast(number: int, place: int, vote: dict[str, Any]) -> Vote:
    """The vote of the first, second or third person asked of an item; who that is goes round."""
    order = [[0, 1], [1, 0]][(number + place) % 2]
    return Vote(task("cer", number, PEOPLE[(number + place) % 3], order), as_shown(vote, order))


FIRST = [cast(number, place, vote) for number, votes in enumerate(VOTES) for place, vote in enumerate(votes)]
THIRD = [cast(number, 2, votes[0]) for number, votes in enumerate(VOTES) if votes[0] != votes[1]][:10]


@pytest.fixture(scope="module", autouse=True)
def _environment() -> None:
    require_review_env()


def signed_in(server: Server, name: str) -> Person:
    person = Person(server.url)
    assert person.sign_in(name, passwords_of(server.folder.parent)[name]).text.count("instance_id")
    return person


def label_all(server: Server, votes: list[Vote]) -> None:
    for name in PEOPLE:
        person = signed_in(server, name)
        for vote in votes:
            if vote.task.annotator == name:
                person.label(vote.task, vote.answers)


def answers_of(votes: list[Vote]) -> dict[str, dict[str, Any]]:
    return {vote.task.task_id: vote.answers for vote in votes}


def pulled(home: Path) -> dict[str, dict[str, Any]]:
    labels, refusals = pull(home)
    assert not refusals
    assert len({label.task_id for label in labels}) == len(labels)
    return {label.task_id: label.answers for label in labels}


def test_what_three_people_say_comes_back_and_thirds_are_asked_when_they_are_through(tmp_path: Path) -> None:
    assert (len(FIRST), len(THIRD)) == (30, 10)
    pushed = push(tmp_path, [vote.task for vote in FIRST])
    assert (pushed.new, sorted(pushed.passwords)) == (30, list(PEOPLE))
    served = serve(tmp_path, free_port())
    try:
        [server] = next(served)
        label_all(server, FIRST)
        assert pulled(tmp_path) == answers_of(FIRST)
        assert pulled(tmp_path) == answers_of(FIRST)  # again the same

        assert not next(served)  # nothing was pushed: nothing starts again
        assert push(tmp_path, [vote.task for vote in FIRST]).new == 0
        assert not next(served)

        # All have been told that they are through. What is pushed now reaches them, signed in as they are.
        pushed = push(tmp_path, [vote.task for vote in FIRST + THIRD])
        assert (pushed.new, pushed.known, pushed.restart, pushed.passwords) == (10, 30, ("cer",), {})
        [server] = next(served)
        label_all(server, THIRD)
        assert pulled(tmp_path) == answers_of(FIRST + THIRD)
    finally:
        served.close()
    assert not serving(folder_of(tmp_path) / "cer")
    labels, _ = pull(tmp_path)  # no server is needed for it
    shown = {vote.task.task_id: vote.task.shown for vote in FIRST + THIRD}
    assert {label.task_id: label.shown for label in labels} == shown
    assert all(label.at and label.at.tzinfo for label in labels)


def test_what_was_said_in_potato_stands_in_the_tables(labelled_store: Store, tmp_path: Path) -> None:
    """Two people, and a third where they differ: from the export to `cer_labels`, against what was meant."""
    home = tmp_path / "home"
    store = Store(home / "data")
    for table in ("coherent_dialogues", "sampled_turns", "splits", "cer_candidates"):
        store.write(table, labelled_store.read(table))
    export(home, Settings(), "cer", ["甲", "乙"], ExportOptions(size=4))
    team.push(home, "cer")
    items = sorted({one.item_id for one in sent_tasks(home, "cer")})
    pairs = [("first", "first"), ("both", "both"), ("first", "second"), ("second", "neither")]
    meant = dict(zip(items, pairs, strict=True))
    served = serve(home, free_port())

    def label_sent(server: Server, said: Callable[[Task, int], str]) -> None:
        """Everybody labels what they were sent; `said` is about reference (first) and candidate (second)."""
        sent = sent_tasks(home, "cer")
        for place, name in enumerate(sorted({one.annotator for one in sent})):
            person = signed_in(server, name)
            for one in (some for some in sent if some.annotator == name):
                person.label(one, as_shown(RIGHT | {"preference": said(one, place)}, one.order))

    try:
        [server] = next(served)
        label_sent(server, lambda one, place: meant[one.item_id][place])
        assert team.pull(home, "cer")[0].new == 8
        labels = dict(store.read("cer_labels").collect().select(ITEM_ID, "preference").iter_rows())
        assert labels == {items[0]: "first", items[1]: "both"}
        export(home, Settings(), "cer", ["丙"], ExportOptions(size=4, third=True))
        team.push(home, "cer")
        [server] = next(served)
        label_sent(server, lambda *_: "first")
        assert team.pull(home, "cer")[0].new == 2
        assert team.pull(home, "cer")[0].new == 0
    finally:
        served.close()
    votes = store.read("cer_votes").collect()
    said = {item: sorted(some["preference"]) for (item,), some in votes.with_columns(ITEM_ID).group_by("row_id")}
    thirds = {items[2]: ["first"], items[3]: ["first"]}
    assert said == {item: sorted([*both, *thirds.get(item, [])]) for item, both in meant.items()}
    labels = dict(store.read("cer_labels").collect().select(ITEM_ID, "preference").iter_rows())
    assert labels == {items[0]: "first", items[1]: "both", items[2]: "first"}
    lost = store.read_dropped("cer_labels").collect().select("row_id", "reason").rows()
    assert lost == [(items[3], "no_two_agree")]


def test_every_kind_comes_back(tmp_path: Path) -> None:
    tasks = [task(kind) for kind in GOOD]
    push(tmp_path, tasks)
    served = serve(tmp_path, free_port())
    try:
        servers = {server.folder.name: server for server in next(served)}
        assert sorted(servers) == ["cer", "coe", "compare", "rank-3"]
        for one in tasks:
            signed_in(servers["rank-3" if one.kind == "rank" else one.kind], "p1").label(one, GOOD[one.kind])
    finally:
        served.close()
    assert pulled(tmp_path) == {one.task_id: GOOD[one.kind] for one in tasks}


def test_who_leaves_the_last_item_by_halves_gets_it_again(tmp_path: Path) -> None:
    """Potato calls them done as soon as the page is loaded again."""
    one, other = task("cer", 1), task("cer", 2)
    push(tmp_path, [one, other])
    project, port = folder_of(tmp_path) / "cer", free_port()
    with Server(project, port) as server:
        person = signed_in(server, "p1")
        person.label(one, GOOD["cer"])
        assert person.store(item_id(other), {"step1:true": "true"}).status == 200
        assert "instance_id" not in person.ask("/annotate").text
    labels, [refusal] = pull(tmp_path)
    assert [label.task_id for label in labels] == [one.task_id]
    assert refusal.reason == "unfinished: step2, step3, preference without an answer"
    with Server(project, port) as server:
        signed_in(server, "p1").label(other, GOOD["cer"])
    assert pulled(tmp_path) == {one.task_id: GOOD["cer"], other.task_id: GOOD["cer"]}


def test_what_is_taken_back_is_gone_from_all_that_potato_keeps_and_the_rest_goes_on(tmp_path: Path) -> None:
    gone, done, left = (task("cer", n) for n in (1, 2, 3))
    push(tmp_path, [gone, done, left])
    served = serve(tmp_path, free_port())
    try:
        [server] = next(served)
        for one in (gone, done):
            signed_in(server, "p1").label(one, GOOD["cer"])
        person = signed_in(server, "p1")  # who looks at the last one meanwhile
        pushed = push(tmp_path, [left], lambda one: one.task_id == gone.task_id)
        assert (pushed.withdrawn, pushed.restart) == (1, ("cer",))
        [server] = next(served)
        person.label(left, GOOD["cer"])
        assert item_id(gone) not in person.ask("/annotate").text
        assert pulled(tmp_path) == {one.task_id: GOOD["cer"] for one in (done, left)}
    finally:
        served.close()
    kept = [path for path in folder_of(tmp_path).rglob("*") if path.is_file() and path.name != "potato.log"]
    assert [path for path in kept if item_id(gone).encode() in path.read_bytes()] == []


def test_hostile_texts_are_shown_as_they_are_and_labelled(tmp_path: Path) -> None:
    tasks = hostile("cer")
    push(tmp_path, tasks)
    name = tasks[0].annotator
    with Server(folder_of(tmp_path) / "cer", free_port()) as server:
        person = signed_in(server, name)
        for one in tasks:
            page = person.ask("/annotate").text
            assert "<script>document.title" not in page
            [text] = re.findall(r'class="dialogue-text"[^>]*>(.*?)</span>', page, re.DOTALL)[:1]
            seen = html.unescape(re.sub(r"<br ?/?>", "\n", text)).replace("\u2060", "")
            assert seen.split() == one.content["history"][0]["text"].split()
            person.label(one, GOOD["cer"])
    assert pulled(tmp_path) == {one.task_id: GOOD["cer"] for one in tasks}


MINE, TEXT = "only-p1-said-this", "only-p1-reads-this"
LEAVES = ("/logout", "/admin/logout", "/shutdown")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One in which p1 has said something that nobody else says, in every way that Potato stores."""
    home = tmp_path_factory.mktemp("routes")
    others = [task("cer", number, who) for number in (1, 2) for who in ("p2", "p3")]
    push(home, [task("cer", 1, "p1", replies=[TEXT, "早点睡。"]), task("cer", 2, "p1"), *others])
    with Server(folder_of(home) / "cer", free_port()) as started:
        person = signed_in(started, "p1")
        item = item_id(task("cer", 1, "p1", replies=[TEXT, "早点睡。"]))
        given = {f"step1:{MINE}": MINE, "comment:text_box": MINE, "preference:first": "first"}
        assert person.store(item, given).status == 200
        events = [{"event_type": MINE, "target": MINE, "metadata": {"what": MINE}}]
        assert person.ask("/api/track_interactions", {"instance_id": item, "events": events}).status == 200
        own = person.ask("/annotate").text
        assert MINE in own  # what is looked for below can be found
        assert TEXT in own
        yield started


def attempts(routes: list[tuple[str, list[str]]], item: str) -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    """Each route with each method, asked for p1 and for p1's item, in its path, its query and its body."""
    named = {
        **dict.fromkeys(("instance_id", "id", "item_id", "go_to", "instance"), item),
        **dict.fromkeys(("user", "username", "user_id", "annotator", "annotator_id"), "p1"),
    }
    query = urlencode({**named, "format": "json", "q": "p1"})
    for rule, methods in sorted(routes):
        for value in (item, "p1"):
            path = re.sub(r"<[^>]*>", value, re.sub(r"<int:[^>]*>", "0", rule))
            for method in methods:
                yield (f"{path}?{query}", method, None) if method == "GET" else (path, method, named)


@pytest.mark.drill("privacy")
@pytest.mark.parametrize("who", ["p2", "nobody"])
def test_by_no_route_another_persons_labels_are_read(server: Server, tmp_path: Path, who: str) -> None:
    project = tmp_path / "cer"
    shutil.copytree(server.folder, project, ignore=shutil.ignore_patterns("output"))
    routes = [(rule, methods) for rule, methods in list_routes(project) if rule not in LEAVES]
    assert len(routes) > 500
    item = item_id(task("cer", 1, "p1", replies=[TEXT, "早点睡。"]))
    person = signed_in(server, who) if who in PEOPLE else Person(server.url)
    asked = list(attempts(routes, item))
    read = []
    for path, method, body in asked:
        reply = person.ask(path, body, method)
        if MINE in reply.text or TEXT in reply.text:
            read.append((method, path))
    assert not read
    assert len(asked) > 1000
    if who in PEOPLE:  # signed in all the time: that it was refused, it was as somebody else
        assert person.ask("/annotate").text.count(item_id(task("cer", 1, "p2")))


def test_nobody_labels_for_another(server: Server) -> None:
    item = item_id(task("cer", 1, "p1", replies=[TEXT, "早点睡。"]))
    assert signed_in(server, "p3").store(item, stored(GOOD["cer"])).status == 403
    assert Person(server.url).store(item, stored(GOOD["cer"])).status == 401


def test_only_those_listed_come_in_and_only_with_their_password(server: Server) -> None:
    person = Person(server.url)
    for name, word in (("p1", "wrong"), ("p1", ""), ("eve", "a-long-password")):
        person.sign_in(name, word)
        assert "instance_id" not in person.ask("/annotate").text
    for path in ("/register", "/auth"):
        person.ask(path, {"action": "signup", "email": "eve", "pass": "a-long-password"}, form=True)
    person.ask("/passwordless-login", {"email": "p1", "action": "login"}, form=True)
    person.sign_in("eve", "a-long-password")
    assert "instance_id" not in person.ask("/annotate").text


def test_it_is_on_loopback_alone(server: Server) -> None:
    port = int(server.url.rpartition(":")[2])
    socket.create_connection(("127.0.0.1", port), timeout=5).close()
    with pytest.raises(ConnectionRefusedError):  # whoever listens on all addresses listens here, too
        socket.create_connection(("127.0.0.2", port), timeout=5)


def test_a_project_has_one_server(server: Server) -> None:
    with pytest.raises(Busy, match="running"):
        Server(server.folder, free_port()).start()
    assert server.alive()


def test_what_potato_stores_but_nobody_was_asked_is_no_label(server: Server) -> None:
    home = server.folder.parents[2]
    labels, refusals = pull(home)
    assert not labels
    [refusal] = refusals
    assert (refusal.annotator, refusal.reason) == ("p1", "step1: an undefined choice")
    assert MINE not in str(refusal)
