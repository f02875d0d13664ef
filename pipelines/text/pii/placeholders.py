"""What stands where personal data stood: `[电话]`, `[电话2]`, `[姓名]` …; in a post or dialogue in English `[phone]`.

The n-th different value of a kind inside one post carries n, from 2 on; every later step leaves these words alone.
"""

from types import MappingProxyType
from typing import TypeVar

import polars as pl

from schemas.labels import PII_KINDS

Text = TypeVar("Text", pl.Expr, pl.Series)

_CHINESE = "电话 QQ 微信 邮箱 身份证 银行卡 车牌 网址 账号 姓名 学校 单位 医院 地址"
_ENGLISH = "phone QQ WeChat email ID card plate link account name school employer hospital address"
NAMES = MappingProxyType(dict(zip(PII_KINDS, _CHINESE.split(), strict=True)))
ENGLISH_NAMES = MappingProxyType(dict(zip(PII_KINDS, _ENGLISH.split(), strict=True)))
# From a name to its kind.
KINDS = MappingProxyType({name: kind for names in (NAMES, ENGLISH_NAMES) for kind, name in names.items()})

# What is left of a turn that held nothing but an emoji: no personal data, but a word that cleaning keeps as well.
EMOTICON = "[表情]"

# A placeholder of a kind: its name (group 1) and its number (group 2, empty for the first). Without groups: PATTERN.
NAMED = rf"\[({'|'.join(KINDS)})([2-9]|[1-9][0-9]+)?\]"

# Whatever cleaning keeps as it is. No group, no look-around: for Rust's regex and Python's alike.
PATTERN = rf"\[(?:(?:{'|'.join(KINDS)})(?:[2-9]|[1-9][0-9]+)?|表情)\]"


def without_placeholders(text: Text, instead: str = "") -> Text:
    """`text` with something else, or nothing, in the place of each placeholder: the words of its writer alone."""
    return text.str.replace_all(PATTERN, instead)
