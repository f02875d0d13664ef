"""Chinese text as words, by jieba: 感觉到 is no 感觉, and 目前妻子 no 前妻."""

import logging
from functools import cache
from typing import Any


def words(text: str) -> list[str]:
    """The words of a text, in order; together they are the text."""
    return list(_jieba().cut(text))


@cache
def _jieba() -> Any:
    import jieba

    jieba.setLogLevel(logging.WARNING)  # it tells of its dictionary on stderr
    jieba.initialize()
    return jieba
