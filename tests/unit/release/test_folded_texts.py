"""A text as a reader takes it in."""

import pytest

from pipelines.text.folding import folded


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("我很累，真的。", "我很累真的"),
        ("我 很\n累\u3000", "我很累"),
        ("總是睡不着覺", "总是睡不着觉"),
        ("ＱＱ１２３", "qq123"),
        ("OK，But…", "okbut"),
        ("好😊了\0", "好了"),
    ],
)
def test_marks_width_case_and_script_make_no_difference(text, plain):
    assert folded(text) == folded(plain) == plain
