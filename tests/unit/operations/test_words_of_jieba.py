"""Words of Chinese texts: jieba's, whatever lies in the shared temporary folder."""

import marshal
import os
import subprocess
import sys

import pytest

from pipelines.operations.paper_tables import words
from pipelines.settings import ROOT

_ASKED = "from pipelines.operations.paper_tables import words; print(words('睡不着'))"


def test_words_together_are_the_text():
    text = "目前妻子感觉到 very 难受。\n睡不着"
    assert "".join(words(text)) == text
    assert words("目前妻子") == ["目前", "妻子"]


@pytest.mark.drill("privacy")
def test_a_planted_cache_is_not_read_and_none_is_left(tmp_path):
    """Whoever puts one there first would decide where words end."""
    planted = tmp_path / "jieba.cache"
    planted.write_bytes(marshal.dumps(({"睡": 10**9, "不": 10**9, "着": 10**9, "难受": 10**9}, 10**9)))
    os.utime(planted, (2**31, 2**31))
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    told = [sys.executable, "-c", _ASKED]
    assert subprocess.check_output(told, env=environment, text=True) == "['睡不着']\n"
    planted.unlink()
    subprocess.check_output(told, env=environment)
    assert list(tmp_path.iterdir()) == []
