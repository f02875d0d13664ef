"""Texts to search: families of near-duplicates, short ones and odd ones, drawn from a seed."""

from random import Random

CHARACTERS = "我最近总是睡不着觉心里很乱不知道该怎么办才好你愿意多说一点吗听起来这段时间真的辛苦了"
ODD = ["", "我", "我失眠", "好累啊", "a", "🙂🙂", "a\x00b", "\n", "é" * 9, "哈" * 300]


def sentence(random: Random, length: int) -> str:
    return "".join(random.choices(CHARACTERS, k=length))


def edited(text: str, random: Random, n_edits: int) -> str:
    characters = list(text)
    for _ in range(n_edits):
        characters[random.randrange(len(characters))] = random.choice(CHARACTERS)
    return "".join(characters)


def families(n: int, seed: int = 0) -> list[str]:
    """`n` originals of 40 to 90 characters and up to four edited copies of each, all different; and odd texts."""
    random = Random(seed)
    texts = list(ODD)
    for _ in range(n):
        original = sentence(random, random.randint(40, 90))
        texts += [original, *(edited(original, random, random.randint(1, 3)) for _ in range(random.randint(0, 4)))]
    return list(dict.fromkeys(texts))


POOL = families(8)
