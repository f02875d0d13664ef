"""Characters and words that the patterns of contact data share. For folded texts: see `folding`."""


def _digits(*written: str) -> dict[str, int]:
    """What stands for a digit, from one word of characters for each of 0 … 9."""
    return {character: digit for digit, characters in enumerate(written) for character in characters}


# Chinese digits in all their forms, and as they are called over a bad line (幺 洞 拐 勾).
CHINESE_DIGITS = _digits(
    "零〇○◯洞", "一幺妖吆腰壹", "二两贰", "三叁", "四肆", "五伍", "六陆", "七柒拐", "八捌", "九玖勾"
)
# Letters that stand in for 0 and 1.
LETTER_DIGITS = {"O": 0, "o": 0, "l": 1, "I": 1}
# Characters that sound like a digit, too common to be read as one but in a row of eleven.
HOMOPHONES = _digits(
    *("铃玲灵凌岭令欧圈", "要邀医衣依伊", "儿而耳尔俩", "散伞山仨", "是死丝思寺似泗"),
    *("舞无吴武午乌", "溜流刘留柳牛", "起气妻漆齐其奇", "爸吧巴把发扒", "就酒久旧救"),
)
_ENGLISH = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_PINYIN = ("ling", "yi", "er", "san", "si", "wu", "liu", "qi", "ba", "jiu")
SPOKEN_DIGITS = {word: digit for words in (_ENGLISH, _PINYIN) for digit, word in enumerate(words)} | {"yao": 1}

DIGIT = rf"[0-9{''.join(CHINESE_DIGITS)}]"
DIGIT_OR_LETTER = rf"[0-9{''.join(CHINESE_DIGITS)}{''.join(LETTER_DIGITS)}]"

# What stands between the digits of one number: a blank, a sign, or a sign or a step in words.
SEPARATOR = (
    r"(?:[^\p{L}\p{N}\n@\[\]]|横?杠|空格?|横线|减|点|(?:然后|接着|中间|后面|最后|末尾|再)是?)"
)  # fmt: skip

# What people put between "my WeChat" and the id. STRONG says that an id follows; WEAK may say it. Neither reaches over
# a square bracket: a placeholder is no cue.
STRONG = r"(?:[:：=]|号码?|[账帐]号|number|是|为|叫做?|搜索?|[→👉☞➡➜🔍🔎]|->|>|[「『【“\"'<《])"
WEAK = (
    r"(?:[^\p{L}\p{N}@\[\]]|我|本人|的|话|也|就|都|同号?|请|可以?|联系|私|聊|加|查找|添加|方式|如下|群|裙|好友|下|一下|哦|啊|呀|吧|"
    r"[上里]|名字?|小写|大写|字母|全拼|拼音|数字|代码|主页|(?-u:\b)(?:is|id|my|and|me|at|to)(?-u:\b))"
)
