"""What platforms leave in a text goes; prose that looks like it stays."""

import pytest
from columns import over

from pipelines.clean.normalise import normalised

GONE = {
    "a link": {
        "看http://t.cn/A6xYz真的好": "看 真的好",
        "看 https://a.com/b?c=1&d=2#e 吧": "看 吧",
        "www.abc.com你看": "你看",
        "看t.cn/RxYz12 吧": "看 吧",
        "链接在[网址]，还有[网址2]": "链接在，还有",
        "h\u200bttp://t.cn/abc 好": "好",
    },
    "a mention": {
        "@小明 你好": "你好",
        "@小明：你好": "你好",
        "谢谢@abc_12 @小红-1 ！": "谢谢！",
        "谢谢@[账号]，@[账号2]:好": "谢谢，好",
        "回复@小明:不是的": "不是的",
        "我也是//@小明:原来的话//@小红:别人的话": "我也是",
        "我也是//@[账号]:原来的话": "我也是",
        "我也是//@我是小明:原来的话": "我也是",
        "好累 @小明": "好累",
        "好累 @范范范玮琪": "好累",
        "你看@abc_12！": "你看！",
        "好累 @小明，@小红-1。": "好累，。",
    },
    "a topic": {
        "#失眠#又是一夜": "又是一夜",
        "好累＃心情日记＃": "好累",
        "好累 #抑郁 #焦虑症": "好累",
        "好累#抑郁症[话题]#": "好累",
        "#2023高考#好难": "好难",
        "#失眠##2023高考##抑郁#好累": "好累",
        "好emo#失眠#又": "好emo 又",
        "#失眠，抑郁#怎么办": "失眠，抑郁 怎么办",
        "我在学C#，#失眠#又": "我在学C#，又",
        "#分手以后我得了很严重的抑郁#怎么办": "分手以后我得了很严重的抑郁 怎么办",  # rather a sentence: the signs alone
    },
    "an emoticon": {
        "好累[泪][泪]": "好累",
        "[doge]好［允悲］": "好",
        "好难过[哭惹R]": "好难过",
        "[微笑]": "",
        "[泪]好累[允悲]我": "好累 我",
        "好热[火]\n真的": "好热\n真的",
        "[火][泪]好热[好] [怒]啊": "好热 啊",
    },
    "a face": {
        "好(^_^)累": "好 累",
        "（￣▽￣）好": "好",
        "好T_T": "好",
        "啊O(∩_∩)O哈": "啊 哈",
        "好\\(≧▽≦)/": "好",
        "随便啦╮(╯▽╰)╭": "随便啦",
        "加油(ง•̀_•́)ง": "加油",
        "(｡•́︿•̀｡)": "",
        "好的:)": "好的",
        "好的：-）": "好的",
        "我-_-||": "我",
    },
    "markup": {
        "一<br>二<br/>三</p>": "一\n二\n三",
        "<b>很</b>累<a href='x'>点</a>": "很累点",
        "好<script>var a=1;</script>累<!-- x -->": "好 累",
        "A&amp;B&nbsp;C&lt;3 &quot;好&quot; &#39;a&#39; &#x4f60;": "A&B C<3 \"好\" 'a' 你",
        "&amp;amp;lt;b&amp;amp;gt;好": "好",
        "[img]x[/img][size=3]好[/size]": "x 好",
        "[b]好[/b][i]累": "好 累",
    },
    "a stock phrase": {
        "我好累……展开全文": "我好累……",
        "我好累\n展开全文c": "我好累",
        "收起全文d\n我好累": "我好累",
        "我好累\n来自 iPhone客户端": "我好累",
        "3分钟前 来自 HUAWEI Mate 40\n我好累": "我好累",
        "我好累 网页链接": "我好累",
        "O网页链接 我好累": "我好累",
        "看O网页链接我好累": "看 我好累",
        "【网页链接】我好累": "我好累",
        "我好累 展开全文 展开全文": "我好累",
        "转发微博": "",
        "我好累\n发布于 2021-03-04 10:22 ・IP 属地广东": "我好累",
        "我好累 编辑于 2020-01-02": "我好累",
        "本帖最后由 小明 于 2012-3-4 12:00 编辑\n我好累": "我好累",
        "我好累\n点赞 12 收藏 3": "我好累",
        "我好累\n添加评论": "我好累",
        "著作权归作者所有。商业转载请联系作者获得授权\n我好累": "我好累",
        "我好累 查看图片": "我好累",
        "我好累\n只看楼主": "我好累",
        "我好累\nIP属地：四川": "我好累",
    },
}

STAYS = """
他让我点击展开全文再看
我在微博上看到一句话
我转发了那条微博，他就生气了
这件事是从他的客户端发现的
我把图片给他看了
他给我点赞收藏评论我都不敢看
我发布于网上的日记被他看到了
来自农村的我很自卑
我3.5分，5>3，a<b
R&B和AT&T
我#1 失眠，#2 焦虑
用C#写代码
[心理咨询]有用吗
文献[1]和[2]
（1）失眠（2）焦虑
时间:(周一)
(2-3)次，(x-1)
老师在群里@我，我很紧张
妈妈说"@"是什么
我的邮箱abc@163.com
他/她，和/或
我看了<人性的弱点>
996，MBTI是INFP，5mg，2^3
我在学C#语言和F#语言
我用的是A#和C#两个调
他弹 #C 和 #F 两个音
他说#1是最好的#2也行
#1失眠#2焦虑#3抑郁
我住3#楼，他住5#楼
我住3#楼和5#楼
今天@了他三次，他都没回
今天@三次 他都没回
我@他他不理我
老师@我 我很紧张
我在群里@她说对不起
我在群里@所有人，没人回
我@班长没理我，很慌
我@班长没理我
他是@的我
邮箱是小明@gmail.com
1. [不]选
你选[好]还是[不]
我的名字里有[火]字
我姓[钱]，不姓[来]，也不[好]色
选[B]，不选[P]，看a[i]和b[u]
我看不懂网页链接是什么
"""


@pytest.mark.parametrize(("text", "expected"), [pair for pairs in GONE.values() for pair in pairs.items()])
def test_artefacts_go(text: str, expected: str):
    assert over(normalised, text) == [expected]


def test_prose_stays():
    sentences = STAYS.strip().splitlines()
    made = over(normalised, *sentences)
    # The colon behind a Chinese character is unified; nothing else changes.
    assert [one.replace("：", ":") for one in made] == [one.replace("：", ":") for one in sentences]


def test_nothing_is_stripped_out_of_the_middle_of_words():
    """A nickname that goes on without a blank may be the sentence itself."""
    text = "@妈妈我今天真的很难过很难过"
    assert over(normalised, text) == [text]
