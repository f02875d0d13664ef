"""What each task asks, keeps and drops."""

import json
from itertools import pairwise
from typing import Any

import annotate_rows
import polars as pl
import pytest
from annotate_rows import CHAIN, ECOT, LONG, STORY, answer, cer, dialogue, dialogues, good, post, sampled_round, splits
from scripted import Scripted
from unique_rows import RISK, posts, rounds

from pipelines.annotate import cer as cer_task
from pipelines.annotate import coe, coherence, ecot, emotions
from pipelines.annotate import topics as topics_task
from pipelines.errors import RequestError
from pipelines.llm.questions import REASONS
from pipelines.llm.tasks import Plan, sampled
from pipelines.settings import Prompts, Settings
from pipelines.split.eligible import draw_reference
from schemas.reasoning import Coe, Ecot

ONE = ("a",)
TRAIN = splits()


def done(plan: Plan, *replies: Any) -> tuple[list[dict[str, Any]], list[tuple[str, str, str, str | None]]]:
    """Rows kept, and drops as (unit, row_id, reason, detail); each question gets its reply, or a good one."""
    said = dict(zip([question.row_id for question in plan.questions], replies, strict=False))
    client = Scripted(lambda question: said.get(question.row_id, good(question)))
    kept, dropped = plan.finish(client.ask(plan.questions))
    return kept.to_dicts(), list(dropped.select("unit", "row_id", "reason", "detail").iter_rows())


def lost(plan: Plan, *replies: Any) -> list[tuple[str, str, str, str | None]]:
    return done(plan, *replies)[1]


# --- coherent dialogues

TALK = dialogue(1, "seeker: 我睡不着", "supporter: 多久了？")


def test_a_dialogue_is_kept_whole_with_verdict_grounds_and_provenance():
    frame = dialogues(TALK)
    [row], drops = done(coherence.plan(frame, ONE), '{"verdict": "keep", "why": " 接得上 "}')
    assert drops == []
    assert {name: row[name] for name in frame.columns} == frame.to_dicts()[0]
    assert (row["verdict"], row["why"]) == ("keep", "接得上")
    assert (row["provider"], row["model_asked"], row["model_served"]) == ("openai", "a", "served")
    assert row["prompt_version"].startswith("annotate.coherence.zh@1-")


def test_another_verdict_or_a_reply_without_a_value_drops_the_dialogue_without_a_word_of_it():
    for verdict in ("incoherent", "artificial", "not_a_dialogue"):
        reply = json.dumps({"verdict": verdict, "why": "求助者说睡不着"})
        assert lost(coherence.plan(dialogues(TALK), ONE), reply) == [("dialogue", "s:1", verdict, None)]
    for reason in REASONS:
        drops = lost(coherence.plan(dialogues(TALK), ONE), (reason, "3 tries"))
        assert drops == [("dialogue", "s:1", reason, "3 tries")]


def test_an_english_dialogue_is_asked_about_and_judged_in_english():
    plan = coherence.plan(dialogues(TALK | {"lang": "en"}), ONE)
    assert plan.questions[0].prompt.id == "annotate.coherence.en"
    assert lost(plan, '{"verdict": "keep", "why": "接得上"}') == [("dialogue", "s:1", "invalid_reply", "language:why")]
    assert lost(plan, '{"verdict": "keep", "why": "it hangs together"}') == []


# --- topics


def test_topics_are_asked_where_none_is_given_or_there_is_doubt_or_risk():
    for change, is_asked in (
        ({"topic": "人际"}, False),
        ({"topic": None}, True),
        ({"topic": "感情"}, True),  # a word of the source, none of the taxonomy
        ({"topic": "人际", "doubts": ["advertisement"]}, True),  # doubts count where the source gives a topic, too
        ({"topic": "科普", "subtopics": ["书籍"], "doubts": ["not_psychological"]}, True),
        ({"topic": "人际", "risk": RISK}, True),
    ):
        plan = topics_task.plan(posts(post(1, **change)), ONE)
        assert len(plan.questions) == is_asked
        assert lost(plan) == ([] if is_asked else [("post", "s:1", "topic_given", None)])


def test_a_judgement_is_a_row_also_where_the_post_is_out_of_place():
    said = {"topic": None, "subtopic": None, "relevant": False, "risk": ["abuse", "abuse"], "why": "是广告"}
    [row], drops = done(topics_task.plan(posts(post(1, topic=None)), ONE), json.dumps(said))
    assert drops == []
    assert (row["row_id"], row["topic"], row["relevant"], row["risk"]) == ("s:1", None, False, ["abuse"])


# --- emotions


def test_the_answers_of_a_post_that_is_out_are_out_with_it():
    answers = [answer("s:2/0", under_18=True), answer("s:2/1")]
    plan = emotions.plan(posts(post(1, "我", answer("s:1/0"), risk=RISK), post(2, "我", *answers)), ONE)
    assert [question.row_id for question in plan.questions] == ["s:2", "s:2/1"]
    assert lost(plan) == [
        ("post", "s:1", "risk", "self_harm/suicide"),
        ("answer", "s:1/0", "risk", "of its post"),
        ("answer", "s:2/0", "under_18", "the writer says to be younger than 18"),
    ]


# --- chains of empathy


def coe_of(*rows: dict[str, Any], judged: pl.DataFrame | None = None, **more: Any) -> Plan:
    return coe.plan(posts(*rows), TRAIN, judged, ONE, **more)


ASKED = post(1, answers=[answer("s:1/0", f"  {LONG}\n")])


def test_the_human_answer_stands_verbatim_behind_the_chain():
    [row], _ = done(coe_of(ASKED))
    assert row["answer"] == f"  {LONG}\n"
    assert (row["answer_id"], row["author_role"], row["draw_probability"]) == ("s:1/0", "unknown", 1.0)
    assert (row["L1"], row["reasoning"]) == ("他难受，「睡不着」。", "想了想")
    assert Coe(**{name: row[name] for name in ("L1", "L2", "L3", "L4", "answer")}).render().startswith(CHAIN)


def test_the_answer_is_the_one_that_the_prompt_set_draws():
    answers = [answer(f"s:1/{n}", f"{n} {LONG}", "professional" if n else "member") for n in range(6)]
    for seed in range(5):
        [row], _ = done(coe_of(post(1, answers=answers), seed=seed))
        drawn = draw_reference("s:1", answers, seed)
        assert (row["answer_id"], row["draw_probability"]) == (drawn.answer_id, pytest.approx(1 / 5))
        assert row["author_role"] == "professional"


def test_e_s_sample_is_drawn_of_pairs_of_train_that_can_be_asked_about_and_a_greater_one_keeps_it():
    """[annotate.sizes] coe_chains: what may not be asked about takes no place of the sample."""
    answers = {n: [answer(f"s:{n}/{m}", f"{m} {LONG}") for m in range(3)] for n in range(24)}
    out = ({"group_id": "g2"}, {"answers": []}, {"risk": RISK}, {})
    rows = [post(n, answers=answers[n]) | out[n % 4] for n in range(24)]
    pairs = {f"s:{n}" for n in range(3, 24, 4)}
    drawn = []
    for size in range(1, 8):
        few = sampled(coe_of(*rows), size, 0)
        kept, drops = done(few)
        drawn.append({row["post_id"] for row in kept})
        assert len(drawn[-1]) == min(size, len(pairs))
        assert {gone[1] for gone in drops if gone[2] == "not_sampled"} == pairs - drawn[-1]
        assert all(row["answer_id"].startswith(f"{row['post_id']}/") for row in kept)
        assert [row["draw_probability"] for row in kept] == [pytest.approx(1 / 3)] * len(kept)
    assert all(few <= more <= pairs for few, more in pairwise(drawn))


def test_posts_without_an_answer_to_lead_to_are_not_asked_about():
    for change, reason, detail in (
        ({"group_id": "g2"}, "not_train", "validation"),
        ({"origin": "model"}, "no_human_answer", "written by: model"),
        ({"answers": []}, "no_human_answer", "a question without an answer"),
        ({"answers": [answer("s:1/0", risk=RISK)]}, "no_human_answer", "no answer without risk, by an adult"),
        ({"answers": [answer("s:1/0", "好</answer>")]}, "unreadable_answer", "s:1/0"),
    ):
        plan = coe_of(ASKED | change)
        assert not plan.questions
        assert lost(plan) == [("post", "s:1", reason, detail)]
    assert len(coe_of(ASKED | {"origin": "model"}, human_only=False).questions) == 1


def test_what_topics_say_of_a_post_keeps_it_out_of_chains():
    for opinion, reason in (
        ({"relevant": False, "topic": None}, ("not_relevant", "by topics")),
        ({"risk": ["abuse"]}, ("risk", "second opinion: abuse")),
        ({}, None),
    ):
        judged = annotate_rows.topics({"row_id": "s:1"} | opinion)
        for plan in (coe_of(ASKED, judged=judged), ecot.plan(posts(ASKED), TRAIN, judged, ONE)):
            assert lost(plan) == ([("post", "s:1", *reason)] if reason else [])


def test_a_chain_that_knows_the_answer_is_dropped_with_the_kind_of_what_it_knows():
    told = post(1, answers=[answer("s:1/0", "我当过护士，推荐你看《被讨厌的勇气》，每天写二十分钟。")])
    knowing = CHAIN.replace("他怕是自己的错", "他没有护士的经验，也没有读过《被讨厌的勇气》，更不会写二十分钟")
    assert lost(coe_of(told), knowing) == [("post", "s:1", "hindsight", "number, title, profession")]
    strategy = CHAIN.replace("先接住感受", "先接住感受，再提到《被讨厌的勇气》")  # the fourth step may know it
    assert lost(coe_of(told), strategy) == []


# --- emotional chains of thought


def test_a_chain_in_four_parts_is_kept_unless_of_the_wrong_length_or_language():
    [row], drops = done(ecot.plan(posts(post(1)), TRAIN, None, ONE))
    assert drops == []
    assert Ecot(**{name: row[name] for name in Ecot.model_fields}) == ECOT
    assert (row["post_id"], row["group_id"]) == ("s:1", "g1")
    for change, problem in (
        ({"answer": "您好。"}, "length:answer"),
        ({"answer": "您" * 2001}, "length:answer"),
        ({"situation": "You quarrelled with your roommate."}, "language:situation"),
    ):
        said = ECOT.model_copy(update=change).render()
        plan = ecot.plan(posts(post(1)), TRAIN, None, ONE)
        assert lost(plan, said) == [("post", "s:1", "invalid_reply", problem)]


def test_personal_data_that_nobody_told_the_model_drop_the_row():
    named, seen = (
        "我和[姓名]吵架了，晚上睡不着觉，是不是我太敏感了？",
        "我在北京安定医院看过，还是睡不着，是不是我太敏感了？",
    )
    for story, words, kinds in (
        (STORY, "您可以打13812345678找我。", "phone 1"),
        (STORY, "您可以打12356，也可以打120。", None),  # public lines
        (named, "您可以去找[姓名]说说。", None),  # as the post has it
        (seen, "您在北京安定医院看过。", None),
        (STORY, "您在北京安定医院看过。", "hospital 1"),
    ):
        said = ECOT.model_copy(update={"answer": ECOT.answer + words}).render()
        plan = ecot.plan(posts(post(1, story)), TRAIN, None, ONE)
        assert lost(plan, said) == ([("post", "s:1", "personal_data", kinds)] if kinds else []), words


def test_grounds_that_hold_personal_data_are_withheld_and_the_verdict_stays():
    why = {"why": "求助者说可以打13812345678这个电话找到室友"}
    for made in (
        topics_task.plan(posts(post(1, topic=None)), ONE),
        emotions.plan(posts(post(1)), ONE),
        coherence.plan(dialogues(TALK), ONE),
    ):
        leaking = Scripted(lambda question: json.dumps(json.loads(good(question)) | why, ensure_ascii=False))
        kept, gone = made.finish(leaking.ask(made.questions))
        assert set(kept["why"]) == {"withheld: phone 1"}
        assert kept.height == len(made.questions) > 0
        assert gone.filter(pl.col("reason") == "personal_data").is_empty()


# --- candidates

ROUND = sampled_round(1, 2, "supporter: 你好", "seeker: 我和室友吵架了", strategies=["Question"], emotion="愤怒")


def cer_of(*rows: dict[str, Any], models: tuple[str, ...] = ("a", "b"), **prompts: Any) -> Plan:
    return cer_task.plan(rounds(*rows), TRAIN, models, Settings(prompts=Prompts(**prompts)))


def test_each_model_writes_a_candidate():
    assert [question.sample for question in cer_of(ROUND, models=("a", "a")).questions] == [0, 1]  # drawn twice
    plan = cer_of(ROUND)
    asked = [(question.row_id, question.model, question.sample) for question in plan.questions]
    assert asked == [("s:1#2/1", "a", 0), ("s:1#2/2", "b", 0)]
    rows, drops = done(plan, cer().render(), cer(response="后来呢？").render())
    assert drops == []
    said = [(row["candidate"], row["model_asked"], row["response"]) for row in rows]
    assert said == [(1, "a", "那天发生了什么？"), (2, "b", "后来呢？")]
    assert {(*(row[name] for name in ("dialogue_id", "round", "lang", "group_id")),) for row in rows} == {
        ("s:1", 2, "zh", "g1")
    }


def test_a_history_that_stands_twice_is_asked_about_once():
    """Dialogues that open with the same word: the same question would be the same candidates again."""
    hello = [sampled_round(number, 1, "seeker: 你好") for number in (3, 2, 4)]
    plan = cer_of(*hello, sampled_round(5, 1, "seeker: 你好！"), ROUND | {"needs_media": True})
    assert [question.row_id for question in plan.questions] == ["s:2#1/1", "s:2#1/2", "s:5#1/1", "s:5#1/2"]
    assert plan.dropped.select("unit", "row_id", "reason", "detail").rows() == [
        ("round", "s:1#2", "needs_media", "the history holds a clip for which text does not do"),
        ("round", "s:3#1", "same_history", "s:2#1"),
        ("round", "s:4#1", "same_history", "s:2#1"),
    ]


def test_a_round_with_clips_is_asked_about_by_its_text_unless_the_setting_drops_it():
    with_clips = ROUND | {"has_media": True}
    assert [one.inputs for one in cer_of(with_clips).questions] == [one.inputs for one in cer_of(ROUND).questions]
    assert cer_of(with_clips, media="drop").dropped["reason"].to_list() == ["needs_media"]


def test_held_out_rounds_are_asked_about_too_and_take_nothing_from_those_that_train():
    """C measures reward models on labels of held-out candidates (Table 1)."""
    groups = splits(g1="validation", g2="test", g3="train")
    rows = [sampled_round(number, 1, group_id=f"g{number}") for number in (1, 2, 3)]
    hello = [sampled_round(number, 1, "seeker: 你好", group_id=f"g{number - 3}") for number in (4, 6)]
    plan = cer_task.plan(rounds(*rows, *hello), groups, ONE, Settings())
    assert {question.about for question in plan.questions} == {"s:1#1", "s:2#1", "s:3#1", "s:6#1"}
    assert set(plan.held_out) >= {"s:1#1", "s:2#1"}
    assert {"s:3#1", "s:6#1"}.isdisjoint(plan.held_out)
    assert plan.dropped.select("row_id", "reason", "detail").rows() == [("s:4#1", "same_history", "s:6#1")]
    with pytest.raises(RequestError, match="the group of s:1#1 has no split"):
        cer_task.plan(rounds(*rows), splits(g3="train"), ONE, Settings())


def test_the_reference_never_enters():
    mark = "这句话只有原来的支持者说过"
    [first, second] = cer_of(ROUND | {"reference": mark, "situation": mark, "topic": mark}).questions
    for question in (first, second):
        assert mark not in json.dumps(question.inputs, ensure_ascii=False) + question.prompt.text
        assert question.inputs["history"] == ROUND["history"]
        assert "Question" not in json.dumps(question.inputs)  # nor its strategy, nor the seeker's labelled emotion
        assert "愤怒" not in json.dumps(question.inputs, ensure_ascii=False)


def test_one_lost_candidate_leaves_the_round_and_two_drop_it():
    assert lost(cer_of(ROUND), "OK") == [("candidate", "s:1#2/1", "invalid_reply", "missing:cer_think")]
    assert lost(cer_of(ROUND), "OK", ("refused", None)) == [
        ("candidate", "s:1#2/1", "invalid_reply", "missing:cer_think"),
        ("candidate", "s:1#2/2", "refused", None),
        ("round", "s:1#2", "no_candidate", "2 asked for"),
    ]


def test_an_english_dialogue_wants_an_english_candidate():
    plan = cer_of(sampled_round(1, 1, "seeker: I cannot sleep", lang="en"), models=ONE)
    assert plan.questions[0].prompt.id == "annotate.cer.en"
    assert lost(plan, cer("en").render()) == []
    assert ("candidate", "s:1#1/1", "invalid_reply", "language:labels") in lost(plan, cer("zh").render())
    mixed = cer("en").model_copy(update={"response": "那天发生了什么？"}).render()
    assert ("candidate", "s:1#1/1", "invalid_reply", "language:response") in lost(plan, mixed)
