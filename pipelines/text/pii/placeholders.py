"""What stands where personal data stood: `[电话]`, `[电话2]`, `[姓名]` …

The n-th different value of a kind inside one post carries n, from 2 on; every later step leaves these words alone.
"""

from types import MappingProxyType

from schemas.labels import PII_KINDS

NAMES = MappingProxyType(
    {
        "phone": "电话",
        "qq": "QQ",
        "wechat": "微信",
        "email": "邮箱",
        "id_card": "身份证",
        "bank_card": "银行卡",
        "licence_plate": "车牌",
        "url": "网址",
        "account": "账号",
        "name": "姓名",
        "school": "学校",
        "employer": "单位",
        "hospital": "医院",
        "address": "地址",
    }
)
assert set(NAMES) == set(PII_KINDS), "a kind without a placeholder"

# What is left of a turn that held nothing but an emoji: no personal data, but a word that cleaning keeps as well.
EMOTICON = "[表情]"

# A placeholder of a kind: its name (group 1) and its number (group 2, empty for the first). Without groups: PATTERN.
NAMED = rf"\[({'|'.join(NAMES.values())})([2-9]|[1-9][0-9]+)?\]"

# Whatever cleaning keeps as it is. No group, no look-around: for Rust's regex and Python's alike.
PATTERN = rf"\[(?:(?:{'|'.join(NAMES.values())})(?:[2-9]|[1-9][0-9]+)?|表情)\]"
