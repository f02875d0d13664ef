"""Pictures on a machine without Chinese fonts."""

import logging

import pytest

from pipelines.core import plotting


@pytest.mark.filterwarnings("error")
def test_where_no_font_has_chinese_that_is_said_once_and_not_of_every_character(monkeypatch, caplog):
    monkeypatch.setattr(plotting, "_fonts", lambda: ["DejaVu Sans"])
    plotting._hint_at_fonts.cache_clear()
    with caplog.at_level(logging.WARNING):
        plotting.png(lambda axes: axes.set(title="rewards, α"), (2, 1), 50)
        assert caplog.messages == []
        for _ in range(2):
            plotting.png(lambda axes: axes.set(title="模型 B", xlabel="轮"), (2, 1), 50)
    assert caplog.messages == ["pictures show boxes for Chinese: no font here has it (fonts-noto-cjk has)"]
