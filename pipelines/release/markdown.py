"""Markdown from the templates beside this module: the card, the licences, the changelog."""

from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> str:
    """The text of a template (`<template>.md.j2`); a value that it lacks is an error."""
    return _environment().get_template(f"{template}.md.j2").render(values)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    loader = FunctionLoader(lambda name: (files("pipelines.release") / "templates" / name).read_text(encoding="utf-8"))
    environment = Environment(  # noqa: S701 - Markdown, not HTML
        loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"cell": _cell, "html": _html, "columns": lambda rows: list(zip(*rows, strict=True))}
    environment.tests["figures"] = lambda column: not any(isinstance(value, str) for value in column)
    return environment


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")


def _html(text: str) -> str:
    """A text of somebody else's as it is: no mark of it means anything to Markdown within a block of HTML."""
    return "<br>".join(escape(text, quote=False).splitlines())
