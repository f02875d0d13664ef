"""What is cut out of answers: sentences written for this test, laws, and the answers of a real set."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.clean.credentials import without_credentials
from pipelines.clean.signatures import without_signatures
from pipelines.settings import ROOT

FORMULA = "愿你夜里有灯，心里有岸。"
BODIES = [
    "先睡一觉再说吧",
    "这件事不怪你，换作是谁都会累",
    "可以试着写下来，一天三行",
    "和妈妈谈谈，挑她不忙的时候",
    "慢慢来，不着急",
    "他的话不代表你的价值",
    "离开也是一种选择",
    "你已经做得很好了",
]


def answers(*texts: str | None, author: str | None = None, **more: list[str | None]) -> pl.DataFrame:
    columns = {"author": [author] * len(texts), "source": ["s"] * len(texts), "text": list(texts)}
    numbered = {"row_id": [f"q{n}/a" for n in range(len(texts))], "group": [f"q{n}" for n in range(len(texts))]}
    return pl.DataFrame({**numbered, **columns, **more}, schema=dict.fromkeys(["row_id", "group", *columns], pl.String))


def cut(frame: pl.DataFrame) -> list[str | None]:
    return without_signatures(frame)[0]["text"].to_list()


# --- signatures


def test_what_stands_at_the_end_of_answers_to_many_questions_is_cut():
    plain, edits = without_signatures(answers(*(f"{body}。{FORMULA}" for body in BODIES), FORMULA))
    assert plain["text"].to_list() == [*(f"{body}。" for body in BODIES), ""]
    assert edits.columns == ["row_id", "rule", "removed"]
    assert edits.rows() == [(f"q{n}/a", "signature", FORMULA) for n in range(9)]


def test_spellings_of_one_formula_count_together():
    hellos = ["题主你好！", "题主，你好～", "题主您好。", "题主，您好呀！"] * 2
    assert cut(answers(*(hello + body for hello, body in zip(hellos, BODIES, strict=True)))) == BODIES
    names = ["[姓名]", "[姓名2]", "[姓名3]", "[姓名]"] * 2
    frame = answers(*(f"{body}。我是{name}，祝你有个好梦。" for body, name in zip(BODIES, names, strict=True)))
    assert cut(frame) == [f"{body}。" for body in BODIES]


def test_the_longest_formula_is_cut_and_what_leads_over_to_it():
    frame = answers(
        *(f"{body}，最后，{FORMULA}" for body in BODIES[:4]), *(f"{body}！{FORMULA}" for body in BODIES[4:])
    )
    assert cut(frame) == [f"{body}。" for body in BODIES[:4]] + [f"{body}！" for body in BODIES[4:]]
    _, edits = without_signatures(frame)
    assert edits["removed"][0] == f"最后，{FORMULA}"


def test_a_rare_ending_stays():
    texts = [f"{body}。" for body in BODIES[:6]] + [f"{body}。{FORMULA}" for body in BODIES[6:]]
    assert cut(answers(*texts)) == texts


def test_the_same_question_counts_once():
    frame = answers(*(f"{body}。{FORMULA}" for body in BODIES), group=["q"] * 8)
    assert cut(frame) == frame["text"].to_list()


def test_a_copied_answer_is_no_formula():
    frame = answers(*["先睡一觉。明天再谈也不迟，事情不会跑。愿你夜里有灯，心里有岸。"] * 8)
    assert cut(frame) == frame["text"].to_list()


def test_what_mostly_is_part_of_a_sentence_stays():
    frame = answers(*(f"看了你的描述，{body}。" for body in BODIES))
    assert cut(frame) == frame["text"].to_list()
    frame = answers(*(f"如果{body}，一切都会慢慢好起来的。" for body in BODIES))
    assert cut(frame) == frame["text"].to_list()


def test_a_writer_needs_fewer_and_only_the_writer_is_cut():
    theirs = answers(*(f"{body}。祝安。我是阿汀。" for body in BODIES[:3]), author="w")
    others = answers(*(f"{body}。祝安。我是阿汀。" for body in BODIES[3:4]), author="v", row_id=["z"], group=["z"])
    frame = pl.concat([theirs, others])
    assert cut(frame) == [f"{body}。" for body in BODIES[:3]] + [f"{BODIES[3]}。祝安。我是阿汀。"]


def test_nothing_nulls_and_marks_alone_are_left():
    assert cut(answers()) == []
    assert cut(answers(None, "", "。。。", "……\n！", "a")) == [None, "", "。。。", "……\n！", "a"]


_CLAUSES = st.sampled_from(["题主你好", "抱抱你", FORMULA[:-1], "祝好", "加油", "希望对你有帮助", *BODIES])
_TEXTS = st.lists(st.tuples(_CLAUSES, st.sampled_from("，。！～\n")), min_size=1, max_size=6).map(
    lambda pairs: "".join(clause + mark for clause, mark in pairs)
)


@settings(max_examples=40)
@given(st.lists(_TEXTS | st.text(max_size=20), min_size=1, max_size=150), st.sampled_from([None, "w"]))
def test_cut_answers_have_no_formula_left(texts: list[str], author: str | None):
    frame = answers(*texts, author=author)
    plain, _ = without_signatures(frame)
    again, edits = without_signatures(plain)
    assert edits.is_empty()
    assert again.equals(plain)


@settings(max_examples=40)
@given(st.lists(_TEXTS, min_size=1, max_size=30))
def test_a_cut_takes_away_and_never_adds(texts: list[str]):
    frame = answers(*texts)
    plain, edits = without_signatures(frame)
    changed = plain.filter(plain["text"] != frame["text"])
    assert set(changed["row_id"]) <= set(edits["row_id"])
    for row_id, before, after in zip(frame["row_id"], frame["text"], plain["text"], strict=True):
        removed = "".join(edits.filter(row_id=row_id)["removed"])
        letters = [character for character in before if character.isalnum()]
        assert sorted(letters) == sorted(character for character in after + removed if character.isalnum())


def test_the_formulas_of_a_real_set(shared: Path):
    """PsyQA's sample: about two answers of five open or close with a formula."""
    posts = json.loads((shared / "zh_qa" / "PsyQA_example.json").read_text(encoding="utf-8"))
    rows = [
        {"row_id": f"{post['questionID']}/{n}", "group": str(post["questionID"]), "text": answer["answer_text"]}
        for post in posts
        for n, answer in enumerate(post["answers"])
    ]
    frame = pl.DataFrame(rows).with_columns(author=pl.lit(None, pl.String), source=pl.lit("psyqa"))
    plain, edits = without_signatures(frame)
    assert 0.3 <= edits["row_id"].n_unique() / frame.height <= 0.5
    assert edits["removed"].str.len_chars().max() <= 60
    assert without_signatures(plain)[1].is_empty()
    _, credentials = without_credentials(plain)
    assert credentials.height == 6
    assert credentials["removed"].str.contains("咨询师").all()


# --- credentials

CLAIMS = {
    "我是国家二级心理咨询师，很高兴为你解答。你并不孤单。": "很高兴为你解答。你并不孤单。",
    "题主你好，我是心理咨询师小禾，抱抱你。": "题主你好，抱抱你。",
    "从业十年的咨询师，见过很多这样的人。你并不孤单。": "见过很多这样的人。你并不孤单。",
    "本人持证上岗，放心。先说说睡眠吧。": "放心。先说说睡眠吧。",
    "你的感受很重要。我是一名心理咨询师，从业八年，擅长亲密关系。愿你安好。": "你的感受很重要。愿你安好。",
    "本人国家二级心理咨询师，从业十二年，个案累计五千小时。预约可加[微信]，首次八折。先睡好。": "先睡好。",
    "作为一名心理咨询师，我觉得你要先照顾自己。": "我觉得你要先照顾自己。",
    "虽然我是心理咨询师，但我也会难过。": "我也会难过。",
    "题主您好，是国家二级心理咨询师。您说的情况很常见。": "题主您好。您说的情况很常见。",
    "先好好睡一觉。偶尔发呆的心理咨询师，世界很大。": "先好好睡一觉。世界很大。",
    "我是心理学专业的，学过一点。先抱抱你。": "学过一点。先抱抱你。",
    "我有心理咨询师证，也做过几年热线。": "做过几年热线。",
    "慢慢来，我是国家二级心理咨询师。祝好。": "慢慢来。祝好。",
    "以我多年的咨询经验来看，孩子更需要陪伴。": "孩子更需要陪伴。",
    "在我的咨询工作中，常常遇到这样的父母。": "常常遇到这样的父母。",
    "我从事心理咨询工作八年了，见过很多人走出来。": "见过很多人走出来。",
    "我是精神科医生，你的药不要自己停。": "你的药不要自己停。",
    "心理咨询师。看到你的文字很心疼。": "看到你的文字很心疼。",
    "持证心理咨询师一枚，愿意听你说。": "愿意听你说。",
    "我是心理咨询师穆禾，高校心理中心兼职督导，愿你被稳稳接住。": "愿你被稳稳接住。",
    "我是国家二级心理咨询师。": "",
    "我当心理医生20多年了，见过很多人走出来。先睡好。": "见过很多人走出来。先睡好。",
    "我毕业于北师大心理系，有三千小时咨询经验，先抱抱你。": "先抱抱你。",
    "本人执业十年，擅长婚姻家庭。先和他谈谈。": "先和他谈谈。",
    "我是医生，你的药不要自己停。": "你的药不要自己停。",
    "我是一名儿科护士，孩子这样很正常。": "孩子这样很正常。",
    "心理咨询师李雷为您解答：你并不孤单，先睡好。": "你并不孤单，先睡好。",
    "心理咨询师[姓名]为您解答：先照顾自己。": "先照顾自己。",
    "国家二级心理咨询师[姓名2]为你解答。先照顾自己。": "先照顾自己。",
    "作为一名心理咨询师，我建议先休息。": "我建议先休息。",
    "作为一名心理咨询师我建议你先休息。": "我建议你先休息。",
    "作为医生，我想告诉你别怕。": "我想告诉你别怕。",
    "我做了十五年心理咨询，你的情况很常见。": "你的情况很常见。",
    "我做心理咨询师八年了，你的情况很常见。": "你的情况很常见。",
    "我有上千小时的咨询经验，你的情况很常见。": "你的情况很常见。",
    "我有十年临床经验，别担心。": "别担心。",
    "我是学心理学的，抱抱你。": "抱抱你。",
    "我是心理咨询师小禾：先深呼吸。": "先深呼吸。",
    "你好，我是心理咨询师[姓名]，抱抱你。": "你好，抱抱你。",
    "我本科毕业于某大学心理学系，愿意听你说。": "愿意听你说。",
    "题主好，本人从事心理咨询二十余年，见过很多。": "题主好，见过很多。",
}
NO_CLAIMS = """
    我的咨询师说过，情绪没有对错
    建议找心理咨询师聊一聊，会有帮助的
    我不是心理咨询师，只是过来人
    你可以找一位国家二级心理咨询师，做几次咨询
    我想成为一名心理咨询师，所以一直在学
    如果我是咨询师，我会先问你一个问题
    你是心理咨询师吗，说话好温柔
    作为一名心理咨询师，他应该替你保密
    我是心理咨询师的来访者，做了两年咨询
    我妈妈是心理医生，从小她就这样对我
    我也在考心理咨询师证，一起加油
    我和我的心理咨询师，聊了很久
    我们学校的心理老师，人很好
    我去找过咨询师，是国家二级心理咨询师，人很温柔
    心理咨询师都需要持证上岗，要学习很多年
    可以求助专业的心理咨询师，或者学校的心理老师
    我是过来人，走出来用了三年
    我从事销售十年，压力也很大
    题主你好，抱抱你
    我有证据，他骗了你
    建议你看心理医生
    我妈妈是医生，她也这样说
    我不是咨询师，只能陪你聊聊
    我也在看心理咨询师，真的有用
    我不是医生，不能下诊断
    我是医生的女儿，从小很孤单
    如果我是医生，我会劝你休息
    我问过医生，他说没事
    我是护士长的孩子
    医生给您的药要按时吃
    我毕业于一所普通大学，也很迷茫
    我毕业十年了，也很迷茫
    我做会计十年了，也想辞职
    我有三年没有睡好
    我有两次咨询的经历，感觉很好
    我做过两年心理咨询，走出来了
    我接受过三年的心理咨询，走出来了
    咨询师：你觉得呢？来访者：我不知道。
    我是他的医生朋友介绍来的
    我和医生聊了很久
    心理咨询师可以为你解答，去问问吧
    找一位心理咨询师为你解答，会好很多
    我当了十年班主任，见过很多孩子
    作为一名医生他应该更耐心
    我有一个医生朋友，他说要休息
    我是想去看医生，但没有时间
    我是不是该去看医生
    我也学过心理学，抱抱你
    我做了三年咨询，慢慢好起来了
    我有多年抑郁的经历
"""


@pytest.mark.parametrize(("before", "after"), CLAIMS.items())
def test_a_claim_is_cut_and_what_is_left_can_be_read(before: str, after: str):
    plain, edits = without_credentials(answers(before))
    assert plain["text"].to_list() == [after]
    assert set(edits["rule"]) == {"credential"}
    assert set(edits["row_id"]) == {"q0/a"}
    assert all(removed in before for removed in edits["removed"])


def test_claims_about_others_stay():
    texts = [line.strip() for line in NO_CLAIMS.strip().splitlines()]
    plain, edits = without_credentials(answers(*texts))
    assert edits.rows() == []
    assert plain["text"].to_list() == texts


@settings(max_examples=40)
@given(st.lists(st.text(max_size=30) | st.none(), max_size=4))
def test_other_texts_are_left_as_they_are(texts: list[str | None]):
    frame = answers(*texts)
    plain, edits = without_credentials(frame)
    assert edits.is_empty() or plain.height == frame.height
    assert without_credentials(plain)[0].equals(plain)


def test_the_samples_lose_their_signatures_and_claims():
    posts = [json.loads(line) for line in (ROOT / "samples" / "posts.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [
        {"row_id": answer["id"], "group": post["id"], "author": answer["author"], "source": "s", "text": answer["text"]}
        for post in posts
        for answer in post["answers"]
    ]
    frame = pl.DataFrame(rows)
    honest, credentials = without_credentials(frame)
    plain, formulas = without_signatures(honest)
    left = plain["text"].str.contains("我是咨询师阿汀|国家二级心理咨询师|穆禾")
    assert plain.filter(left).rows() == []
    shown = {post["id"] for post in posts if "signature" in post.get("shows", [])}
    assert {row_id.split("-")[0] for row_id in [*credentials["row_id"], *formulas["row_id"]]} >= shown
