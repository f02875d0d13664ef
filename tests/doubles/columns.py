"""A step of the cleaning over a few texts, and texts to try it on."""

from collections.abc import Callable

import polars as pl
from hypothesis import strategies as st

from pipelines.text.characters import EMOJI, every_character
from pipelines.text.pii.placeholders import EMOTICON, NAMES


def over(step: Callable[[pl.Expr], pl.Expr], *texts: str | None) -> list[str | None]:
    """What `step` makes of each text."""
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    return frame.select(made=step(pl.col("text")))["made"].to_list()


def _emoji() -> list[str]:
    every = every_character()
    return every.filter(every.str.contains(f"^{EMOJI}$")).to_list()


# What platforms leave, what their pieces are, and what they may be taken for.
PIECES = (
    *("http://t.cn/Ab1", "https://a.com/?b=1&amp;c=2", "www.abc.com", "a.com/b", "://", "//", "www."),
    *("@小明 ", "@小明：", "@abc_1", "//@小明:", "回复@小明:", "回覆@小明:", "@", "@[账号]", "@[帳號]", "@[姓名]"),
    *("#", "#失眠#", "#抑郁 ", "#失眠[话题]#", "＃焦虑＃", "#再也不想这样一个人过下去了#", "C#"),
    *("@了", "@他", "#1", "[火]", "[不]", "[b]", "[/b]", "2\u20e3"),
    *("[", "]", "[泪]", "［泪］", "[淚]", "[愛你]", "[doge]", "[害羞R]", "[心理咨询]", "[img]", "[/url]"),
    *("[网址2]", "[網址]"),
    *("&", "&amp;", "&lt;", "&gt;", "&nbsp;", "&#39;", "&#x4f60;", "&#38;", "&#", "amp;", "lt;", ";", "<", ">"),
    *("<br>", "</p>", "<b>", "<a href='x'>", "<script>", "</script>", "<!--", "-->", "<人性的弱点>"),
    *("展开全文", "展開全文", "收起全文d", "来自 iPhone客户端", "來自 iPhone客戶端", "转发微博", "查看图片"),
    *("O网页链接",),
    *("发布于 2021-03-04 10:22", "發佈於 2021-03-04", "编辑于昨天", "IP属地：广东", "点赞 12 收藏 3", "只看楼主"),
    *("全文",),
    *("(^_^)", "（￣▽￣）", "T_T", "╮(╯▽╰)╭", ":)", ":-(", "：-)", "^_^", "-_-||", "(", ")", "（", "）", "^", "_"),
    *("。", "。。。", "...", ".", "…", "……", "，", ",", "?", "？", "!", "！", "!!!!!", "、", "、、", "—", "－－"),
    *("~", "～", "“OK”", "（abc）", "《IT》", "【5mg】", "‘a’", "“OK”，", "（abc）、", "《", "》", "【", "】"),
    *("：", ":", "；", "‼", "⁉", "“", "”", "「", "」", "·", "・", "︶", "*", "-", "=", "／"),
    *(" ", "　", "\t", "\n", "\r", "\r\n", "\u2028", "\x85", "\u200b", "\ufeff", "\u202e", "\u00ad", "\x00", "\ufffd"),
    *("1\ufe0f\u20e3", "#\u20e3", "❤️", "👨‍👩‍👧", "🇨🇳", "👍🏽", "🏴\U000e0067\U000e007f", "\ue056", "\ue000", "\ue001"),
    *("我", "你好", "想", "死", "ＶＸ", "１２", "５ｍｇ", "INFP", "996", "OK", "a", "3.5"),
    *("e\u0301", "\u0301", "\u0336", "ᄒ", "ᅡ", "ᆫ", "𠮷", "﨑", "⼀", "㍿"),
    *("看著", "藉口", "反覆", "乾", "著", "愛", "显著", "打坏", "瞭解", "沈", "麼", "么", "憂鬱"),
    *(f"[{name}]" for name in NAMES.values()),
    *(EMOTICON, "[电话2]", "[姓名12]", "[电话1]", "[电话", "姓名]", "[電話]", "［姓名］"),
)  # fmt: skip

# Text from every plane, and text of pieces that are found next to each other nowhere but here.
characters = st.characters(exclude_categories=["Cs"])
anything = st.text(st.one_of(characters, st.sampled_from(_emoji())), max_size=30)
# Sentences that no rule is about, and signs that rules are about; none of them hides what follows (//@, <!--).
ordinary = st.text("我你他说想没有不了好来火钱今天很难过一个人在家睡觉妈妈给着", min_size=4, max_size=12)
suspicious = st.sampled_from(
    (
        *"@#[]【】()（）:：…~ 1aC_-&;^*'“”",
        *("1\u20e3", "2\u20e3", "😭", "@了", "@他", "@小明", "@小明 ", "回复@小明:"),
        *("#失眠#", "#失眠", "C#", "3#", "[泪]", "[不]", "[火]", "[b]", "[/b]", "O网页链接", " 转发微博"),
    )
)

patchwork = st.lists(st.one_of(st.sampled_from(PIECES), st.sampled_from(PIECES), anything), max_size=12).map("".join)
