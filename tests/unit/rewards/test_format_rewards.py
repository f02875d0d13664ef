"""What the form of an output is worth."""

import annotate_rows
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.rewards.format import answer_alone, cer, cer_strict, coe, ecot, section
from schemas.reasoning import COE_TAGS, ECOT_TAGS, Coe, Ecot

WELL = Ecot(situation="失眠", motivation="想被理解", strategy="先共情", answer="您辛苦了。").render()
COE_WELL = Coe(L1="难过", L2="失去", L3="想被听见", L4="先听", answer="您辛苦了。").render()
CER_WELL = annotate_rows.cer().render()


def element(name: str, text: str = "字") -> str:
    return f"<{name}>{text}</{name}>"


# M eq. 4–8: text, r_exist, r_num, r_order
EXAMPLES = {
    "well formed": (WELL, 1, 1, 1),
    "nothing": ("您辛苦了。", 0, 0, 0),
    "empty": ("", 0, 0, 0),
    "the answer alone": (element("answer"), 0.2, 0.2, 0),
    "three pairs in order, a strategy behind the answer": (
        "".join(map(element, ("thinking", "situation", "motivation", "answer", "strategy"))), 1, 1, 1),
    "two pairs: no answer": (
        "".join(map(element, ("thinking", "situation", "motivation", "strategy"))), 0.8, 0.8, 0.7),
    "two pairs: the answer before the motivation": (
        "".join(map(element, ("thinking", "situation", "answer", "motivation", "strategy"))), 1, 1, 0.7),
    "one pair": ("".join(map(element, ("motivation", "answer"))), 0.4, 0.4, 0.4),
    "one pair of all five": (
        "".join(map(element, ("answer", "motivation", "situation", "thinking", "strategy"))).replace(
            element("answer"), "") + element("answer"), 1, 1, 0.4),
    "all five, none in order": (
        "".join(map(element, ("answer", "motivation", "situation", "thinking", "strategy"))), 1, 1, 0.1),
    "four, none in order": ("".join(map(element, ("answer", "motivation", "situation", "thinking"))), 0.8, 0.8, 0),
    "the whole twice": (WELL + WELL, 1, 0, 1),
    "the answer twice": (WELL + element("answer"), 1, 0.8, 1),
    "an answer that is never closed": (WELL.removesuffix("</answer>"), 0.8, 0.8, 0.7),
    "a thinking that is never opened": (WELL.removeprefix("<thinking>"), 0.8, 0.8, 0.7),
    "closed before it opens": ("</answer>您辛苦了。<answer>", 0, 0, 0),
    "closed once before it opens": ("</answer>" + WELL, 1, 0.8, 1),
    "a tag in the answer's text": (WELL.replace("您辛苦了。", "您<situation>辛苦了。"), 1, 0.8, 1),
    "one tag inside another": ("<answer><thinking>字</answer></thinking>", 0.4, 0.4, 0),
    "upper case": (WELL.upper(), 0, 0, 0),
    "attributes": (WELL.replace("<answer>", '<answer id="1">'), 0.8, 0.8, 0.7),
    "a space in the tag": (WELL.replace("<answer>", "<answer >"), 0.8, 0.8, 0.7),
    "full-width marks": (WELL.replace("<", "＜").replace(">", "＞"), 0, 0, 0),
    "of a doubled tag the first counts": (element("answer") + WELL, 1, 0.8, 0.7),
}  # fmt: skip


def test_the_parts_of_the_ecot_format():
    found = {name: ecot(text) for name, (text, *_) in EXAMPLES.items()}
    assert {name: one[:3] for name, one in found.items()} == {
        name: pytest.approx(parts) for name, (_, *parts) in EXAMPLES.items()
    }
    assert all(one.r_format == pytest.approx(sum(one[:3]) / 3) for one in found.values())


def test_what_the_reward_does_not_ask_for_stands_beside_it():
    behind = "".join(map(element, ("thinking", "situation", "motivation", "answer", "strategy")))
    assert ecot(behind).r_format == pytest.approx(1)
    assert not ecot(behind).ordered
    empty = "".join(element(name, "") for name in ECOT_TAGS)
    assert ecot(empty).r_format == pytest.approx(1)
    assert ecot(empty).ordered
    assert not ecot(empty).strict
    assert ecot(WELL).strict


@given(
    st.lists(st.sampled_from([*(f"<{name}>" for name in ECOT_TAGS), *(f"</{name}>" for name in ECOT_TAGS), "字", " "]))
)
def test_the_parts_are_shares(pieces):
    found = ecot("".join(pieces))
    assert all(0 <= part <= 1 for part in found[:4])
    assert found.r_num <= found.r_exist
    assert not found.strict or found.r_format == pytest.approx(1)
    assert not found.ordered or found.r_order == 1


def test_the_coe_format_and_the_grammar_of_cer_are_kept_or_not():
    kept = {COE_WELL, "\n" + COE_WELL.replace("<L2>", " <L2>\n"), COE_WELL.replace("您辛苦了。", "<b>您</b>辛苦了 <3")}
    broken = (
        "", COE_WELL + COE_WELL, WELL, COE_WELL + "再见", "好的，" + COE_WELL, COE_WELL.replace("</L4>", ""),
        COE_WELL.replace("L3", "L2"), COE_WELL.replace("您辛苦了。", " "),
        COE_WELL.replace("您辛苦了。", "<answer>您</answer>"), COE_WELL.replace("<L1>", "<l1>"),
    )  # fmt: skip
    assert {text: coe(text) for text in (*kept, *broken)} == dict.fromkeys(kept, 1) | dict.fromkeys(broken, 0)
    wrong = (
        "", COE_WELL, CER_WELL.replace("强度：3", "强度：6"), CER_WELL * 2, CER_WELL.replace("委屈；", "委屈\n；"),
        CER_WELL.replace("<emotion>", "").replace("</emotion>", ""), CER_WELL.replace("他反复说起这件事", "", 1),
    )  # fmt: skip
    assert {text: cer_strict(text) for text in (CER_WELL, *wrong)} == {CER_WELL: True} | dict.fromkeys(wrong, False)


def test_a_cer_output_is_complete_where_every_part_is_there_and_closed():
    """C's "format completeness": what is wrong in a step, or in their order, is the judge's to punish."""
    parts = {name: element(name) for name in ("history", "emotion", "strategy", "answer")}
    whole = "".join(parts.values())
    complete = (
        CER_WELL, CER_WELL * 2, whole, "".join(reversed(parts.values())), whole.replace("字", "<b>字"),
        whole.replace("<history>", "<history>字<history>"), whole + "</answer>", "<strategy>" + whole,
        whole.replace("字", " 字\n"), whole.replace("<answer>", "<answer>字</answer><answer>"),
    )  # fmt: skip
    incomplete = (
        "", *(whole.replace(one, "") for one in parts.values()),
        *(whole.replace(one, element(name, "")) for name, one in parts.items()),
        *(whole.replace(f"</{name}>", "") for name in parts), *(whole.replace(f"<{name}>", "") for name in parts),
        whole.upper(), whole.replace("<answer>", '<answer id="1">'), whole.replace("</answer>", "<history></answer>"),
        "<history><emotion>字</emotion></history>" + parts["strategy"] + parts["answer"],
    )  # fmt: skip
    assert {text: cer(text) for text in complete} == dict.fromkeys(complete, 1)
    assert {text: cer(text) for text in incomplete} == dict.fromkeys(incomplete, -1)


@given(st.text(alphabet="<>/L1234empathy_thinkanswer字 \n", max_size=200))
def test_no_text_is_too_odd(text):
    assert 0 <= ecot(text).r_format <= 1
    assert coe(text) in (0, 1)
    assert cer(text) in (-1, 1)
    assert not cer_strict(text) or cer(text) == 1


UNSEEN = {
    "zero width": "\u200b", "byte-order mark": "\ufeff", "NUL": "\0", "soft hyphen": "\xad", "right to left": "\u202e",
    "filler": "\u3164", "Braille": "\u2800", "selector": "\ufe0f", "mark": "\u0301", "tag": "\U000e0020",
    "ideographic space": "\u3000", "half a character": "\ud800", "all": " \u200b\n\u2800\r\u0301",
}  # fmt: skip


def test_what_nobody_sees_is_no_text():
    """The strict formats pay for text, and a policy would find the cheapest."""
    for name, unseen in UNSEEN.items():
        assert not ecot(WELL.replace("想被理解", unseen)).strict, name
        assert coe(COE_WELL.replace("失去", unseen)) == coe(COE_WELL.replace("您辛苦了。", unseen)) == 0, name
        assert answer_alone(element("answer", unseen)) == 0, name
        for said in ("他反复说起这件事", "委屈", "那天发生了什么？"):
            assert not cer_strict(CER_WELL.replace(said, unseen, 1)), name
        assert cer(CER_WELL.replace("那天发生了什么？", unseen)) == -1, name
        assert section(element("answer", unseen), "answer", COE_TAGS) is None, name
        assert coe(COE_WELL.replace("失去", f"{unseen}失去{unseen}")) == 1, name


def test_ten_thousand_tags_are_worth_no_more_than_one():
    for name in (*ECOT_TAGS, *COE_TAGS):
        text = f"<{name}>" * 10_000 + f"</{name}>" * 10_000
        assert (ecot(text).r_num, coe(text), cer(text)) == (0, 0, -1), name
