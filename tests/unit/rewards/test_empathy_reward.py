"""E's reward: the form, and what an encoder says of the answer. The service is one of the tests, over real HTTP."""

import json
import math
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from judge_stub import beside

from pipelines.rewards import contrastive, services
from pipelines.rewards.contrastive import MOST_ECHOED, QUOTED, RUN, Quotable, echoed, unquoted
from pipelines.rewards.empathy import compute_score, question
from pipelines.rewards.format import section
from pipelines.rewards.services import ENCODER, RewardFailed
from schemas.reasoning import COE_TAGS, Coe

POST = "最近总是失眠，凌晨三点还醒着，白天什么都做不了，该怎么办？"
FITS, OTHER = "睡前把手机放远一点，慢慢放松身体。", "和领导谈谈加班的安排。"
INFO = {"row_id": "s:1", "dialogue": [{"role": "seeker", "text": POST}]}
VECTORS = {POST: [1.0, 0.0], FITS: [0.8, 0.6], OTHER: [0.0, 1.0]}


def output(answer: str) -> str:
    return Coe(L1="难过", L2="失眠", L3="想被听见", L4="先听", answer=answer).render()


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the service knows and was asked, and the statuses in `fails` that come before it answers at all."""
    monkeypatch.setattr(contrastive, "_thresholds", {})
    monkeypatch.setattr(services, "PAUSES", (0.0, 0.0))
    return SimpleNamespace(vectors=VECTORS, threshold={"paper": 0.5, "guarded": 0.5}, fails=[], asked=[])


def beside_it(encoder: SimpleNamespace, does: Callable[[], Awaitable[Any]]) -> Any:
    def answer(path: str, asked: dict[str, Any]) -> Any:
        if path == "/about":
            return {"folder": "made", "threshold": encoder.threshold}
        if encoder.fails:
            status, body = encoder.fails.pop(0)
            return web.json_response(body, status=status)
        return {"vectors": [encoder.vectors[text] for text in asked["texts"]]}

    found, encoder.asked = beside(answer, ENCODER, does)
    return found


def scored(encoder: SimpleNamespace, solution: str, info: Any = INFO, **settings: Any) -> dict[str, float]:
    told = {"data_source": "gongqing/coe", "ground_truth": "", "extra_info": info}
    found: dict[str, float] = beside_it(encoder, lambda: compute_score(solution_str=solution, **told, **settings))
    return found


def test_the_reward_is_the_form_and_whether_the_answer_fits(encoder):
    for solution, score, r_format, r_answer, similarity in (
        (output(FITS), 2, 1, 1, 0.8),
        (output(OTHER), 1, 1, 0, 0),
        (f"<answer>{FITS}</answer>", 1, 0, 1, 0.8),
        (f"{OTHER}<answer>\n{FITS}\n</answer>{OTHER}", 1, 0, 1, 0.8),
        (FITS, 0, 0, 0, 0),
        ("", 0, 0, 0, 0),
        (f"<answer>{FITS}", 0, 0, 0, 0),
        (f"<answer>{OTHER}</answer><answer>{FITS}</answer>", 0, 0, 0, 0),
        (f"<answer><empathy_think><L1>难过</L1></empathy_think>{FITS}</answer>", 0, 0, 0, 0),
        (output(POST), 1, 1, 0, 0),
    ):
        found = scored(encoder, solution)
        wanted = {"score": score, "r_format": r_format, "r_answer": r_answer, "similarity": pytest.approx(similarity)}
        assert found == wanted | {"judge_ok": 1, "echo": solution == output(POST)}, solution


def test_without_a_chain_the_form_is_one_answer_and_nothing_else(encoder):
    for solution, score in (
        (f"<answer>{FITS}</answer>", 2),
        (f"<answer>{OTHER}</answer>", 1),
        (output(FITS), 1),
        (f"先想想。<answer>{FITS}</answer>", 1),
        (f"<answer>{FITS}</answer><answer>{FITS}</answer>", 0),
        ("<answer></answer>", 0),
    ):
        found = scored(encoder, solution, chain=False)
        assert found["score"] == score, solution


def test_a_setting_that_there_is_not_is_no_reward(encoder):
    with pytest.raises(TypeError, match="no setting chian"):
        scored(encoder, "", chian=False)


def test_a_cosine_of_exactly_t_does_not_pass(encoder):
    encoder.vectors = {POST: [1.0, 0.0], FITS: [0.5, math.sqrt(0.75)]}
    assert scored(encoder, output(FITS))["r_answer"] == 0
    encoder.vectors[FITS] = [0.501, math.sqrt(1 - 0.501**2)]
    assert scored(encoder, output(FITS))["r_answer"] == 1


def test_the_encoder_sees_the_answer_and_the_last_turn_alone(encoder):
    before = [{"role": "seeker", "text": "您好"}, {"role": "supporter", "text": "请讲"}]
    scored(encoder, output(FITS), INFO | {"dialogue": [*before, *INFO["dialogue"]]})
    asked = [{"texts": [FITS], "kind": "answer"}, {"texts": [POST], "kind": "query"}]
    assert sorted((one for _, one in encoder.asked if one), key=lambda one: one["kind"]) == asked


def test_the_encoder_does_not_see_what_an_answer_quotes(encoder):
    encoder.vectors = VECTORS | {f"，{OTHER}": [0.0, 1.0]}
    found = scored(encoder, output(f"{POST[:14]}，{OTHER}"))
    assert found["similarity"] == 0
    assert [one["texts"] for _, one in encoder.asked if one.get("kind") == "answer"] == [[f"，{OTHER}"]]


def test_an_answer_of_too_many_runs_of_the_question_is_paid_nothing_however_near_it_is(encoder):
    """In pieces of seven characters, so that nothing of it is left out as quoted."""
    letters = "".join(filter(str.isalnum, POST))
    for own, r_answer, echo in (("", 0, 6 / 12), ("先放下手机松身体", 1, 6 / 20)):
        answer = f"{letters[:7]}呢{letters[8:15]}呢{own}"
        assert unquoted(POST, answer) == answer
        encoder.vectors = VECTORS | {answer: VECTORS[POST]}
        found = scored(encoder, output(answer))
        assert (found["similarity"], found["r_answer"], found["echo"]) == (1, r_answer, pytest.approx(echo))
        assert (echo > MOST_ECHOED) == (r_answer == 0)


def test_an_answer_that_is_nothing_but_quoted_is_worth_nothing(encoder):
    encoder.threshold = {"paper": -1.0, "guarded": -1.0}  # anything else would pass
    found = scored(encoder, output(f"{POST}……{POST[4:14]}。"))
    assert (found["score"], found["r_answer"], found["similarity"]) == (1, 0, 0)


def test_as_printed_the_reward_is_the_equation_on_the_whole_text_inside_answer(encoder):
    """`paper`: whatever is quoted, and however much. Each reading has its own T."""
    quoting, at_t = f"{POST[:14]}，{OTHER}", "刚好。"
    answers = {POST: 1.0, quoting: 0.8, FITS: 0.6, at_t: 0.5, OTHER: 0.0}
    encoder.vectors = {POST: [1.0, 0.0]} | {one: [near, math.sqrt(1 - near**2)] for one, near in answers.items()}
    for least in (0.5, 0.7):
        encoder.threshold = {"paper": least, "guarded": 2.0}
        contrastive._thresholds.clear()
        for answer, near in answers.items():
            found = scored(encoder, output(answer), answer="paper")
            assert (found["r_answer"], found["similarity"]) == (near > least, pytest.approx(near)), answer
            assert {"texts": [answer], "kind": "answer"} in [asked for _, asked in encoder.asked]
            assert found["echo"] == echoed(POST, answer), "it is reported, and not paid by"
    assert scored(encoder, output(FITS))["r_answer"] == 0


def test_t_is_asked_once(encoder):
    async def many() -> None:
        for _ in range(3):
            await compute_score(solution_str=output(FITS), extra_info=INFO)

    beside_it(encoder, many)
    assert [path for path, _ in encoder.asked].count("/about") == 1


def test_an_encoder_that_fails_stops_the_run(encoder, monkeypatch):
    for fails, said in (
        ([(500, {"problem": "busy"}), (502, {}), (500, {"problem": "out of memory"})], "out of memory"),
        ([(400, {"problem": "no texts"})], "refuses: no texts"),
        ([(503, {"stop": "too many failures; mend the key"})], "too many failures; mend the key"),
        ([(200, {"vectors": [["x"]]})], "one vector for each text"),
        ([(200, {"vectors": [[math.nan, 0.0]]})], "no number"),
        ([(200, {"vectors": [[1.0]]})], "vectors of 1 and of 2"),
    ):
        encoder.fails = list(fails)
        with pytest.raises(RewardFailed, match=said):
            scored(encoder, output(FITS))
        assert not encoder.fails, "it was asked again only where that may help"
    for threshold in (
        None,
        0.5,
        {"guarded": 0.5},
        {"paper": math.nan, "guarded": 0.5},
        {"paper": "0.5", "guarded": 0.5},
    ):
        encoder.threshold = threshold
        monkeypatch.setattr(contrastive, "_thresholds", {})
        with pytest.raises(RewardFailed, match="made has no threshold"):
            scored(encoder, output(FITS))


def test_a_prompt_without_a_question_stops_the_run():
    with pytest.raises(RewardFailed, match="s:1 has no question"):
        question({"row_id": "s:1", "dialogue": [{"role": "supporter", "text": "请讲"}]})


# The guard against echoes.
texts = st.text(alphabet="我在听您说，。 ", max_size=30)


@given(texts, texts)
def test_the_echo_is_the_share_of_runs_that_the_question_has(asked_of, answer):
    bare, said = ("".join(one for one in text if one.isalnum()) for text in (answer, asked_of))
    runs = [bare[at : at + RUN] for at in range(len(bare) - RUN + 1)]
    if runs:
        assert echoed(asked_of, answer) == sum(one in said for one in runs) / len(runs)
    else:
        assert echoed(asked_of, answer) == (bare != "" and bare in said)


def test_what_is_mostly_the_question_is_an_echo_and_what_takes_up_a_word_of_it_is_none():
    for answer in (POST, POST[:20], " ".join(POST), "。".join(POST), POST + "抱抱你，一切都会好起来的。", POST * 3):
        assert echoed(POST, answer) > MOST_ECHOED, answer
    answer = "听到您凌晨三点还醒着，我很心疼。睡前把手机放远一点，不要去看钟，先让身体慢慢地松下来，再看看明天会怎样。"
    assert 0 < echoed(POST, answer) < MOST_ECHOED


# What is quoted.
def test_a_quotation_is_found_whatever_stands_in_it():
    for answer, left in (
        ("您说凌晨三点还醒着，白天很累吧。", "您说很累吧。"),
        ("您说凌晨三点还醒着,  白天……很累吧。", "您说……很累吧。"),
        ("您说凌 晨 三 点 还 醒 着 白 天很累吧。", "您说很累吧。"),
        ("凌晨三点还醒着。", "凌晨三点还醒着。"),
        ("凌晨三点还醒着白。！", ""),
        ("。", "。"),
    ):
        assert unquoted(POST, answer) == left, answer


def by_letter(asked_of: str, answer: str) -> str:
    """What is left by the definition, letter by letter: whole runs in the question go, with what stands in them."""
    said = "".join(one for one in asked_of if one.isalnum()).casefold()
    letters = [(one, place) for place, each in enumerate(answer) if each.isalnum() for one in each.casefold()]
    bare = "".join(one for one, _ in letters)
    gone = {
        place
        for at in range(len(bare) - QUOTED + 1)
        if bare[at : at + QUOTED] in said
        for place in range(letters[at][1], letters[at + QUOTED - 1][1] + 1)
    }
    left = "".join(one for place, one in enumerate(answer) if place not in gone)
    return left if not gone or any(map(str.isalnum, left)) else ""


mixed = st.text(alphabet="我在听您说ßẞſsSıİiΣςσ①。 ", max_size=40)


@given(mixed, st.lists(mixed, min_size=1, max_size=4), st.data())
def test_a_question_held_against_many_answers_leaves_of_each_what_it_leaves_of_one(asked_of, answers, data):
    question = Quotable(asked_of)
    for answer in answers:
        start = data.draw(st.integers(0, len(asked_of)))
        quoting = answer[:9] + asked_of[start:] + answer[9:]
        for one in (answer, quoting):
            assert Quotable(one).without(question) == unquoted(asked_of, one) == by_letter(asked_of, one)


def test_hardly_any_human_answer_is_an_echo(shared):
    """The limit was chosen on these: it refuses none of them."""
    posts = json.loads((shared / "zh_qa" / "PsyQA_example.json").read_text())
    shares = [
        echoed(f"{post['question']}\n{post['description']}", answer["answer_text"])
        for post in posts
        for answer in post["answers"]
    ]
    assert len(shares) == 268
    assert max(shares) < MOST_ECHOED
    assert sum(share > 0.25 for share in shares) <= 3


@pytest.mark.parametrize("piece", ["<answer>", "</answer>", "<", "<answer><", "答", "a "])
def test_a_megabyte_of_anything_is_read_to_its_end(piece):
    """Were a step of it quadratic, this would take hours; benchmarks/reward_model.py measures it."""
    text = piece * (1_000_000 // len(piece))
    assert section(text, "answer", COE_TAGS) is None
    assert echoed(text, text + "好") <= 1
    left = unquoted(text, f"{text}乙")
    assert left.endswith("乙")
    assert len(left) <= 8 or not any(map(str.isalnum, text)), "punctuation is at its ends alone"
    assert section(f"<answer>{'好' * 1_000_000}</answer>", "answer", COE_TAGS) == "好" * 1_000_000
