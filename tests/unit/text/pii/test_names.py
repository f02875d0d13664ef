"""Names: the forms they have, the words that look like them, real posts, awkward input."""

import json

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.text.pii import names, redact
from pipelines.text.pii.folding import fold
from pipelines.text.pii.redaction import find, find_entities
from pipelines.text.pii.segmentation import segment
from pipelines.text.pii.spans import SPANS

FORMS = [
    ("我叫陈静怡，今年二十岁。", ["陈静怡"]),
    ("昨天周凯给我打电话了。", ["周凯"]),
    ("我被罗敏和彭飞骂了一顿。", ["罗敏", "彭飞"]),
    ("欧阳雪是我的同桌。", ["欧阳雪"]),
    ("司徒老师批评了我。", ["司徒老师"]),
    ("陈阿姨总来我家。", ["陈阿姨"]),
    ("张总又在群里点名。", ["张总"]),
    ("我和小周、老李一起吃饭。", ["小周", "老李"]),
    ("阿强又去赌了。", ["阿强"]),
    ("涛哥劝我放手。", ["涛哥"]),
    ("婷婷是我最好的朋友。", ["婷婷"]),
    ("我女儿佳怡才五岁。", ["佳怡"]),
    ("她叫阿依古丽，是我的室友。", ["阿依古丽"]),
    ("我主治医生姓郭。", ["郭"]),
    ("我的外教Lucy让我去看医生。", ["Lucy"]),
    ("My name is Sarah and I feel lost.", ["Sarah"]),
    ("my husband Mark left me", ["Mark"]),
    ("陳阿姨說我不孝。", ["陳阿姨"]),
    ("姓名：王建国", ["王建国"]),
    ("我和男友(陈柏林)吵架了。", ["陈柏林"]),
]
STAYS = [
    "我高兴得不得了，方便的话请告诉我，任何人都行。",
    "他张开双臂，成长路上白天黑夜都安全，金钱不重要。",
    "我马上毕业了，老是陈述同一件事，每天睡三四个小时。",
    "他整天打王者荣耀，明明说好不玩的。",
    "妈妈、老公、爷爷和叔叔都不理解我，对于老师我也无话可说。",
    "弗洛伊德、荣格、鲁迅、海子和曾奇峰老师都写过。",
    "小明和某某、小A、Z先生、张三李四都一样。",
    "我叫他滚，他叫外卖，这种病叫做焦虑症。",
    "我是高中生，本人单身，他是山东人。",
    "每天吃舍曲林和阿普唑仑。",
    "老百姓的百家姓，跟妈妈姓也行。",
    "领导把我叫到小会议室谈话，就是周一早上的事。",
    "工作太忙，连家长会都没去，现在连女生也笑我。",
    "他们给我取外号叫肥猪，绰号叫胖墩。",
    "I am tired and this is hard, will you help me?",
]


def test_names_are_found_in_all_their_forms_and_words_that_look_like_them_stay():
    wanted = dict(FORMS) | {key: [] for key in STAYS}
    spans = find(pl.Series(list(wanted))).filter(pl.col("kind") == "name")
    names = {text: [] for text in wanted}
    for row, start, end in spans.select("row", "start", "end").iter_rows():
        text = list(wanted)[row]
        names[text].append(text.encode()[start:end].decode())
    assert {text: one for text, one in names.items() if one != wanted[text]} == {}


def test_a_given_name_alone_is_the_same_person():
    text = redact(pl.Series(["我喜欢陈晓雯。后来晓雯走了，陈晓雯没有回头，陈晓雯老师也没有。周凯点头。"])).texts[0]
    assert text == "我喜欢[姓名]。后来[姓名]走了，[姓名]没有回头，[姓名]也没有。[姓名2]点头。"


def test_awkward_texts():
    texts = [
        "",
        "\n",
        "王",
        "我叫",
        "姓",
        "老师",
        "叫" * 50,
        "王" * 3000,
        "小" * 3000,
        "😀" * 100,
        "a" * 5000,
        "我叫" * 2000,
    ]
    spans = find_entities(pl.Series([*texts, "我是张伟。"]))
    assert spans.schema == SPANS
    assert spans.filter(pl.col("row") == len(texts)).height == 1
    assert find_entities(pl.Series([], dtype=pl.String)).schema == SPANS


def test_a_million_characters_without_a_stop():
    text = "今天王建国和李秀英说他们不高兴" * 70_000
    found = names.names_in(segment(pl.Series([text])))
    # Each is found where it stands, and no more, however long the run.
    found = found.filter(pl.col("end") - pl.col("start") == 9).unique(["start", "end", "value"])
    assert found["value"].value_counts().sort("value").rows() == [("李秀英", 70_000), ("王建国", 70_000)]


CHARACTERS = "王张小老阿伟芳叫我是的在路村号3a，。 \n\u3007𠀀😀é"
WORDS = "老师 医院 大学 我叫 他叫 姓名： 住在 公司 [姓名] 欧阳 静静 Tom 陈晓雯 中山路"
PIECES = st.sampled_from([*CHARACTERS, *WORDS.split()])


@settings(deadline=None, max_examples=10)
@given(st.lists(st.lists(PIECES, max_size=25).map("".join), max_size=6))
def test_spans_lie_in_their_rows_and_rows_do_not_touch_each_other(texts):
    found = find_entities(pl.Series(texts, dtype=pl.String))
    for row, text in enumerate(texts):
        data = text.encode()
        spans = found.filter(pl.col("row") == row).drop("row")
        for start, end in spans.select("start", "end").rows():
            assert 0 <= start < end <= len(data)
            assert data[start:end].decode()
        alone = find_entities(pl.Series([text])).drop("row")
        assert alone.sort(alone.columns).equals(spans.sort(spans.columns))


def test_real_posts_hold_few_names(shared):
    """Read by eye: in 180,000 characters of questions and answers stand four people's names and a dozen signatures."""
    posts = json.loads((shared / "zh_qa" / "PsyQA_example.json").read_text(encoding="utf-8"))
    texts = [post[part] for post in posts for part in ("question", "description")]
    texts += [answer["answer_text"] for post in posts for answer in post["answers"]]
    found = find_entities(fold(pl.Series(texts)).texts)
    assert found.filter(pl.col("kind") == "name").height <= 15
    assert found.filter(pl.col("kind") != "name").unique(["row", "start", "kind"]).height <= 6


COUNTED = """
上周老师摸我 下周老师又要来 这周叔叔又骂我 每周教练都来 隔周叔叔就打我 本周同学都不理我 第三周老师又打我 第3周老师又打我
过了两周同学才理我 上上周老师说 上周爸爸打我 上任老公打我 第二任老公打我 上段姐姐的事 这季老师换了 每章老师都讲
下车阿姨推我 下楼叔叔骂我
"""


def test_what_is_counted_is_no_surname():
    texts = COUNTED.split()
    rows = names.names_in(segment(pl.Series(texts)))["row"].unique()
    assert [texts[row] for row in rows] == []


def test_a_surname_behind_another_word_is_one():
    others = (
        "晚上周老师打我",
        "网上周老师说的",
        "以前周老师打我",
        "上周周老师打我",
        "周老师打我",
        "电话13812345678周老师",
    )
    wanted = {**dict.fromkeys(others, "周老师"), "这王老师骂我": "王老师"}
    spans = names.names_in(segment(pl.Series(list(wanted)))).sort("row")
    assert spans["row"].to_list() == list(range(len(wanted)))
    for (text, name), start, end in zip(wanted.items(), spans["start"], spans["end"], strict=True):
        assert text.encode()[start:end].decode() == name
