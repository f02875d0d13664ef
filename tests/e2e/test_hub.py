"""A release on the loopback Hub, by the real client in both of its majors, and read back by the real `datasets`."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from published_rows import NAME, make_release, training_sets

from pipelines.release.publish.folder import export_folder
from pipelines.settings import ROOT
from pipelines.store.releases import Releases, rows_of
from tests.doubles.hub import Hub

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("hub")]

REPO = "me/empathy"


class Failed(Exception):
    """What a worker's error was: its type and words."""


class Worker:
    """A process with one major of the client."""

    def __init__(self, packages: Path, hub: Hub, scratch: Path, **environment: str | None) -> None:
        ours = {"PYTHONPATH": f"{packages}{os.pathsep}{ROOT}", "HF_ENDPOINT": hub.url, "HF_TOKEN": hub.token}
        ours |= {"HF_HOME": str(scratch / "hf"), **environment}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        inherited |= {name: value for name, value in ours.items() if value is not None}
        self.words = scratch / f"words-{time.monotonic_ns()}.txt"
        command = [sys.executable, "-m", "tests.doubles.hub_worker"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with self.words.open("wb") as words:
            self.process = subprocess.Popen(command, cwd=ROOT, env=inherited, stderr=words, **pipes)

    def begin(self, call, *arguments, **options):
        self.process.stdin.write(json.dumps([call, arguments, options], default=str) + "\n")
        self.process.stdin.flush()

    def __call__(self, call, *arguments, **options):
        self.begin(call, *arguments, **options)
        line = self.process.stdout.readline()
        assert line, self.words.read_text()
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["gave"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


# Whatever the client's majors may do in their own ways; the rest is ours, and shown with one of them.
both_majors = pytest.mark.parametrize("packages", ["1", "2"], indirect=True)


@pytest.fixture(scope="session")
def packages(request, tmp_path_factory) -> Path:
    """One major of huggingface_hub, and datasets: all else is that of the environment."""
    major = getattr(request, "param", "2")
    target = tmp_path_factory.mktemp(f"hub-{major}")
    pins = ROOT / "requirements" / f"hub-{major}.txt"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--target", target, "-r", pins], check=True)
    return target


@pytest.fixture(scope="module")
def standing():
    """A Hub that is used by one test after the other: to start processes takes longer than most of these."""
    with Hub() as running:
        yield running


@pytest.fixture
def hub(standing):
    standing.anew()
    return standing


@pytest.fixture(scope="module")
def worker(packages, standing, tmp_path_factory):
    with Worker(packages, standing, tmp_path_factory.mktemp("worker")) as running:
        yield running


@pytest.fixture(scope="module")
def folder(mixed, tmp_path_factory) -> Path:
    """The release as it is published. Read only."""
    target = tmp_path_factory.mktemp("published") / NAME
    export_folder(mixed.releases, NAME, mixed.store, target, repo=REPO)
    return target


@pytest.fixture(scope="module")
def smaller(mixed, tmp_path_factory):
    """Makes another release of the home, without triplets."""

    def make(name: str, *configs: str) -> Path:
        home, sets = tmp_path_factory.mktemp("smaller"), training_sets(mixed.store)
        make_release(home, mixed.store, {config: sets[config] for config in configs}, name)
        export_folder(Releases(home), name, mixed.store, home / "published", repo=REPO)
        return home / "published"

    return make


def files_of(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def tree_of(hub, revision):
    state = hub.state(REPO)
    oid = {**state["refs"], **state["tags"]}[revision]
    return sorted(set(state["commits"][oid]) - {".gitattributes"})


def uploads(hub):
    return [one["path"] for one in hub.requests() if one["method"] == "PUT" and "/_lfs/" in one["path"]]


def parts(folder):
    """Every file of rows, with its config and split."""
    paths = list(folder.rglob("*.parquet"))
    assert paths
    return [(path, path.parent.name, path.name.split("-")[0]) for path in paths]


@both_majors
def test_a_release_is_one_commit_and_a_tag_in_a_private_gated_data_set(worker, packages, hub, folder):
    assert worker("version").startswith(packages.name.split("-")[1][0])
    published = worker("put", folder, REPO)
    state = hub.state(REPO)
    assert published["new"]
    assert (state["private"], state["gated"]) == (True, "manual")
    assert len(state["commits"]) == 2, "the Hub's first, and ours"
    assert state["tags"] == {NAME: published["commit"]} == {NAME: state["refs"]["main"]}
    assert tree_of(hub, NAME) == files_of(folder)
    done = [one for one, _ in published["progress"]]
    assert done == sorted(done)
    assert published["progress"][-1] == [sum((folder / path).stat().st_size for path in files_of(folder))] * 2
    made = [(one["method"], one["path"].rsplit("/", 1)[-1]) for one in hub.requests()]
    assert made.index(("PUT", "settings")) < made.index(("POST", "main")), "the gate is there before any file"

    again = worker("put", folder, REPO)
    assert (again["new"], again["commit"]) == (False, published["commit"])
    sent = hub.requests()[len(made) :]
    assert {one["method"] for one in sent} <= {"GET", "HEAD", "POST"}
    assert not [one for one in sent if "commit" in one["path"] or "lfs" in one["path"]]


def test_the_same_folder_loads_offline(packages, hub, folder, tmp_path):
    with Worker(packages, hub, tmp_path, HF_HUB_OFFLINE="1", HF_TOKEN=None) as offline:
        for path, config, split in parts(folder):
            assert offline("load", folder, config, split, tmp_path / "cache") == list(rows_of(path))
    assert not hub.requests()


def test_the_next_release_takes_away_the_files_that_it_does_not_have(worker, hub, folder, smaller):
    worker("put", folder, REPO)
    sent = uploads(hub)
    gone = next(path for path in tree_of(hub, "main") if path.startswith("rm_triplets/"))
    worker("by_hand", "delete_file", gone, REPO)  # by hand: that stops nothing
    after = smaller("v1.1.0", "sft_coe", "grpo_ecot")
    worker("put", after, REPO)
    assert tree_of(hub, "v1.1.0") == files_of(after)
    assert tree_of(hub, NAME) == files_of(folder), "the tag before stands as it did"
    assert len(uploads(hub)) - len(sent) == 1, "shards of equal content were not sent again; one picture changed"
    third = smaller("v1.2.0", "sft_coe")
    worker("put", third, REPO)
    assert tree_of(hub, "v1.2.0") == files_of(third), "no prompts, and no picture of their topics"
    with pytest.raises(Failed, match=r"TagTaken: .*stands for something else"):
        worker("put", smaller(NAME, "sft_coe"), REPO)
    assert tree_of(hub, "main") == files_of(third)


@both_majors
def test_after_a_cut_nothing_is_to_be_seen_and_the_same_command_goes_on(worker, hub, folder):
    hub.trouble(spared=3, cut=50)
    with pytest.raises(Failed, match=r"HubError: .*the way to the Hub broke off"):
        worker("put", folder, REPO)
    assert tree_of(hub, "main") == []
    assert hub.state(REPO)["tags"] == {}
    arrived = uploads(hub)[:3]
    hub.trouble(spared=0, cut=0)
    before = len(uploads(hub))
    assert worker("put", folder, REPO)["new"]
    assert not set(arrived) & set(uploads(hub)[before:]), "what had arrived is not sent again"
    assert tree_of(hub, NAME) == files_of(folder)


@pytest.mark.drill("kill")
@both_majors
def test_killed_in_the_middle_it_goes_on(packages, hub, folder, tmp_path):
    hub.trouble(slow=0.3)
    with Worker(packages, hub, tmp_path) as killed:
        killed.begin("put", folder, REPO)
        while len(uploads(hub)) < 3:
            assert killed.process.poll() is None, "it was done before"
            time.sleep(0.05)
        killed.process.kill()
    assert tree_of(hub, "main") == []
    hub.trouble(slow=0.0, cut=1)  # and a short failure is no failure
    with Worker(packages, hub, tmp_path) as worker:
        assert worker("put", folder, REPO)["new"]
    assert tree_of(hub, NAME) == files_of(folder)


def test_a_commit_whose_answer_was_lost_was_noted_and_is_found_and_tagged(worker, hub, folder):
    repo = "me/begun"
    hub.trouble(unheard=1)
    with pytest.raises(Failed, match="broke off"):
        worker("put", folder, repo)
    assert hub.state(repo)["tags"] == {}
    assert worker("begun", repo) == 1, "the commit may have been made"
    head = hub.state(repo)["refs"]["main"]
    again = worker("put", folder, repo)
    assert (again["new"], again["commit"]) == (False, head)
    assert hub.state(repo)["tags"] == {NAME: head}
    assert worker("begun", repo) == len([one for one in hub.requests() if "/commit/" in one["path"]]) == 1


def test_a_head_that_lost_a_file_before_it_was_tagged_is_mended_not_tagged(worker, hub, folder):
    hub.trouble(tagless=50)
    with pytest.raises(Failed, match="tagging the release"):
        worker("put", folder, REPO)
    hub.trouble(tagless=0)
    shard = next(path for path in tree_of(hub, "main") if path.endswith(".parquet"))
    worker("by_hand", "delete_file", shard, REPO)
    assert worker("put", folder, REPO)["new"]
    assert tree_of(hub, NAME) == files_of(folder)


def test_a_stale_parent_is_refused(worker, hub, folder):
    hub.trouble(overtaken=1)
    with pytest.raises(Failed, match=r"HubMoved: .*somebody else has changed the data set"):
        worker("put", folder, REPO)
    assert tree_of(hub, "main") == ["NOTES.md"], "theirs alone"
    worker("put", folder, REPO)
    assert tree_of(hub, NAME) == sorted([*files_of(folder), "NOTES.md"]), "what is not ours stays"


@pytest.mark.drill("privacy")
def test_nothing_goes_to_a_public_data_set_unless_asked_for(worker, hub, folder):
    assert worker("put", folder, REPO, private=False)["new"]
    assert hub.state(REPO)["private"] is False
    with pytest.raises(Failed, match="say --public"):
        worker("put", folder, REPO)
    worker("by_hand", "update_repo_settings", REPO, gated="auto")
    worker("put", folder, REPO, private=False)
    assert hub.state(REPO)["gated"] == "manual", "access by hand again"


@pytest.mark.parametrize(("token", "message"), [(None, "there is no token"), ("hf_wrong_token", "check the token")])
def test_without_the_right_token_nothing_is_done(packages, hub, folder, tmp_path, token, message):
    with Worker(packages, hub, tmp_path, HF_TOKEN=token) as worker, pytest.raises(Failed, match=message) as caught:
        worker("put", folder, REPO)
    assert "hf_wrong_token" not in str(caught.value)
    assert not [one for one in hub.requests() if one["status"] == 200]


@pytest.mark.drill("privacy")
@both_majors
def test_neither_token_nor_signed_address_is_written_nor_a_copy_outside_the_home(packages, hub, folder, tmp_path):
    with Worker(packages, hub, tmp_path) as worker:
        hub.trouble(spared=1, cut=50)
        with pytest.raises(Failed) as caught:
            worker("put", folder, REPO)
        hub.trouble(cut=0)
        worker("put", folder, REPO)
        worker("get", tmp_path / "other", REPO, NAME)
    assert any(one["token"] for one in hub.requests()), "it was sent"
    ours = [path for place in (tmp_path, folder) for path in place.rglob("*") if path.is_file()]
    assert worker.words in ours
    written = [str(caught.value).encode(), *(path.read_bytes() for path in ours)]
    assert not [one for one in written if hub.token.encode() in one or b"invented-signature" in one]
    contents = {path.read_bytes() for path in folder.rglob("*.parquet")}
    held = [path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes() in contents]
    assert {path.relative_to(tmp_path).parts[:2] for path in held} == {("other", "releases")}
    assert len(held) == len(contents)


@both_majors
def test_a_release_comes_back_as_it_was_published_and_is_loaded_by_datasets(worker, hub, folder, tmp_path):
    worker("put", folder, REPO)
    home = tmp_path / "other"
    assert worker("get", home, REPO, NAME) == NAME
    back = Releases(home)
    assert back.read(NAME).to_bytes() == (folder / "manifest.json").read_bytes()
    for path, config, split in parts(folder):
        rows = list(rows_of(path))
        assert back.frame(NAME, config, split).collect().to_dicts() == rows
        assert worker("load", REPO, config, split, tmp_path / "cache", revision=NAME) == rows
    before = len(hub.requests())
    assert worker("get", home, REPO, NAME) == NAME
    assert not [one for one in hub.requests()[before:] if "parquet" in one["path"]]
    for where, message in (((REPO, "v9"), "there is no such revision"), (("me/nothing", "main"), "no such data set")):
        with pytest.raises(Failed, match=message):
            worker("get", home, *where)


def test_a_file_that_is_not_what_the_manifest_says_does_not_come_in(packages, hub, folder, tmp_path):
    with Worker(packages, hub, tmp_path) as worker:  # one of its own: the client keeps what `datasets` has loaded
        worker("put", folder, REPO)
        tree = hub.state(REPO)["commits"][hub.state(REPO)["tags"][NAME]]
        file = next(tree[path] for path in sorted(tree) if path.endswith(".parquet"))
        (hub.folder / file["blob"]).write_bytes(b"PAR1" + bytes(file["size"] - 4))
        with pytest.raises(Failed, match="is not what the manifest says"):
            worker("get", tmp_path / "other", REPO, NAME)
    assert Releases(tmp_path / "other").names() == []
