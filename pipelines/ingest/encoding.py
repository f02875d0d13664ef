"""The text of a file: its encoding is detected by evidence, and a file with too little evidence is refused.

A byte-order mark decides; then strict UTF-8. What is neither is decoded, strictly, as each encoding that Chinese
files come in, and judged by how many of its characters are the language's most frequent ones. GB 18030 accepts
nearly any Big5 file, and the other way round, so that a decoder's consent says little; the share of frequent
characters is about 0.3 in the right encoding and under 0.05 in the wrong one.
"""

import codecs

from pipelines.errors import UnreadableFile

CANDIDATES = ("gb18030", "big5hkscs", "utf-16-le", "utf-16-be")

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_FREQUENT = frozenset(
    "，。！？：；“”、「」的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里"
    "所去行过家十用发天如然作方成者多日都三小军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从知使想什因很给情让问题候"
    "感觉啊吗呢吧這為來個們說國時於對裡過發無麼經當與學進種將還見沒從給讓問題覺嗎她它但被把或並并該该最更已比做"
)
_SAMPLE = 1 << 16
_MIN_SHARE = 0.1  # a text of Chinese has about 0.3
_MARGIN = 2.0  # the best must be this many times the next


def decode(data: bytes, *, where: object, stated: str | None = None) -> tuple[str, str]:
    """The text of a whole file, and its encoding: the `stated` one where it is known, and no other is tried.

    Raises UnreadableFile for bytes in no known encoding or in several alike; it names the first bad byte and `where`.
    """
    if stated is not None:
        is_utf8 = stated.lower().replace("-", "").replace("_", "") == "utf8"
        return _strictly(data, "utf-8-sig" if is_utf8 else stated, where)
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _strictly(data, encoding, where)
    wide = _wide_ascii(data[:_SAMPLE])
    if wide is not None:
        return _strictly(data, wide, where)
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        if _mostly_utf8(data):
            raise _refused("the file is UTF-8 with a damaged byte", error, data, where) from error
        return _chinese(data, error, where)


def _strictly(data: bytes, encoding: str, where: object) -> tuple[str, str]:
    try:
        return data.decode(encoding), encoding
    except LookupError as error:
        raise UnreadableFile(f"there is no encoding {encoding!r}", where=where, hint="name another") from error
    except UnicodeDecodeError as error:
        raise _refused(f"the file is not {encoding}, as stated", error, data, where) from error


def _wide_ascii(sample: bytes) -> str | None:
    """UTF-16 without a mark that holds mostly ASCII: to UTF-8 a file with every second byte zero."""
    if sample.count(0) * 4 < len(sample) or not sample:
        return None
    return "utf-16-be" if sample[::2].count(0) > sample[1::2].count(0) else "utf-16-le"


def _mostly_utf8(data: bytes) -> bool:
    text = data.decode("utf-8", "replace")
    damaged = text.count("\N{REPLACEMENT CHARACTER}")
    return sum(not char.isascii() for char in text) - damaged > 10 * damaged


def _chinese(data: bytes, error: UnicodeDecodeError, where: object) -> tuple[str, str]:
    shares = {encoding: _frequent_share(data[:_SAMPLE], encoding) for encoding in CANDIDATES}
    best, second, *_ = sorted(shares, key=lambda encoding: -shares[encoding])
    if shares[best] < _MIN_SHARE or shares[best] < _MARGIN * shares[second]:
        able = ", ".join(encoding for encoding in CANDIDATES if shares[encoding] > 0) or "none"
        what = f"the file is not UTF-8, and no other encoding stands out (candidates: {able})"
        raise _refused(what, error, data, where)
    return _strictly(data, best, where)


def _frequent_share(sample: bytes, encoding: str) -> float:
    """Share of frequent Chinese characters among those beyond ASCII; 0 where `encoding` cannot be."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample, final=False)
    except UnicodeDecodeError:
        return 0.0
    beyond_ascii = [char for char in text if not char.isascii()]
    return sum(char in _FREQUENT for char in beyond_ascii) / max(1, len(beyond_ascii))


def _refused(what: str, error: UnicodeDecodeError, data: bytes, where: object) -> UnreadableFile:
    offset = error.start + len(data) - len(error.object)  # a codec counts from behind the mark that it took off
    return UnreadableFile(
        f"{what}; byte {offset} (from 0) is the first that does not fit",
        where=where,
        hint="convert it to UTF-8 (iconv -f ENCODING -t UTF-8), or state `encoding` in a mapping file",
    )
