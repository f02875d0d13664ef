"""Errors and other long lines on a terminal: what fits, what stays whole, what is coloured."""

import io
import re

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from pipelines.cli import terminal
from pipelines.cli.wrapping import WrappedText, wrapped
from pipelines.errors import RequestError

PATH = "/a/long/path/that/somebody/copies/data/clean_posts/current.json"


def test_a_chinese_character_takes_two_columns_and_no_line_begins_with_what_closes():
    assert wrapped("我睡不着，怎么办", 8) == ["我睡不", "着，怎么", "办"]
    assert wrapped("see 我睡不着", 8) == ["see 我睡", "不着"]
    assert wrapped("two words", 5) == ["two", "words"]
    assert wrapped(f"in {PATH} now", 20) == ["in", PATH, "now"]


@given(text=st.text("我睡，。 abc/\t", min_size=1), width=st.integers(4, 30))
def test_lines_fit_and_nothing_is_lost(text: str, width: int):
    lines = wrapped(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    pieces = [one for one in lines if cell_len(one.rstrip()) > width]
    assert all(re.fullmatch(r"[abc/]+|我[，。]+|睡[，。]+|[，。]+", one.strip()) for one in pieces), pieces


@given(text=st.text("我睡，。 abc/\t\n", min_size=1), width=st.integers(4, 30))
def test_a_text_on_a_terminal_fits_and_keeps_its_styles(text: str, width: int):
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="standard")
    console.print(WrappedText(text, "green"))
    lines = re.sub(r"\x1b\[[\d;]*m", "", console.file.getvalue()).splitlines()
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cell_len(line.rstrip()) <= width for line in lines)
    assert not text.strip() or "\x1b[32m" in console.file.getvalue()


def test_an_error_is_coloured_and_wrapped_on_a_terminal_and_plain_elsewhere(monkeypatch, capsys):
    error = RequestError("没有这样的一行，也没有丢掉过。", where=PATH, hint="ids begin with the name of their set")
    terminal.error(error)
    assert capsys.readouterr().err == f"gongqing: {error}\n"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "34")
    terminal.error(error)
    shown = capsys.readouterr().err
    assert shown.startswith("\x1b[1;31mgongqing: \x1b[0m没有")
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()
    assert plain == [
        "gongqing: 没有这样的一行，也没有丢",
        "          掉过。",
        f"  where: {PATH}",
        "  hint: ids begin with the name of",
        "        their set",
    ]
