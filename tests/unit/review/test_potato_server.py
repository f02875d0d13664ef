"""What a server of Potato needs before it is started. The server itself: tests/e2e/test_potato.py."""

import socket
import sys
from pathlib import Path

import pytest
from potato_tasks import task

from pipelines.errors import GongqingError, RequestError
from pipelines.review.potato import folder_of, push, serving
from pipelines.review.potato_server import Server, main


@pytest.fixture
def project(tmp_path: Path) -> Path:
    push(tmp_path, [task("cer")])
    return folder_of(tmp_path) / "cer"


def test_without_potato_it_says_how_to_get_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "program", project / "no-such-program")
    with pytest.raises(RequestError, match="make review"):
        Server(project, 0).start()


def test_a_port_of_somebody_elses_is_left_alone(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "program", Path(sys.executable))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(RequestError, match="is taken"):
            Server(project, taken.getsockname()[1]).start()
    assert not serving(project)


def test_one_that_does_not_start_is_told_with_its_words(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = project / "broken"
    program.write_text("#!/bin/sh\necho the words of $1 >&2\nexit 3\n", encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setattr(Server, "program", program)
    server = Server(project, 0)
    with pytest.raises(GongqingError, match="the words of start"):
        server.start()
    assert not server.alive()
    assert not serving(project)  # it may be started again
    server.stop()


def test_where_nothing_was_pushed_it_says_what_to_do_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "gongqing review push" in capsys.readouterr().err
