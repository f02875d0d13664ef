"""Prompts of posts that the rules doubted, and that no model has judged: told, and refused where somebody is strict."""

import pytest
from released_rows import few_rows
from unique_rows import post

from pipelines.release.checks.not_from_a_model import unjudged
from pipelines.release.checks.registry import CHECKS, STRICT, findings

DOUBTED = post(1, "最近我和室友吵架了，晚上睡不着觉", doubts=["not_psychological"])
CLEAR = post(2, "我很难过，不知道怎么办才好")


def test_they_are_counted_and_told():
    (found,) = unjudged(few_rows(DOUBTED, CLEAR, split_of={"g1": "train"}))
    assert (found.count, found.severity, found.examples) == (1, "warn", ["s:1"])
    assert not list(unjudged(few_rows(CLEAR, split_of={"g1": "train"})))


@pytest.mark.parametrize(("strict", "severity"), [(False, "warn"), (True, "refuse")])
def test_whoever_is_strict_refuses_them(strict, severity, monkeypatch):
    assert unjudged in CHECKS
    assert STRICT == ("unjudged",)
    monkeypatch.setattr("pipelines.release.checks.registry.CHECKS", (unjudged,))
    (found,) = findings(few_rows(DOUBTED, split_of={"g1": "train"}), strict=strict)
    assert found.severity == severity
