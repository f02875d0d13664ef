"""`coherence`, `topics` and `emotions`: their JSON, what they say of real rows, and one case a rule."""

import json
from collections import Counter

import pytest
from rules_inputs import dialogues, posts

from pipelines.annotate.rules.answers import ANSWERS
from pipelines.store import Store
from schemas.labels import EMOTIONS, RISKS
from schemas.taxonomy import TAXONOMY

SEEKER, SUPPORTER = "seeker", "supporter"


def _coherence(*turns, lang="zh"):
    said = [{"role": role, "text": text} for role, text in turns]
    read = json.loads(ANSWERS["coherence"]({"lang": lang, "turns": said}))
    assert read.keys() == {"verdict", "why"}
    assert read["why"]
    return read["verdict"]


def _topics(title, description=""):
    return json.loads(ANSWERS["topics"]({"title": title, "description": description}))


def _emotion(text, unit="post"):
    return json.loads(ANSWERS["emotions"]({"unit": unit, "text": text}))["emotion"]


# --- coherence


def test_a_talk_between_two_is_kept():
    assert _coherence((SEEKER, "我最近失眠。"), (SUPPORTER, "多久了？"), (SEEKER, "两个月了。")) == "keep"


@pytest.mark.parametrize(
    ("verdict", "turns"),
    [
        ("not_a_dialogue", [(SEEKER, "我很难过。"), (SEEKER, "有人吗？")]),
        ("not_a_dialogue", [(SEEKER, "嗯"), (SUPPORTER, "这是一篇很长的文章。" * 60)]),
        ("artificial", [(SEEKER, "你好"), (SUPPORTER, "作为一个人工智能，我没有感情。")]),
        ("artificial", [(SEEKER, "怎么办"), (SUPPORTER, "建议：\n1. 早睡。\n2. 运动。\n3. 读书。\n4. 听歌。")]),
        ("artificial", [(SEEKER, "怎么办"), (SUPPORTER, "## 建议\n先**放松**一下。")]),
        ("incoherent", [(SEEKER, "怎么办"), (SUPPORTER, "先和她谈谈你的感受，好好沟通。")] * 2),
        ("incoherent", [(SEEKER, "怎么办"), (SUPPORTER, "……")]),
        ("incoherent", [(SEEKER, "怎么办"), (SUPPORTER, "You should talk to her about how you feel, calmly.")]),
    ],
)
def test_clear_signs_against_a_dialogue(verdict, turns):
    assert _coherence(*turns) == verdict


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("zh", "第一，你先别急；第二，你可以试着写下来。"),  # two points are no list
        ("zh", "我今年1.75米，3.5分的绩点，2.8倍的压力。"),
        ("en", "As an aunt I know that feeling. I am a bit of a worrier."),
        ("zh", "我也想过让 AI 陪我聊天。"),
    ],
)
def test_what_only_looks_like_a_sign_is_kept(lang, text):
    opening = "我很难过。" if lang == "zh" else "I am so sad."
    assert _coherence((SEEKER, opening), (SUPPORTER, text), lang=lang) == "keep"


def test_most_real_dialogues_are_kept_and_every_reply_is_well_formed(real_home, record_property):
    verdicts = Counter()
    for row in dialogues(Store(real_home / "data")):
        reply = json.loads(ANSWERS["coherence"]({"lang": row["lang"], "turns": row["turns"]}))
        verdicts[row["source"], reply["verdict"]] += 1
    record_property("verdicts", dict(verdicts))
    for source in ("smile", "cpsycoun", "esconv"):
        kept = verdicts[source, "keep"]
        assert kept >= 0.9 * sum(count for (one, _), count in verdicts.items() if one == source)


# --- topics


@pytest.mark.parametrize(
    ("title", "topic"),
    [
        ("一写论文就拖延，刷手机刷到半夜", "行为"),
        ("确诊抑郁症之后该不该吃药治疗", "治疗"),
        ("和室友闹矛盾，融不进她们的圈子", "人际"),
        ("总觉得自己比不上别人，怎样接纳自己", "成长"),
        ("动不动就哭，控制不住情绪", "情绪"),
        ("分手半年了还是放不下前男友", "恋爱"),
        ("婆婆总插手，老公不帮我，想离婚", "婚姻"),
        ("从小父母重男轻女，对原生家庭很失望", "家庭"),
        ("工作压力太大，想辞职又怕找不到工作", "职业"),
        ("什么叫晕轮效应？心理学上的定义是什么", "科普"),
        ("看完这部电影的主角，怎么看这个热搜", "热点"),
    ],
)
def test_each_main_topic_is_found(title, topic):
    assert _topics(title)["topic"] == topic


def test_the_subtopic_is_one_of_the_topics_own(real_home, record_property):
    agreeing = subtopics = 0
    rows = posts(Store(real_home / "data"))
    for row in rows:
        said = _topics(row["title"], row["description"])
        assert said.keys() == {"topic", "subtopic", "relevant", "risk", "why"}
        assert said["topic"] in TAXONOMY
        assert said["subtopic"] is None or said["subtopic"] in TAXONOMY[said["topic"]]
        assert set(said["risk"]) <= set(RISKS)
        agreeing += said["topic"] == row["topic"]
        subtopics += said["subtopic"] in row["subtopics"]
    record_property("main topic as the source's, of 99", agreeing)
    record_property("subtopic among the source's, of 99", subtopics)
    assert agreeing >= 0.5 * len(rows)  # eleven topics, several of which fit most posts


def test_a_post_without_a_word_of_the_lexicon_still_has_a_topic():
    assert _topics("我们都会和这样的人打交道吗", "身边有这样的人，我真的难过。")["topic"] == "情绪"


@pytest.mark.parametrize(
    ("title", "description", "relevant"),
    [
        ("总是和妈妈吵架", "我妈什么都要管，我很难受，该怎么办？", True),
        ("专业代写论文", "本机构专业团队，承接各类论文，包过，价格优惠，加微信[微信]咨询，无效退款。", False),
        ("打印机驱动装不上", "重装系统后打印机脱机，端口报错，怎么重启？", False),
    ],
)
def test_relevance(title, description, relevant):
    assert _topics(title, description)["relevant"] is relevant


@pytest.mark.parametrize(("title", "topic"), [("", "成长"), ("女生真的难过", "情绪")])
def test_a_post_without_a_title_has_no_first_line_that_is_one(title, topic):
    """女生 in a title is the writer, and in a description somebody else."""
    description = "身边有这样的人" if title else "女生真的难过\n身边有这样的人"
    assert _topics(title, description)["topic"] == topic


def test_risk_is_that_of_the_cleaning_rules():
    assert _topics("活着没意思", "我想自杀。")["risk"] == ["self_harm"]


# --- emotions


@pytest.mark.parametrize(
    ("text", "emotion"),
    [
        ("天天加班，我好累。", "疲惫"),
        ("以前很开心，现在特别害怕，非常害怕。", "恐惧"),
        ("如何与人沟通？", "困惑"),
        ("今天下雨。", "平静"),
        ("终于考上了，太开心了！", "喜悦"),
        ("I feel so guilty about it.", "内疚"),
    ],
)
def test_the_emotion_that_prevails_in_a_post(text, emotion):
    assert _emotion(text) == emotion


@pytest.mark.parametrize(
    ("text", "emotion"),
    [
        ("抱抱你，心疼你，你并不孤单，我在。", "关怀"),
        ("加油，相信你一定可以，会越来越好。", "鼓励"),
        ("我很担心你，今晚别一个人待着。", "关怀"),
        ("看到“叫我阿姨”我鼻子都酸了。", "悲伤"),
        ("看完我很生气，他怎么能这样。", "愤怒"),
        ("换谁都会难过的，不是你的错。", "关怀"),
        # what the seeker, others, or people in general feel is not what the answer feels
        ("焦虑的时候，焦虑会让人更焦虑，先呼吸。", "平静"),
        ("你不生气，但是早上那个问题要认真想想。", "平静"),
        ("把失败的原因列成一张表。", "平静"),
        ("你放弃了，他不会轻松。", "平静"),
        ("我研二的时候天天躲在厕所哭，后来找了师姐。", "平静"),
        ("你可以跟他说：我很难受，我们谈谈。", "平静"),
        ("可以跟他坦白说：我很高兴，也因为你没过而难受。", "平静"),
        ("往门缝里塞一张纸条，写上“我知道你举报的事，我觉得你很勇敢”。", "平静"),
        ("我在北京读书，房租三千五。", "平静"),
        ("楼主你好，心疼，抱抱。", "关怀"),
        ("夜深了，陪着你。", "关怀"),
        ("你妈妈是担心你，她的焦虑传给了你。", "平静"),
        ("我也离过婚，那两年我天天失眠。", "平静"),
        ("那一段说出来会好一点。", "平静"),
        ("慢慢来，一切都会好。", "鼓励"),
        ("这个问题要从三个方面看。", "平静"),
    ],
)
def test_an_answer_has_the_emotion_that_it_conveys_or_feels_itself(text, emotion):
    assert _emotion(text, "answer") == emotion


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("婚前恐惧？\n我有点怕，可是他一点都不怕。", "词语：「恐惧」、「怕」"),
        ("背锅\n我越想越气。我老公很生气，要去找他。", "词语：「越想越气」"),
        ("生日\n下班我从后门走的。", "没有用词说出情绪，也没有提问，记作中性"),
    ],
)
def test_the_grounds_are_the_writers_own_words_and_no_claim(text, why):
    assert json.loads(ANSWERS["emotions"]({"unit": "post", "text": text}))["why"] == why


def test_emotions_of_real_posts_and_answers_are_of_many_kinds(real_home, record_property):
    of_posts, of_answers = Counter(), Counter()
    for row in posts(Store(real_home / "data")):
        of_posts[_emotion(row["text"])] += 1
        of_answers.update(_emotion(answer["text"], "answer") for answer in row["answers"])
    record_property("of posts", dict(of_posts))
    record_property("of answers", dict(of_answers))
    assert set(of_posts) | set(of_answers) <= set(EMOTIONS.zh)
    for counts in (of_posts, of_answers):
        assert len(counts) >= 12
        assert counts.most_common(1)[0][1] <= 0.4 * counts.total()
