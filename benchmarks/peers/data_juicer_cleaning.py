"""Data-Juicer's operators that come nearest to our cleaning chain, one after the other (see README.md)."""

from collections import defaultdict
from typing import Any

import data_juicer_alone  # first: what it changes must hold before the operators are imported
import emoji
import pyarrow as pa
from data_juicer.ops.deduplicator import DocumentDeduplicator
from data_juicer.ops.filter import AlphanumericFilter, TextLengthFilter
from data_juicer.ops.mapper import (
    ChineseConvertMapper,
    CleanEmailMapper,
    CleanHtmlMapper,
    CleanIpMapper,
    CleanLinksMapper,
    FixUnicodeMapper,
    RemoveSpecificCharsMapper,
    ReplaceContentMapper,
    WhitespaceNormalizationMapper,
)
from measure import cpu_seconds, run

MIN_LENGTH, MIN_SHARE = 20, 0.5
ARTEFACTS = [
    r"//@[^:：\s]{1,30}[:：]",
    r"@[\w\-]{2,30}",
    r"#[^#\s]{1,40}#",
    r"\[[一-龥A-Za-z0-9]{1,6}\]",
    r"展开全文|收起全文|查看图片|网页链接|转发微博|点击查看更多|来自 ?\w{1,12}客户端|(?:发布|编辑)于 ?[\d\-: ]{4,20}",
]
MOBILE = r"(?<!\d)1[3-9]\d[ \-]?\d{4}[ \-]?\d{4}(?!\d)"
EMOJI = sorted({character for sequence in emoji.EMOJI_DATA for character in sequence} - set("0123456789#*©®™"))

seconds: dict[str, float] = defaultdict(float)


def operators(setting: str) -> list[Any]:
    contact = [CleanEmailMapper(), CleanIpMapper(), ReplaceContentMapper(MOBILE, "[电话]")]
    return [
        FixUnicodeMapper(),
        CleanLinksMapper(),
        CleanHtmlMapper(),
        *(contact if setting == "contact" else []),
        ReplaceContentMapper(ARTEFACTS, ""),
        RemoveSpecificCharsMapper(EMOJI),
        WhitespaceNormalizationMapper(),
        ChineseConvertMapper("tw2s"),
        TextLengthFilter(min_len=MIN_LENGTH),
        AlphanumericFilter(min_ratio=MIN_SHARE),
        DocumentDeduplicator(turbo=True),
    ]


def clean(table: pa.Table, setting: str) -> list[int]:
    """The rows that the chain keeps."""
    seconds.clear()
    rows = data_juicer_alone.dataset(table)
    for operator in operators(setting):
        start = cpu_seconds()
        rows = operator.run(rows)
        seconds[operator._name] += cpu_seconds() - start
    return rows["row"][:]


if __name__ == "__main__":
    run(clean, data_juicer_alone.numbered, lambda: {"seconds_by_operator": seconds})
