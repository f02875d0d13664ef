"""Chinese text as words, by jieba: 感觉到 is no 感觉, and 目前妻子 no 前妻.

All of ours that needs jieba comes here. jieba itself keeps its dictionary, read once, in a file of the shared temporary
folder, and believes whatever lies there: so we read it as it is installed, which takes a fifth of a second longer, and
no file of ours or of anybody else decides where words end.
"""

from functools import cache
from typing import Any


def words(text: str) -> list[str]:
    """The words of a text, in order; together they are the text."""
    return list(_tokenizer().cut(text))


@cache
def _tokenizer() -> Any:
    import jieba

    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True  # else it looks for its cache
    return tokenizer
