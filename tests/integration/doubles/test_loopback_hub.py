"""The Hub on loopback: who has no token is not let in, and what is there outlives the process."""

import base64
import hashlib
import json
import urllib.error
import urllib.request

import pytest

from tests.doubles.hub import Hub

REPO = "me/x"


def ask(hub, path, body=None, method=None, token=None):
    headers = {"Authorization": f"Bearer {token or hub.token}", "Content-Type": "application/json"}
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{hub.url}{path}", data, headers, method=method)
    with urllib.request.urlopen(request, timeout=20) as answer:
        text = answer.read()
        return json.loads(text) if text.startswith((b"{", b"[")) else text


def commit(hub, *operations, parent=None):
    header = {"key": "header", "value": {"summary": "a change", **({"parentCommit": parent} if parent else {})}}
    body = "\n".join(json.dumps(one) for one in (header, *operations)).encode()
    return ask(hub, f"/api/datasets/{REPO}/commit/main", body)["commitOid"]


def file(path, content):
    return {"key": "file", "value": {"path": path, "content": base64.b64encode(content).decode()}}


@pytest.fixture
def hub(tmp_path):
    with Hub(tmp_path / "hub") as running:
        ask(running, "/api/repos/create", {"name": "x", "private": True})
        yield running


def status(call, *arguments, **options):
    with pytest.raises(urllib.error.HTTPError) as caught:
        call(*arguments, **options)
    with caught.value as error:
        return error.code


def test_a_commit_is_all_or_nothing(hub):
    head = hub.state(REPO)["refs"]["main"]
    missing = {"key": "lfsFile", "value": {"path": "b.parquet", "oid": "0" * 64}}
    assert status(commit, hub, file("a.txt", b"one"), missing) == 400
    assert hub.state(REPO)["refs"]["main"] == head
    first = commit(hub, file("a.txt", b"one"), parent=head)
    assert status(commit, hub, file("a.txt", b"two"), parent=head) == 412
    assert hub.state(REPO)["refs"]["main"] == first
    commit(hub, {"key": "deletedFile", "value": {"path": "a.txt"}})
    assert "a.txt" in hub.state(REPO)["commits"][first]["tree"], "what was committed stays"


def test_what_is_uploaded_must_be_what_its_name_says(hub):
    sha256 = hashlib.sha256(b"one").hexdigest()
    told = ask(hub, f"/datasets/{REPO}.git/info/lfs/objects/batch", {"objects": [{"oid": sha256, "size": 3}]})
    address = told["objects"][0]["actions"]["upload"]["href"].removeprefix(hub.url)
    assert status(ask, hub, address, b"two", method="PUT") == 400
    ask(hub, address, b"one", method="PUT")
    again = ask(hub, f"/datasets/{REPO}.git/info/lfs/objects/batch", {"objects": [{"oid": sha256, "size": 3}]})
    assert "actions" not in again["objects"][0], "it is there, and not to be sent again"
    assert status(ask, hub, address.partition("?")[0], b"one", method="PUT", token="another") == 401
