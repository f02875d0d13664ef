"""What quotes another line goes on quoting it when both are rewritten."""

from pipelines.rewrite.quotations import astray

BEFORE = ["我最近总是睡不着，心里很乱", "你提到「最近总是睡不着」", "求助者说「心里很乱」，又说「谁都不懂我」"]
AFTER = ["这阵子老睡不着，心乱得很", "你提到「最近总是睡不着」", "求助者讲「心里很乱」，又讲「谁都不懂我」"]


def test_a_quotation_of_nothing_that_stands_there_is_astray():
    assert astray(BEFORE) == 1  # 谁都不懂我
    assert astray(AFTER) == 3


def test_quotations_of_other_marks_are_seen_and_apostrophes_are_none():
    said = "I don't know what's wrong with me"
    assert astray([said, "You said ‘I don’t know what’s wrong’ and that’s a start"]) == 1
    assert astray([said, "You said ‘I don't know what's wrong’ and that’s a start"]) == 0
    assert astray(["我心里很乱", "他说『我心里很慌』"]) == 1
    assert astray(["It’s the kids’ fault", "That’s what the kids’ teacher says"]) == 0
