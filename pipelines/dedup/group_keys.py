"""Group keys: what puts rows into one group, so that no split tears them apart.

Exact keys, which the table `splits` remembers: a hash of a text's key (the same in any place), an author's pseudonym.
Soft keys, which are stored nowhere and must not move a row that has its split: texts that are nearly equal or equal but
for marks, and shared passages. Where a chain of nearly equal texts reaches from one split to another, its pairs have
keys and not the chain: what is in the middle is dropped. A passage in two splits is no key, and neither is a title, an
answer, a turn or a passage of very many rows: a form of a site, a reply that somebody pastes everywhere.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np
import polars as pl

from pipelines.core.arrow import Texts, arrow, buffers, decoded
from pipelines.core.kernels import Bytes, Keys, Places, Words, kernel, part
from pipelines.core.spill import slices
from pipelines.dedup.jaccard import similarities
from pipelines.dedup.search import Search, digests
from pipelines.split.splits import AUTHOR, Flags
from pipelines.text import keys
from pipelines.text.characters import every_character

HASHED = 70  # bytes under one hash
WINDOW = 15  # hashes of which one is kept
LENGTH = HASHED + WINDOW - 1  # a passage of so many bytes is always found
AT_ONCE = 1 << 22  # bytes
AT_A_TIME = 1 << 26  # bytes of text whose fingerprints are in memory at a time
# What stands in more texts or rows than these is a greeting, a form of a site, a song: it makes no two rows one story.
FORMULA = 50

_RING = 15  # so many hashes and one are held, WINDOW at least: a power of two, so that places go around by their bits
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd: no byte is lost in the sum


def passages(texts: Texts) -> pl.DataFrame:
    """The fingerprints of the passages of each text: `row` (UInt32), `passage` (UInt64), in the order of the text.

    Winnowing (Schleimer, Wilkerson and Aiken, SIGMOD 2003): of every WINDOW hashes side by side the smallest, the last
    one of equal ones. Texts that have LENGTH bytes in a row in common (28 Chinese characters) share a fingerprint;
    texts that have no HASHED in common share none. A text of fewer than LENGTH bytes, and a null, has none; any other
    about one for every 8 bytes.
    """
    rows, marks = _together(_fingerprints(texts))
    return pl.DataFrame({"row": rows, "passage": marks})


def _together(parts: Iterable[tuple[Words, Keys]]) -> tuple[Words, Keys]:
    rows, marks = zip((np.empty(0, np.uint32), np.empty(0, np.uint64)), *parts, strict=True)
    return np.concatenate(rows), np.concatenate(marks)


def _fingerprints(texts: Texts) -> Iterator[tuple[Words, Keys]]:
    """The rows and the fingerprints of `passages`, for some texts at a time."""
    before = 0
    series = texts if isinstance(texts, pl.Series) else pl.Series(arrow(texts))
    for some in slices(series.to_frame()):
        data, offsets = buffers(some.to_series())
        first = 0
        while first < len(offsets) - 1:
            last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + AT_ONCE, "right")) - 1)
            room = int(offsets[last] - offsets[first])  # there are fewer fingerprints than bytes
            rows, marks = np.empty(room, np.uint32), np.empty(room, np.uint64)
            n = _winnow_all(data, offsets, first, last, rows, marks)
            yield rows[:n] + np.uint32(before), marks[:n].copy()
            first = last
        before += some.height


@kernel
def _winnow_all(data: Bytes, offsets: Places, first: int, last: int, rows: Words, marks: Keys) -> int:
    n = 0
    for row in range(first, last):
        n_of_text = _winnow(data, offsets[row], offsets[row + 1], marks[n:])
        rows[n : n + n_of_text] = row
        n += n_of_text
    return n


@kernel
def _winnow(data: Bytes, start: int, stop: int, marks: Keys) -> int:
    """Fills `marks` with the fingerprints of the text `data[start:stop]`; returns how many there are."""
    hashes = np.zeros(_RING + 1, np.uint64)
    leaving = np.uint64(1)  # the factor of the byte that drops out of the sum
    for _ in range(HASHED):
        leaving *= _FACTOR
    total = smallest = np.uint64(0)
    at = kept = -1
    n_marks = 0
    for end in range(start, stop):
        total = total * _FACTOR + np.uint64(data[end])
        place = end - start - HASHED + 1
        if place > 0:
            total -= leaving * np.uint64(data[end - HASHED])
        if place < 0:
            continue
        mixed = _mixed(total)
        hashes[place & _RING] = mixed
        if at < 0 or mixed <= smallest:
            smallest, at = mixed, place
        elif place - at >= WINDOW:
            at = place - WINDOW + 1
            smallest = hashes[at & _RING]
            for i in range(at + 1, place + 1):
                if hashes[i & _RING] <= smallest:
                    smallest, at = hashes[i & _RING], i
        if place >= WINDOW - 1 and at != kept:
            kept = at
            marks[n_marks] = smallest
            n_marks += 1
    return n_marks


@part
def _mixed(value: np.uint64) -> np.uint64:
    value = (value ^ value >> np.uint64(32)) * np.uint64(0xD6E8FEB86659FD93)
    return value ^ value >> np.uint64(32)


def shared_passages(
    texts: pl.Series, scratch: Path | None, within: pl.Series | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Passages that stand in 2 to FORMULA of these texts, of those that stand in the same texts one: `passage` (a
    number), `row`, where one that repeats it may be several times; and `passage`, `key`: its soft key.

    Only passages of the texts `within` need be there, if they are given: of few, hardly any others are kept.
    """
    shares = int(texts.str.len_bytes().sum()) // AT_A_TIME + 1
    few = within is not None and within.str.len_bytes().sum() < AT_A_TIME
    wanted = np.full(int(_LAST_BITS) + 1, not few)  # by their last bits: few others have the same
    if few:
        wanted[_together(_fingerprints(within))[1] & _LAST_BITS] = True
    with ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile(dir=scratch)) for _ in range(shares)]
        for of_some in _fingerprints(texts):
            there = wanted[of_some[1] & _LAST_BITS]
            rows, marks = (column[there] for column in of_some)
            share_of = marks % np.uint64(shares)
            order = np.argsort(share_of, kind="stable")
            both = np.empty(len(rows), _FINGERPRINT)
            both["row"], both["mark"] = rows[order], marks[order]
            ends = np.cumsum(np.bincount(share_of.astype(np.int64), minlength=shares))
            for file, some in zip(files, np.split(both, ends[:-1]), strict=True):
                file.write(some.tobytes())  # `tofile` would not say that the disk is full
        found = [_shared(file, len(texts)) for file in files]
    keys_of = pl.concat([keys_of for _, keys_of in found]).group_by("passage").agg(pl.col("key").min())
    chosen = [rows.join(of.join(keys_of, on=of.columns), on="passage", how="semi") for rows, of in found]
    return pl.concat(chosen), keys_of.with_columns(key="p:" + pl.col("key"))


_LAST_BITS = np.uint64((1 << 24) - 1)
_FINGERPRINT = np.dtype([("row", np.uint32), ("mark", np.uint64)])


def _shared(file: IO[bytes], n_texts: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What `shared_passages` gives, of the fingerprints in a file alone; the key is the fingerprint in digits."""
    file.seek(0)
    both = np.fromfile(file, _FINGERPRINT)
    rows, marks = both["row"].copy(), both["mark"].copy()
    del both
    order = np.argsort(marks)
    starts, stops, sets = _sets(marks[order], rows[order], n_texts)
    runs = pl.DataFrame({"passage": sets, "start": starts, "stop": stops, "key": marks[order[starts]]})
    runs = runs.with_columns(pl.col("key").cast(pl.String))
    first = runs.group_by("passage").agg(pl.col("start", "stop").min_by("key"), pl.col("key").min())
    places = first.select("passage", place=pl.int_ranges("start", "stop")).explode("place")
    return places.select("passage", row=pl.Series(rows[order[places["place"]]])), first.select("passage", "key")


@kernel
def _sets(marks: Keys, rows: Words, n_rows: int) -> tuple[Places, Places, Keys]:
    """Of fingerprints in order those of 2 to FORMULA rows: where they start and stop, and a digest of their rows."""
    starts, stops = np.empty(marks.shape[0] // 2, np.int64), np.empty(marks.shape[0] // 2, np.int64)
    sets = np.empty(marks.shape[0] // 2, np.uint64)
    last = np.full(n_rows, -1, np.int64)  # the start of the fingerprint that each row was counted for last
    n, start = 0, 0
    while start < marks.shape[0]:
        stop, n_of, digest = start, 0, np.uint64(0)
        while stop < marks.shape[0] and marks[stop] == marks[start]:
            if last[rows[stop]] != start:
                last[rows[stop]] = start
                n_of += 1
                digest += _mixed((np.uint64(rows[stop]) + np.uint64(1)) * _FACTOR)
            stop += 1
        if 2 <= n_of <= FORMULA:
            starts[n], stops[n], sets[n] = start, stop, digest
            n += 1
        start = stop
    return starts[:n], stops[:n], sets[:n]


# A title or an opening of fewer characters says too little to make two rows one story: "你好", "好累", "hi".
TELLING = 10
# An answer or a later turn of as many characters is nobody's formula; a shorter one may be anybody's.
LONG = 50
SIMILAR = 0.8

_SOFT = {"row_id": pl.String, "key": pl.String}


def post_texts(posts: pl.DataFrame) -> pl.DataFrame:
    """The texts of posts that are keys: whole text, title, body and answers, the last three where long enough.

    Returns:
        `row_id`, `text` (normalised), `key`, `title`: whether the text is one, and `whole`: whether it is the first of
        its row. Every row has one that is.
    """
    row_id = pl.col("post_id").alias("row_id")
    answers = posts.select(row_id, answer="answers").explode("answer", empty_as_null=False)
    return _with_keys(
        posts.select(row_id, text=keys.key(pl.col("text"))),
        posts.select(row_id, text=_at_least(TELLING, keys.key(pl.col("title")))),
        posts.select(row_id, text=_at_least(TELLING, keys.key(pl.col("description")))),
        answers.select("row_id", text=_at_least(LONG, keys.key(pl.col("answer").struct.field("text")))),
        titles=1,
    )


def dialogue_texts(dialogues: pl.DataFrame) -> pl.DataFrame:
    """The texts of dialogues that are keys: their opening, and every turn that is long; columns as of `post_texts`.

    The opening is the first seeker turn that is long enough; where all of them are short, all of them together.
    """
    row_id, text = pl.col("dialogue_id").alias("row_id"), pl.col("text")
    turns = dialogues.select(row_id, turn="turns").explode("turn", empty_as_null=False).unnest("turn")
    turns = turns.select("row_id", "role", text=keys.key(text))
    seeker = turns.filter(role="seeker").group_by("row_id")
    telling = text.filter(text.str.len_chars() >= TELLING).first()
    openings = seeker.agg(text=pl.coalesce(telling, text.str.join("\n")))
    return _with_keys(
        dialogues.select(row_id).join(openings, on="row_id", how="left", maintain_order="left").fill_null(""),
        turns.select("row_id", text=_at_least(LONG, text)),
    )


def without_formulas(texts: pl.DataFrame) -> pl.DataFrame:
    """The texts of all posts and dialogues, without those of more than FORMULA rows that are no row's whole."""
    n_rows = pl.col("row_id").n_unique().over("key")
    return texts.filter(pl.col("whole") | (n_rows <= FORMULA))


def post_keys(posts: pl.DataFrame, texts: pl.DataFrame | None = None) -> pl.DataFrame:
    """`row_id`, `keys`: the exact keys of posts, of their texts (by default `post_texts`) and their authors."""
    authors = posts.drop_nulls("author").select(row_id="post_id", key=AUTHOR + pl.col("author"))
    texts = post_texts(posts) if texts is None else texts
    return _collected(pl.concat([texts.select("row_id", "key"), authors]))


def dialogue_keys(dialogues: pl.DataFrame, texts: pl.DataFrame | None = None) -> pl.DataFrame:
    """`row_id`, `keys`: the exact keys of dialogues, of their texts (by default `dialogue_texts`)."""
    return _collected(dialogue_texts(dialogues) if texts is None else texts)


def soft_keys(texts: pl.DataFrame, split_of: pl.DataFrame, search: Search, scratch: Path | None = None) -> pl.DataFrame:
    """`row_id`, `key`: the soft keys of rows; a row without any is not there.

    What is shared by rows alone that have their split already decides nothing, and is no key: so a day more costs what
    its own rows share.

    Args:
        texts: `row_id`, `text`, `key` and `title` of posts and dialogues together; titles are too short to be nearly
            equal.
        split_of: `row_id`, `split` of the rows that have their split already (`pipelines.split.splits.known_splits`).
        search: What finds near-duplicates.
        scratch: A folder for what need not be in memory.
    """
    texts = texts.filter(~pl.col("title") & (pl.col("text").str.len_chars() >= TELLING))
    texts = texts.join(split_of, on="row_id", how="left").select("row_id", "text", "key", "split")
    return pl.concat([_similar(texts, search), _sharing(texts, scratch), _equal_letters(texts)])


def _at_least(length: int, key: pl.Expr) -> pl.Expr:
    return pl.when(key.str.len_chars() >= length).then(key)


def _with_keys(*texts: pl.DataFrame, titles: int | None = None) -> pl.DataFrame:
    marked = [
        frame.with_columns(title=pl.lit(place == titles), whole=pl.lit(place == 0)) for place, frame in enumerate(texts)
    ]
    present = pl.concat(marked).drop_nulls("text")
    distinct = present.select("text").unique()
    distinct = distinct.with_columns(key="t:" + digests(distinct["text"]))
    return present.join(distinct, on="text", how="left", maintain_order="left")


def _collected(keys: pl.DataFrame) -> pl.DataFrame:
    return keys.group_by("row_id", maintain_order=True).agg(keys=pl.col("key").unique(maintain_order=True))


_SPLITS = pl.col("split").drop_nulls().n_unique()  # in how many splits rows are already
_OPEN = pl.col("split").is_null().any()  # whether a row has none yet


def _similar(texts: pl.DataFrame, search: Search) -> pl.DataFrame:
    """`row_id`, `key` of rows with nearly equal texts."""
    named = texts.with_columns(cluster=search(texts["text"]))
    alike = named.filter(pl.col("cluster").is_duplicated())
    alike = alike.filter(pl.col("key").n_unique().over("cluster") > 1)
    torn = _SPLITS.over("cluster") > 1
    pairs = [_pairs(chain) for chain in alike.filter(torn).partition_by("cluster")]
    whole = alike.filter(~torn & _OPEN.over("cluster")).select("row_id", key=pl.format("n:{}", "cluster"))
    return pl.concat([pl.DataFrame(schema=_SOFT), whole, *pairs])


def _pairs(chain: pl.DataFrame) -> pl.DataFrame:
    """`row_id`, `key` of rows with nearly equal texts, one key for each pair of texts; the square of a few."""
    texts = chain.unique("key").sort("key")
    data, offsets = buffers(texts["text"])
    left, right = np.triu_indices(texts.height, 1)
    near = similarities(data, offsets, left.astype(np.uint32), right.astype(np.uint32)) >= SIMILAR
    pairs = pl.DataFrame({"one": texts["key"].gather(left[near]), "other": texts["key"].gather(right[near])})
    soft = pl.format("n:{}{}", "one", "other")
    of_text = pl.concat([pairs.select(text_key=side, key=soft) for side in ("one", "other")])
    return chain.select("row_id", text_key="key").join(of_text, on="text_key").select("row_id", "key")


def _sharing(texts: pl.DataFrame, scratch: Path | None) -> pl.DataFrame:
    """`row_id`, `key` of rows that share a passage."""
    long = texts.filter(pl.col("text").str.len_bytes() >= LENGTH)
    distinct = long.group_by("key").agg(pl.col("text").first(), open=_OPEN).with_row_index("row")
    shared, keys_of = shared_passages(distinct["text"], scratch, distinct.filter("open")["text"])
    # Millions of pairs: by numbers, and only those that stay by their names.
    numbered = long.with_columns(owner=pl.col("row_id").rank("dense"), split=pl.col("split").rank("dense"))
    numbered = numbered.join(distinct.select("key", "row"), on="key").select("row", "owner", "split")
    pairs = numbered.join(shared, on="row")
    telling = pairs.group_by("passage").agg(owners=pl.col("owner").n_unique(), splits=_SPLITS, open=_OPEN)
    telling = telling.filter((pl.col("owners") > 1) & (pl.col("splits") < 2) & pl.col("open")).select("passage")
    names = long.select("row_id", owner=pl.col("row_id").rank("dense")).unique()
    pairs = pairs.select("owner", "passage").join(telling, on="passage", how="semi").unique()
    return pairs.join(names, on="owner").join(keys_of, on="passage").select("row_id", "key")


def _equal_letters(texts: pl.DataFrame) -> pl.DataFrame:
    """`row_id`, `key` of rows whose texts differ in marks and pictures alone."""
    distinct = texts.select("key", "text").unique("key")
    letters_of = [_letters(*buffers(some["text"]), _signs()) for some in slices(distinct)]
    suspects = distinct.filter(pl.Series(np.concatenate(letters_of)).is_duplicated())
    suspects = suspects.select("key", letters=pl.col("text").str.replace_all(_SIGNS, ""))
    letters = texts.join(suspects.filter(pl.col("letters").str.len_chars() >= TELLING), on="key")
    n_texts = pl.col("key").n_unique().over("letters")
    alike = letters.filter(n_texts.is_between(2, FORMULA) & (_SPLITS.over("letters") < 2))
    return alike.select("row_id", key="b:" + digests(alike["letters"])).unique()


_SIGNS = r"[\p{P}\p{S}]"


@cache
def _signs() -> Flags:
    """Whether each character is a mark or a picture."""
    signs: Flags = every_character().str.contains(_SIGNS).to_numpy()
    return signs


@kernel
def _letters(data: Bytes, offsets: Places, signs: Flags) -> Keys:
    """A digest of each text without its marks and pictures."""
    made = np.zeros(offsets.shape[0] - 1, np.uint64)
    for row in range(made.shape[0]):
        at = offsets[row]
        while at < offsets[row + 1]:
            code, at = decoded(data, at)
            if code >= signs.shape[0] or not signs[code]:
                made[row] = _mixed(made[row] * _FACTOR + np.uint64(code))
    return made
