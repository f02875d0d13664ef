"""What a rewrite is refused for without asking a model."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rewrite_rows import script

from pipelines.rewrite.checks import copied, first_fault, misquotations
from pipelines.rewrite.facts import changed

PROMPT = "你会看到一段谈话，请把每一行换一种说法，意思不能变。\nPut every line in other words and keep what it means."


def test_more_than_four_lines_of_five_make_a_copy():
    for same, lines, is_copy in ((10, 10, True), (9, 10, True), (8, 10, False), (3, 4, False), (1, 1, True)):
        before = [f"我第{n}次跟他说这件事情的时候" for n in range(lines)]
        after = [f"{text}。" if n < same else f"我又跟他讲了，{n}" for n, text in enumerate(before)]
        assert copied(list(zip(before, after, strict=True))) == (f"{same} of {lines} lines" if is_copy else None)
    # Short lines do not count beside long ones: 嗯 and 好的 have hardly another wording.
    pairs = [("嗯", "嗯"), ("好的", "好的"), ("是的", "是的"), ("我最近一直睡不着觉", "最近我总也睡不好")]
    assert copied(pairs) is None
    assert copied(pairs[:3]) == "3 of 3 lines"


def test_quotations_of_no_other_line_are_counted_and_apostrophes_are_none():
    quoting = ["你提到「最近总是睡不着」", "求助者说「心里很乱」，又说「谁都不懂我」"]
    assert misquotations(["我最近总是睡不着，心里很乱", *quoting]) == 1  # 谁都不懂我
    assert misquotations(["这阵子老睡不着，心乱得很", *quoting]) == 3
    line = "I don't know what's wrong with me"
    assert misquotations([line, "You said ‘I don’t know what’s wrong’ and that’s a start"]) == 1
    assert misquotations([line, "You said ‘I don't know what's wrong’ and that’s a start"]) == 0
    assert misquotations(["我心里很乱", "他说『我心里很慌』"]) == 1
    assert misquotations(["It’s the kids’ fault", "That’s what the kids’ teacher says"]) == 0


def test_the_first_fault_is_reported_without_a_text():
    source = script(1, "seeker: 我在北京三年没跟他说过话了", "supporter: 听起来你心里很委屈，是吗？")
    hurt = "你是不是觉得很受伤？"
    for texts, fault in (
        (["我在北京三年没跟他说过话了", "听起来你心里很委屈，是吗？"], ("unchanged", "2 of 2 lines")),
        (["1. 在上海五年没理他\n2. 我难过", hurt], ("artefact", "list 1")),
        (["在上海，已经五年不跟他说话了，唉", hurt], ("facts_changed", "number 1, name 1")),
        (["作为一个AI，**我**不知道", "求助者：愿意"], ("artefact", "ai 1, markdown 1, speaker_label 1")),
        (["北京这三年，我跟他没讲过话，唉", hurt], None),
    ):
        assert first_fault(source, texts, PROMPT) == fault
    with pytest.raises(ValueError, match="shorter"):
        first_fault(source, [hurt], PROMPT)


@given(
    st.lists(st.tuples(st.text(max_size=80), st.text(max_size=80)), min_size=1, max_size=4),
    st.sampled_from(["zh", "en"]),
    st.text(max_size=200),
)
def test_no_text_is_too_odd(pairs, lang, instructions):
    source = script(1, *(f"seeker: {before}" for before, _ in pairs), lang=lang)
    fault = first_fault(source, [after for _, after in pairs], instructions)
    assert fault is None or fault[0] in ("unchanged", "artefact", "facts_changed")


@example(".4多0四九")  # its two figures were once in the order of a set
@given(st.text(alphabet="零一二两三四五六七八九十百千万亿半第几多个年月天周次岁点分块0123456789.,:-%", max_size=24))
def test_no_figure_is_too_odd(text):
    assert changed(text, f"「{text}」", "zh") == {}
