"""E-mail addresses and links, also those written so that no machine should find them."""

import polars as pl

from pipelines.text.pii.patterns import CHINESE_DIGITS
from pipelines.text.pii.spans import gather, matches, spans

_PROVIDER = (
    r"(?:qq|163|126|139|189|188|wo|sina|sohu|tom|21cn|yeah|aliyun|foxmail|gmail|hotmail|outlook|live|msn|icloud|me|mac|"
    r"yahoo|proton|protonmail|vip\.qq|vip\.163|vip\.sina|naver)"
)
_DOT = r"(?:[ ]?(?:[.。·,，]|[(（\[【{<]?[ ]?(?:dot|点|[.。])[ ]?[)）\]】}>]?)[ ]?)"
_TOP = r"(?:com|c0m|con|cn|net|org|edu|gov|hk|tw|io|me|co|cc|info|uk|jp|de|us|ca|au|top|vip|xyz)"
# A sign inside the name may be spelt as well: zhang dot li, quiet下划线room. Some write the digits in Chinese.
_SIGN = (
    r"(?:[ ]?[(\[{（【]?[ ]?(?:dot|点|[下中短]?[划横]线|[下中短小]?横?杠|underscore|underline|dash|减号?)"
    r"[ ]?[)\]}）】]?[ ]?)"
)
_LETTER = rf"[A-Za-z0-9_{''.join(CHINESE_DIGITS)}]"
_USER = (
    rf"(?:(?-u:\b){_LETTER} ){{0,30}}{_LETTER}"
    rf"(?:[.%+&*~-]{{0,2}}{_LETTER}|[ ]?[._-][ ]?{_LETTER}|{_SIGN}{_LETTER}){{0,63}}[.+-]?"
)
_AT = r"(?:[ ]?[@]+[ ]?|[ ]?[(（\[【<{][ ]?(?i:at|a|艾特|爱特|圈a?|@|#|小老鼠)[ ]?[)）\]】>}][ ]?)"
_FANCY_AT = r"[ ]?(?:(?i:at)|[_-]at[_-]|艾特|爱特|埃特|圈a?|小老鼠|老鼠|[#*&$★☆●◎⊙○🐭🐁📧✉📮📩])[ ]?"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?"
# q u i e t @ 1 6 3 . c o m
_SPACED = r"(?i)(?-u:\b)(?:[A-Za-z0-9._-][ ]){3,40}@(?:[ ][A-Za-z0-9-])+[ ]\.[ ](?:c[ ]o[ ]m|c[ ]n|n[ ]e[ ]t)(?-u:\b)"
_EMAIL = rf"(?i){_USER}{_AT}(?:(?:{_HOST}{_DOT}){{1,4}}{_TOP}(?-u:\b)|(?:{_HOST}\.){{1,4}}[a-z]{{2,10}}(?-u:\b))"
# Sign and dot both spelt: no provider need be named.
_IN_WORDS = (
    rf"(?i)(?-u:\b){_USER}[ ]?(?:(?-u:\b)at(?-u:\b)|艾特|爱特|埃特|圈a?|小?老鼠)[ ]?"
    rf"(?:{_HOST}[ ]?(?:(?-u:\b)dot(?-u:\b)|点)[ ]?){{1,3}}{_TOP}(?-u:\b)"
)
_DISGUISED = (
    rf"(?i)(?-u:\b){_USER}(?:{_FANCY_AT}|{_AT}){_PROVIDER}(?:{_DOT}(?:com|cn|net|org|hk|tw)(?:{_DOT}cn)?(?-u:\b))"
)
# "abc123@163": nobody but a mail provider is called so.
_CUT_SHORT = (
    rf"(?i){_USER}(?:{_AT}|[ ]?艾特[ ]?|圈a)"
    rf"(?:q ?q|163|126|139|189|sina|gmail|foxmail|outlook|hotmail|扣扣|企鹅)(?:邮箱|{_DOT}com)?"
)

_PATH = r"[A-Za-z0-9\-._~:/?#@!$&'()*+,;=%]"
_URL = (
    rf"(?i)(?:(?:h[tx]{{2}}ps?|ftp|weixin|alipays?|taobao|snssdk\d*|zhihu|bilibili|magnet)(?:[:：]//?|:\?){_PATH}*[A-Za-z0-9/=&_-]"
    rf"|(?-u:\b)www\.(?:{_HOST}\.)+[a-z]{{2,6}}(?:[:/]{_PATH}*[A-Za-z0-9/=&_-])?"
    rf"|(?-u:\b)(?:{_HOST}\.)+(?:com|cn|net|org|edu|gov|top|vip|xyz|cc|io|hk|tw|online|site|shop|store|link|fun|wiki|club|icu|ltd)(?-u:\b)(?:[:/](?:{_PATH}*[A-Za-z0-9/=&_-])?)?"
    rf"|(?-u:\b)(?:{_HOST}\.)+[a-z]{{2,6}}/{_PATH}*[A-Za-z0-9/=&_-])"
)
_SPELT = (
    rf"(?i)(?-u:\b)(?:(?:www|三w){_DOT})?(?:{_HOST}{_DOT}){{1,3}}(?:com|cn|net|org)(?-u:\b)"
    rf"(?:/{_PATH}*[A-Za-z0-9/=&_-])?"
)


def find_links(texts: pl.Series) -> pl.DataFrame:
    """E-mail addresses and links in folded texts, as a frame of SPANS."""
    email = pl.col("hit").str.to_lowercase().str.replace_all(_AT, "@").str.replace_all("[^a-z0-9@._+-]", "")
    emails = [
        spans(matches(texts, pattern), "email", email)
        for pattern in (_EMAIL, _DISGUISED, _IN_WORDS, _CUT_SHORT, _SPACED)
    ]
    url = (
        pl.col("hit")
        .str.to_lowercase()
        .str.replace("^(?:h[tx]{2}ps?[:：]//?)?(?:www\\.)?", "")
        .str.strip_chars_end("/")
    )
    urls = [spans(matches(texts, pattern), "url", url) for pattern in (_URL, _SPELT)]
    return gather([*emails, *urls])
