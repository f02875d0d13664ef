"""How every id and pseudonym is made. One place, so that two stages never name the same thing twice.

========  ===============================  =======================
what      form                             example
========  ===============================  =======================
post      ``source:source_id``             ``psyqa:4394``
answer    ``post_id/hash of its text``     ``psyqa:4394/9f2c01ab``
dialogue  ``source:source_id``             ``smile:10071``
round     ``dialogue_id#n``, n from 1      ``smile:10071#3``
candidate ``round/n``, n from 1            ``smile:10071#3/2``
author    ``u_`` + 16 hex digits of HMAC   ``u_5be1…``
========  ===============================  =======================
"""

import hashlib
import hmac


def digest(text: str | memoryview, length: int = 16) -> str:
    """The first `length` hex digits of the SHA-256 of `text` (UTF-8; lone surrogates survive as they are)."""
    utf8 = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hashlib.sha256(utf8).hexdigest()[:length]


def source_row_id(source: str, source_id: str | int) -> str:
    """The id of a post or a dialogue: ``source:source_id``."""
    return f"{source}:{source_id}"


def answer_id(post_id: str, text: str) -> str:
    """The id of an answer that its source gives none: it follows the text, not the place in the list.

    So an answer keeps its id when a newer export of the set puts another one in front of it.
    """
    return f"{post_id}/{digest(text, 8)}"


def round_id(dialogue_id: str, number: int) -> str:
    """The id of round `number` (from 1) of a dialogue."""
    return f"{dialogue_id}#{number}"


def candidate_id(dialogue_id: str, number: int, candidate: int) -> str:
    """The id of a candidate (from 1) of a round (from 1) of a dialogue, and of its labels."""
    return f"{round_id(dialogue_id, number)}/{candidate}"


def parse_candidate_id(text: str) -> tuple[str, int, int]:
    """The dialogue, the round and the number of a candidate, of its id."""
    dialogue_id, _, numbers = text.rpartition("#")
    number, candidate = map(int, numbers.split("/"))
    return dialogue_id, number, candidate


def stable_int(text: str) -> int:
    """A number in [0, 2^63) that follows from `text` alone: an index that no new row can shift."""
    return int(digest(text, 16), 16) >> 1


def unit_interval(*parts: str | int) -> float:
    """A number in [0, 1), uniform over the keys `parts`: seeded randomness that no other row can move."""
    # 53 bits, as many as a float holds: with 64 the greatest digests would round up to 1.
    return (int(digest("\x1f".join(map(str, parts)), 16), 16) >> 11) / 2**53


def pseudonym(source: str, author: str, key: bytes) -> str:
    """The pseudonym of an author: HMAC-SHA-256 under `key`, so that without the key no list of names can undo it.

    Raises ValueError for a key of fewer than 16 bytes.
    """
    return "u_" + keyed_digest(key, source, author)[:16]


def keyed_digest(key: bytes, *parts: str) -> str:
    """64 hex digits of the HMAC-SHA-256 of `parts` under `key`: nobody without the key can work them out.

    Raises ValueError for a key of fewer than 16 bytes.
    """
    if len(key) < 16:
        raise ValueError("the author key must have at least 16 bytes")
    return hmac.new(key, "\x1f".join(parts).encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
