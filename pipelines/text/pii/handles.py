"""Where somebody is on the net: e-mail addresses and links, QQ, WeChat, any other account, a mention."""

import polars as pl

from pipelines.text.lexicon import lexicon
from pipelines.text.pii.numbers import digits_of, is_hotline
from pipelines.text.pii.patterns import CHINESE_DIGITS, DIGIT, SEPARATOR, STRONG, WEAK
from pipelines.text.pii.spans import NONE, gather, matches, spans


def _platforms(*lists: str) -> str:
    names = "|".join(name for one in lists for name in lexicon("platforms", __file__)[one])
    return f"(?:{names})".replace(r"\b", r"(?-u:\b)")


_CHINESE = "".join(CHINESE_DIGITS)
_GAP = r"[ .·|丨\-_/]{0,2}"  # inside a cue: 微 信, q-q
_ADD = r"[+➕加佳嘉伽家茄][ ]?(?:我|个|一下|下)?的?"

_QQ = (
    rf"(?:(?-u:\b)q{_GAP}q(?:[小大]号)?|qiu ?qiu|扣扣|抠抠|叩叩|寇寇|蔻蔻|口口|可口|扣[我1一]|球球|秋秋|求求|丘丘|"
    rf"小?企鹅|鹅号|🐧|腾讯号?|(?-u:\b)q[ ]?(?:我|[:：号群裙是])?|[扣抠叩蔻][号群裙]|"
    rf"{_ADD}[q扣抠叩蔻]|群号?|裙号?|君羊)"
)
# Letters that look or sound like 微, what stands for 信, and what the green bubble is called.
_WECHAT_WORD = (
    r"(?:(?:[微薇威维徽危围葳崴溦嶶卫v∨√丷w]|\\/)[ .·|丨\-❤♥]{0,2}?"
    r"(?:信|讯|❤|♥|💕|💗|💖|💚|🧡|心|芯|欣|新号|xin|x)|"
    rf"(?-u:\b)[vw]{_GAP}x|we ?i? ?chat|w ?e ?i ?x ?i ?n|weix|wei?信|微亻言|绿泡泡?|绿色软件|绿聊|卫星|🛰)"
)
_WECHAT = (
    rf"(?:{_WECHAT_WORD}|{_ADD}(?:[微薇威维徽卫溦]|v(?-u:\b))|[加➕]v|[微薇威徽溦]号|(?-u:\b)v号|"
    r"(?:我|的|同)(?:[微薇威徽溦]|v(?-u:\b))|[微薇徽溦]|(?-u:\b)v(?: ?[:：]|我| )|[微威] ?[:：])"
)
# Who asks to be added adds an id: digits are a QQ number, letters a WeChat id.
_ANYWHERE = r"(?:[加➕+]我(?:好友)?|加好友|联系方式|联系我|私我|找我|滴滴我|dd我)(?:[:：=，, \n]|是|为|聊|吧|哦){0,4}"
_SOCIAL = _platforms("social")
_PLATFORM = _platforms("social", "other")
_NICKNAMED = _platforms("social", "nicknamed")
_NAME = r"(?: ?(?:名字|好友码|名称|名|号|id|昵称|用户名|[账帐]号|handle|tag))"
_GLUE = rf"(?:{STRONG}|{WEAK}){{0,8}}"
# Whatever they say in between, in the same breath.
_NEAR = r"[^A-Za-z0-9@。！？!?\n\[\]]{0,10}"
_FAR = r"[^A-Za-z0-9@。！？!?\n\[\]]{0,20}"
# An id may have the line in it spelt out, and Chinese digits.
_LINE = r"(?:[-_.]{0,2}|[(（]?下[划横]线[)）]?|underscore)"
# A picture as well, right behind a cue, unless it announces another number.
_PICTURE = r"[-_.]?[\p{Extended_Pictographic}--[0-9#*🐧☎📞📱📲📧✉]]{1,2}(?:[-_.][A-Za-z0-9]|[0-9a-pr-ux-z])"
_ID = rf"_?[A-Za-z0-9](?:{_LINE}[A-Za-z0-9{_CHINESE}]){{3,24}}_?(?:#[0-9]{{4}})?"
_PICTURED = rf"_?[A-Za-z0-9](?:[-_.]{{0,2}}[A-Za-z0-9]){{1,24}}{_PICTURE}(?:{_LINE}[A-Za-z0-9]){{0,24}}"
_SPACED_ID = r"[A-Za-z](?: [A-Za-z0-9_-]){5,19}"
_NUMBER = rf"[1-9{_CHINESE}](?:{SEPARATOR}{{0,2}}{DIGIT}){{4,11}}"
_UNIT = (
    r"^ ?(?:多|余|几|来)?"
    r"(?:个|人|元|块|岁|年|月|日|天|次|分|万|亿|位|条|%|％|小时|公里|米|斤|级|粉|名|字|步|[wk](?:[^a-z]|$))"
)
_SHORT = 6  # digits; a longer number is no amount, unless of money
_ORDER = r"^[^\p{L}\p{N}]{0,2}(?:这)?(?:就)?是(?:我的?)?(?:订单|单号|编号)"
_CLOSED = r"(?:号码?)?[ ]?(?:[^\p{L}\p{N}@]|联系|$)"
_POINTS_BACK = r"[ ,，:：]{0,2}(?:[(（][ ]?|(?:这个?)?就?是|我的?|加我?|[ ,，])(?:我|本人)?的?"

# Words that follow "WeChat" without being an id.
_WORDS = (
    r"(?i)^(?:app|https?|www|qq|wechat|weixin|emoji|iphone|ipad|android|windows|moments|video|group|message|official|"
    r"online|account|friend|the|that|this|not|just|very|going|what|when|with|have|from|because|yesterday|today)"
)

# Without one of these no nickname is announced. No boundaries, which would make the search slow.
_ANNOUNCED = rf"(?i){_NICKNAMED}|网名|昵称|笔名|用户名|id|同[名号]".replace(r"(?-u:\b)", "")
# 百度[过这是一种睡眠障碍]: what is searched for; 微博[小号]; 微博：[快生日了许愿得个…]: what it says.
_CLAUSE = r"^\p{Han}*[的了我你他她这是被过]\p{Han}*$|^[小大]号"
_LONG_CLAUSE = r"^\p{Han}*了\p{Han}{8,}$"
# What nicknames are made of; blanks between what is not Chinese.
_KANA = r"\p{Hiragana}\p{Katakana}ー・゛゜"
_NICK = rf"[\p{{Han}}A-Za-z0-9_\-·°{_KANA}]"
_NICKNAME = rf"(?:[A-Za-z0-9_{_KANA}] [A-Za-z0-9_{_KANA}]|{_NICK}){{2,14}}"
_SAYS = r"(?:[:： ]|(?:一直|以前|现在|曾经|原来)?[也就都还]{0,2}(?:是|叫做?)|为)"
_STATED = (
    rf"(?:{_NICKNAMED}[上里的]?(?:名字|网名|昵称|用户名|名称|名|id){_SAYS}?|(?:网名|昵称){_SAYS}|"
    rf"(?:(?:^|[^\p{{L}}\p{{N}}])(?:网名|昵称|笔名)|(?:[我他她你]|ta)的?(?:网名|昵称|笔名|用户名|id)){_SAYS}?|"
    rf"{_NICKNAMED}[上里的]{{1,2}}叫做?|"
    rf"{_SOCIAL}[上里的]?(?:[账帐][号户]|用户名)(?:[:：]|是|叫做?|为)|(?-u:\b)id(?:[:：]|是|叫做?)|{_SOCIAL}[上里的]?(?:[:：]|叫做?)|(?:我的?|关注){_SOCIAL}(?:[上里的]?(?:网名|昵称|用户名|名字|id))?{_SAYS}?)"
)
# Stated less plainly: looked for, or called the same in several places.
_SOUGHT = rf"{_SOCIAL}(?:[上里]?(?:直接|可以|能)?(?:搜索?|搜一下|找)[:：]? ?|[上里的]?[账帐][号户] ?)"
_EVERYWHERE = (
    rf"(?:{_SOCIAL}(?:(?:和|跟|与|[、/,，&+ ]){{1,2}}{_SOCIAL})*|[全各](?:大|个)?(?:网|平台)|平台)"
    r"(?:账号)?[都也全]{0,2}同[名号][:：=，, ]{0,2}(?:都?[是叫])?"
)
# What makes of a phrase the name of somebody who can be found there, and what does not.
_FOLLOWED = "我|关注|私信|联系|欢迎|主页|记录|日常|更新|粉丝|直播|互关"
_SUBJECT = (
    "怎么|如何|什么|为什么|哪|攻略|教程|方法|自测|测试|症状|推荐|视频|帖子|文章|关键词|话题|^了|^过|^到|^的|^也|^都|^一下|"
    "[了的吗呢吧]$|^被|^异常|^密码|^违规|^注销|^登录|^里|^上|^没"
)
# A phrase that goes on behind a name: @半山听雨2014|回答过我.
_GOES_ON = (
    r"^(.{2,}?)(?:(?:回答|回复|回了|评论|转发|私信|关注|点赞|点评|说过|骂|怼|写过|写的|发的|发了|发过|分享)(?:[过了的我你他她]|$)|"
    r"[给跟对](?:我|他|她|大家)|(?:的|这个)(?:主页|博主|视频|文章|回答|帖子|微博))"
)

# What a nickname does not start with, nor end with.
_PROSE = (
    r"^[我你他她它们不没被用谁什怎哪这那很都就也是有在一起叫改密取换设注和或与要会能可应写后前太真忘填输重]|"
    r"^[0-9]+$|[的了吗呢吧好]$"
)
_QUESTION = (
    r"^(?:什么|啥|谁|怎|没|不是|不出|[我你他她它]的|[他她它]|[我你他她]$|[我你他她](?:[不没都去来也]|爸|妈)|别人|人|队友|朋友|同学|大家|客服|室友|"
    r"老公|老婆|师傅|外卖|了|过|一个|一声)|^[0-9]+$|[吗呢]$"
)
# Whom a mention does not name.
_NOBODY = r"^(?:我|你|他|她|它|ta|TA|所有人|全体成员|一下|了|大家|题主|楼主|楼上|某人|谁|别人)(?:$|[^A-Za-z0-9])"


def find_handles(texts: pl.Series) -> pl.DataFrame:
    """QQ numbers, WeChat ids, account names and mentions in folded texts, as a frame of SPANS."""
    accounts = matches(texts, _ID, cue=rf"(?i:{_PLATFORM}{_NAME}?{_GLUE})").filter(_is_id())
    # The name of a mailbox without the rest of the address.
    cue = rf"(?i:(?:邮箱|电邮|(?-u:\b)e-?mail|(?-u:\b)gmail|hotmail|outlook)(?:{STRONG}|[ ]){{1,3}})"
    mailboxes = matches(texts, _ID, cue=cue).filter(_is_id() & ~pl.col("after").str.contains("^ ?[@.]"))
    # Passports and permits have no check digit.
    cue = rf"(?:护照|通行证|回乡证|台胞证|军官证|驾驶证|驾照|居留证|身份证)(?:号码?|编号)?(?:{STRONG}|[ ]){{0,3}}"
    papers = matches(texts, r"[A-Za-z]{1,2}[0-9]{6,9}(?:[(（][0-9A][)）])?", cue=cue)
    named = spans(accounts, "account"), spans(mailboxes, "email"), spans(papers, "id_card")
    return gather([_qq(texts), _wechat(texts), *named, _mentions(texts)])


def _qq(texts: pl.Series) -> pl.DataFrame:
    after_cue = matches(texts, _NUMBER, cue=rf"(?i:{_QQ}{_GLUE}|{_ANYWHERE})")
    near_cue = matches(texts, "[1-9][0-9]{6,10}", cue=rf"(?i:{_QQ}{_NEAR})")
    before_cue = matches(texts, _NUMBER, tail=rf"(?i:{_POINTS_BACK}{_QQ}{_CLOSED})")
    digits = digits_of(pl.col("hit"))
    other = rf"^[0-9]|{_ORDER}"
    sum_or_decimal = pl.col("hit").str.contains(r"[=+%<>]|^[0-9]+\.[0-9]+$")
    # 274903158一起玩: the last is a word's.
    hit = pl.col("hit")
    words = hit.str.contains("^[0-9 -]{6,}一$") & pl.col("after").str.contains(r"^\p{Han}")
    real = ~_amount(digits) & ~pl.col("after").str.contains(other) & ~sum_or_decimal & ~is_hotline(digits)
    end = pl.col("end") - pl.when(words).then(len("一".encode())).otherwise(0)
    cut = {"hit": pl.when(words).then(hit.str.head(-1)).otherwise(hit), "end": end}
    return gather(
        spans(hits.filter(real).with_columns(**cut), "qq", digits) for hits in (after_cue, near_cue, before_cue)
    )


def _amount(digits: pl.Expr) -> pl.Expr:
    short = (digits.str.len_chars() <= _SHORT) & pl.col("after").str.contains(_UNIT)
    return short | pl.col("after").str.contains("^ ?(?:元|块)")


def _wechat(texts: pl.Series) -> pl.DataFrame:
    after_cue = matches(texts, rf"(?:{_PICTURED}|{_ID}|{_NUMBER}|{_SPACED_ID})", cue=rf"(?i:{_WECHAT}{_GLUE})")
    given = matches(texts, "(?i:wxid)_[A-Za-z0-9_-]{6,}")  # by WeChat itself
    anywhere = matches(texts, rf"(?:[A-Za-z]{_ID})", cue=rf"(?i:{_ANYWHERE})")
    near_cue = matches(texts, rf"[A-Za-z]{_ID}", cue=rf"(?i:(?:{_WECHAT_WORD}|{_ADD}[微薇威v]){_FAR})")
    before_cue = matches(texts, _ID, tail=rf"(?i:{_POINTS_BACK}{_WECHAT}{_CLOSED})")
    back_near = matches(texts, rf"[A-Za-z]{_ID}", tail=rf"(?i:{_NEAR}(?:[微薇]信|(?-u:\b)[vw]x))")
    # Not announced, so it must look like an id: letters and digits, or a line.
    long = pl.col("hit").str.len_chars() >= 6
    looks = pl.col("hit").str.contains(r"^[A-Za-z_-]+[0-9_][A-Za-z0-9_-]{2,}$|^[A-Za-z]+_[A-Za-z0-9_-]+$") & long
    # Letters alone are an id after a Chinese cue; after an English one they may be the next word.
    chinese = pl.col("cue").str.contains(r"\p{Han}|(?i:[vw] ?x)") & long
    announced = [
        after_cue.filter(_is_id(or_where=chinese)),
        given,
        *(one.filter(_is_id()) for one in (anywhere, before_cue)),
    ]
    near = [one.filter(_is_id() & looks) for one in (near_cue, back_near)]
    return spans(pl.concat([*announced, *near]), "wechat")


def _is_id(or_where: pl.Expr | None = None) -> pl.Expr:
    """An id and no word: a digit or a line in it, or a sign before it that says so."""
    announced = pl.col("cue").str.contains(rf"(?i){STRONG}[^\p{{L}}\p{{N}}]*$")
    announced |= pl.col("cue").str.contains(r"(?i)(?:用户名|登录名|handle|(?-u:\b)u/) ?$")
    announced |= pl.col("before").str.contains(r"(?i)(?-u:\b)(?:my|user ?name) ?[a-z ]{0,16}(?-u:\b)is $")
    version = pl.col("hit").str.contains(r"^[0-9.]{1,4}$|^[0-9]+(?:\.[0-9]+)+$")
    mixed = pl.col("hit").str.contains(r"[0-9_]|下[划横]线") & ~version
    likely = mixed | announced | (pl.lit(False) if or_where is None else or_where)
    number = pl.col("hit").str.contains("^[0-9]+$")
    amount = number & _amount(pl.col("hit"))
    line = number & is_hotline(pl.col("hit"))
    qq = pl.col("hit").str.contains(r"^(?i:qq?)[0-9]{5,}$")
    return likely & ~qq & ~pl.col("hit").str.contains(_WORDS) & ~amount & ~line


def find_nicknames(texts: pl.Series) -> pl.DataFrame:
    """Accounts with a Chinese name, which must be announced as a name."""
    rows = texts.str.contains(_ANNOUNCED).arg_true()
    if rows.is_empty():
        return NONE
    texts = texts.gather(rows)
    opening = rf"(?i:{_SOCIAL}{_NAME}?(?:是|叫做?|搜索?)?[:： ]?[“「『【\"])"
    quoted = matches(texts, r"[^\n“”「」『』【】\"]{2,20}", cue=opening, tail='[”」』】"]')
    # One search for all: the automaton of a nickname is large.
    cue = rf"(?i:(?:{_STATED}|{_SOUGHT}|{_EVERYWHERE})[ ]?)"
    hits = matches(texts, _NICKNAME, cue=cue, tail=r"(?:[^\p{L}\p{N}]|$)").with_columns(
        sought=pl.col("cue").str.contains(rf"(?i)^(?:{_SOUGHT}) ?$"),
        everywhere=pl.col("cue").str.contains("同[名号]"),
    )
    stated = hits.filter(~pl.col("sought") & ~pl.col("everywhere"))
    followed = pl.col("after").str.contains(_FOLLOWED)
    sought = hits.filter("sought", followed, ~pl.col("hit").str.contains(f"{_SUBJECT}|{_CLAUSE}"))
    like_id = pl.col("hit").str.contains(r"^[A-Za-z0-9 _-]*[A-Za-z][A-Za-z0-9 _-]*$")
    announced = pl.col("cue").str.contains("[:：=是叫] ?$") & ~pl.col("hit").str.contains(_QUESTION)
    followed &= ~pl.col("hit").str.contains(f"{_FOLLOWED}|{_PROSE}")
    everywhere = hits.filter("everywhere", like_id | announced | followed)
    # What one looks for in quotation marks is a person where one is to follow or to write to it.
    subject = pl.col("cue").str.contains("搜") & ~pl.col("after").str.contains("我|关注|私信|联系")
    after_colon = pl.col("cue").str.contains('(?:[:：“「『【"]|叫做?|id ?[是叫]|id ) ?$')
    prose = pl.col("hit").str.contains(pl.when(after_colon).then(pl.lit(_QUESTION)).otherwise(pl.lit(_PROSE)))
    prose |= pl.col("cue").str.contains("id $") & pl.col("hit").str.contains("[了的]$")
    named = pl.col("cue").str.contains("(?:名|昵称) ?$")
    prose |= pl.col("hit").str.contains(
        pl.when(after_colon | named).then(pl.lit(_LONG_CLAUSE)).otherwise(pl.lit(_CLAUSE))
    )
    plain = [spans(hits.filter(~prose & ~subject), "account") for hits in (quoted, stated.select(quoted.columns))]
    accounts = gather([*plain, spans(sought, "account"), spans(everywhere, "account")])
    return accounts.with_columns(row=rows.gather(accounts["row"]).cast(pl.UInt32))


def _mentions(texts: pl.Series) -> pl.DataFrame:
    hits = matches(texts, rf"{_NICK}{{1,30}}", cue="@")
    if hits.is_empty():
        return NONE
    # Nobody has a name of eleven Chinese characters: a sentence follows without a blank, the name ends at its pronoun.
    sentence = pl.col("hit").str.count_matches(r"\p{Han}") > 10
    name = pl.when(sentence).then(pl.col("hit").str.extract("^([^你我他她您咱]{2,5})[你我他她您咱]")).otherwise("hit")
    hits = hits.with_columns(hit=name).drop_nulls("hit")
    hits = hits.with_columns(hit=pl.coalesce(pl.col("hit").str.extract(_GOES_ON), "hit"))
    address = pl.col("before").str.contains(r"[A-Za-z0-9._%+-]@$") & pl.col("hit").str.contains("^[A-Za-z0-9]")
    hits = hits.filter(pl.col("hit").str.contains(r"[\p{L}\p{N}]") & ~pl.col("hit").str.contains(_NOBODY) & ~address)
    # Beside the platform it is part of how an account is written; elsewhere it makes a mention of what follows.
    beside = rf"(?i){_PLATFORM}(?:用户名?|[账帐]号|号|名|id|昵称|博主)?[:：]? ?@$"
    sign = pl.col("before").str.contains(beside).cast(pl.Int64)
    end = pl.col("start") + pl.col("hit").str.len_bytes().cast(pl.Int64)
    return spans(hits.with_columns(start=pl.col("start") - sign, end=end), "account")


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
    lower = pl.col("hit").str.to_lowercase()
    url = lower.str.replace("^(?:h[tx]{2}ps?[:：]//?)?(?:www\\.)?", "").str.strip_chars_end("/")
    urls = [spans(matches(texts, pattern), "url", url) for pattern in (_URL, _SPELT)]
    return gather([*emails, *urls])
