"""The numba kernels of the reading: words, the cheapest path through a run of Chinese, names that could stand in it.

A cost is a negative logarithm of a probability, in nats; arrays by code point have 65,536 places.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.core.arrow import decoded
from pipelines.core.kernels import kernel as typed_kernel
from pipelines.core.kernels import part as typed_part

# Ids of what is no word: a character that the vocabulary lacks, a run of digits, of Latin letters, a line end, any
# other sign, a blank or hyphen.
UNKNOWN, DIGITS, LATIN, LINE_END, SIGN, JOINER = range(6)

# How a name is made: surname and given name; surname and form of address; 小, 老 or 阿 and a character; a given name
# and 哥 or 姐; two equal characters; a given name alone, after a word for a person; whatever follows 我叫.
FULL, TITLED, CALLED, DEAR, DOUBLED, GIVEN, CUED = range(7)

# What a word does beside a name, a bit each.
PERSON, VERB = 1 << 0, 1 << 1  # before it: who is named; a verb or another word that names follow
CUE, WEAK, NAMED = 1 << 2, 1 << 3, 1 << 4  # before it: 我叫; 叫; 名字叫
RIGHT, END = 1 << 5, 1 << 6  # behind it: what names stand before; 就好 after 叫我 …
REFUSED = 1 << 7  # begins no name
TITLE, SHORT_TITLE = 1 << 8, 1 << 9  # a form of address; one of a single character
PUBLIC, ANONYMOUS = 1 << 10, 1 << 11  # somebody known to all; nobody
ORDINARY, LINK, NAMELIKE = 1 << 12, 1 << 13, 1 << 14  # a word of the language; one that links others; a name to jieba
EDGE = 1 << 15  # no word at all: the run begins or ends
SPEECH = 1 << 16  # behind it: what people say or do: 说, 骂我

LONGEST = 8  # characters of a word
NEVER = np.float32(1e9)
RARE_GIVEN = np.float32(11.5)  # a character that hardly a name has
_OFTEN_GIVEN = np.float32(8.0)  # below: one that names are made of
_LEAST_MARGIN = np.float32(-12.0)

# What a name of each make costs, its characters apart. A given name has two characters three times out of four.
_A_FULL, _A_COMPOUND, _A_TITLED, _A_TITLED_COMPOUND = (np.float32(cost) for cost in (5.8, 9.0, 3.5, 8.0))
_A_CALLED, _A_DEAR, _A_DOUBLED, _A_GIVEN, _A_GIVEN_ANYWHERE = (np.float32(cost) for cost in (7.0, 7.0, 11.0, 6.0, 9.5))
_ONE_CHARACTER, _TWO_CHARACTERS = np.float32(1.4), np.float32(0.3)
_DOUBLED_GIVEN = np.float32(7.0)
_GIVEN_AFTER_CALLED, _UNSUPPORTED, _LISTED_DOUBT = np.float32(1.5), np.float32(2.0), np.float32(2.0)
_BLOCK = 64  # places of a run whose names are looked for at once
_MOST_NAMES = 64  # that start at one place: eight without a form of address, each with the few that can follow
_CALLS, _OLD, _DEAR_TO_ALL = ord("叫"), ord("老"), (ord("阿"), ord("小"))
# What a week, a term of office or a passage is counted by: 上周, 这段, 第三任. Some may end another word: 晚上周老师.
_ENDS_A_WORD = (*map(ord, "上下本前头多"),)
_COUNTS = (*map(ord, "上下这那每隔本前头整半几多数两零一二三四五六七八九十百0123456789"),)

_BESIDE = np.uint32(EDGE | PERSON | VERB | CUE | NAMED | WEAK)
_CUES = np.uint32(CUE | WEAK | NAMED | PERSON)
_TITLES = np.uint32(TITLE | SHORT_TITLE)

kernel: Any = typed_kernel
part: Any = typed_part


@part
def _mixed(key, code):  # type: ignore[no-untyped-def]
    """The key of a word, from the key of its beginning and its last character."""
    key = (key ^ np.uint64(code)) * np.uint64(0x9E3779B97F4A7C15)
    return key ^ (key >> np.uint64(29))


@kernel
def hashed(codes, firsts, lasts, ids):  # type: ignore[no-untyped-def]
    """An open-addressing table of words and their beginnings: `(keys, ids)`, id -1 for a beginning that is no word."""
    size = 1
    while size < 3 * len(firsts):
        size *= 2
    keys, values = np.zeros(size, np.uint64), np.full(size, -1, np.int32)
    for word in range(len(firsts)):
        key = np.uint64(0)
        for place in range(firsts[word], lasts[word]):
            key = _mixed(key, codes[place])
            if place == firsts[word]:
                continue
            slot = key & np.uint64(size - 1)
            while keys[slot] != 0 and keys[slot] != key:
                slot = (slot + np.uint64(1)) & np.uint64(size - 1)
            keys[slot] = key
            if place == lasts[word] - 1:
                values[slot] = ids[word]
    return keys, values


@kernel
def code_points(data, offsets):  # type: ignore[no-untyped-def]
    """Code points of all rows (beyond the first plane 0xFFFF), a line end behind each; first bytes; row starts."""
    codes = np.empty(len(data) + len(offsets), np.uint16)
    at = np.empty(len(data) + len(offsets) + 1, np.int64)
    rows = np.empty(len(offsets), np.int64)
    n = 0
    for row in range(len(offsets) - 1):
        rows[row] = n
        place = offsets[row]
        while place < offsets[row + 1]:
            at[n] = place
            code, place = decoded(data, place)
            codes[n] = min(code, 0xFFFF)
            n += 1
        codes[n] = 10
        at[n] = place
        n += 1
    rows[-1] = n
    at[n] = offsets[-1]
    return codes[:n], at[: n + 1], rows


@part
def _is_han(code):  # type: ignore[no-untyped-def]
    return 0x4E00 <= code <= 0x9FFF or code == 0x3007


@part
def _kind(code):  # type: ignore[no-untyped-def]
    """The id of the token that a character other than a Chinese one belongs to."""
    if 48 <= code <= 57:
        return DIGITS
    if 65 <= code <= 90 or 97 <= code <= 122:
        return LATIN
    if code == 10:
        return LINE_END
    if code in (32, 35, 45, 126, 0x2013, 0x2014):  # blank # - ~ and dashes
        return JOINER
    return SIGN


@part
def _between(code):  # type: ignore[no-untyped-def]
    """Whether a sign may stand between 我叫 and the name: blank, colon, quotation mark, bracket."""
    return code in (32, 34, 39, 58, 0x2018, 0x2019, 0x201C, 0x201D, 0x300C, 0x300D, 0x300E, 0x3010, 0xFF1A)


@kernel
def read_runs(  # type: ignore[no-untyped-def]
    codes, rows, keys, ids, costs, of_character, surname, given, ordinary, counted, before, doubled, compound, roles
):
    """Reads every run of Chinese.

    Returns:
        `(tokens, starts, row_tokens, places, margins)`: word ids and first code points of the tokens of all rows; the
        first token of each row; of each candidate name the code points where it starts, where its core ends and where
        it ends, its make, the roles on its left, on its right and of itself; its margin.
    """
    n = len(codes)
    tokens, starts = np.empty(n, np.int32), np.empty(n, np.int64)
    row_tokens = np.empty(len(rows), np.int64)
    n_tokens, row = 0, 0
    places, margins, n_names = np.empty((8192, 7), np.int64), np.empty(8192, np.float32), 0
    size = 0  # of the run that the working space has room for
    forward, backward, via, origin, ending, beginning, cut, e_first, e_end, e_id = _space(0)
    place = 0
    cue = np.uint32(0)  # what the run before ended with, if only a colon or a quotation mark stands between
    while place < n:
        while row < len(rows) - 1 and rows[row] == place:
            row_tokens[row] = n_tokens
            row += 1
        first = place
        if not _is_han(codes[first]):
            kind = _kind(codes[first])
            starts[n_tokens], tokens[n_tokens] = first, kind
            n_tokens += 1
            if not _between(codes[first]):
                cue = np.uint32(0)
            place += 1
            while kind in (DIGITS, LATIN) and place < n and _kind(codes[place]) == kind:
                place += 1
            continue
        while place < n and _is_han(codes[place]):
            place += 1
        run, length = codes[first:place], place - first
        if length > size:
            size = max(256, 2 * size, length)
            forward, backward, via, origin, ending, beginning, cut, e_first, e_end, e_id = _space(size)
        space = (forward, backward, via, origin, ending, beginning, cut, e_first, e_end, e_id)
        _edges(run, keys, ids, of_character, costs, roles, space)
        last = n_tokens
        n_tokens = _path(length, first, tokens, starts, n_tokens, costs, space)
        tokens[last:n_tokens] = tokens[last:n_tokens][::-1].copy()
        starts[last:n_tokens] = starts[last:n_tokens][::-1].copy()
        ending[0] = np.uint32(EDGE) | cue
        beginning[length] |= np.uint32(EDGE)
        cue = ending[length] & _CUES
        tables = (surname, given, ordinary, counted, before, doubled, compound)
        behind = _before(first, codes)
        for block in range(0, length, _BLOCK):
            while len(margins) - n_names < _BLOCK * _MOST_NAMES:
                places, margins = _twice(places), _twice(margins)
            until = min(length, block + _BLOCK)
            n_names = _names(block, until, first, behind, run, costs, roles, tables, space, places, margins, n_names)
    while row < len(rows):
        row_tokens[row] = n_tokens
        row += 1
    return tokens[:n_tokens], starts[:n_tokens], row_tokens, places[:n_names], margins[:n_names]


@kernel
def _space(size):  # type: ignore[no-untyped-def]
    """Working space for a run of `size` characters. By place: the cheapest cost from the start of the run and to its
    end; the edge by which the first of these arrives and where that begins; roles of the words that end and begin
    there; whether a token of the cheapest path does; the first edge that leaves. By edge: where it ends; its word.
    """
    return (
        np.empty(size + 1, np.float64),  # in a run of a million characters the costs of single words still count
        np.empty(size + 1, np.float64),
        np.empty(size + 1, np.int64),
        np.empty(size + 1, np.int64),
        np.empty(size + 1, np.uint32),
        np.empty(size + 1, np.uint32),
        np.empty(size + 1, np.bool_),
        np.empty(size + 1, np.int64),
        np.empty(size * LONGEST, np.int64),
        np.empty(size * LONGEST, np.int32),
    )


@part
def _edges(run, keys, ids, of_character, costs, roles, space):  # type: ignore[no-untyped-def]
    """Makes every word of a run an edge, and finds the cheapest way from the start to each place."""
    forward, _, via, origin, ending, beginning, _, e_first, e_end, e_id = space
    length, mask = len(run), np.uint64(len(keys) - 1)
    ending[: length + 1] = 0
    beginning[: length + 1] = 0
    forward[: length + 1] = NEVER
    forward[0] = 0
    edges = 0
    for i in range(length):
        e_first[i] = edges
        key = np.uint64(0)
        for j in range(i, min(length, i + LONGEST)):
            key = _mixed(key, run[j])
            word = of_character[run[i]]
            if j > i:
                slot = key & mask
                while keys[slot] != 0 and keys[slot] != key:
                    slot = (slot + np.uint64(1)) & mask
                if keys[slot] == 0:
                    break
                word = ids[slot]
                if word < 0:
                    continue
            e_end[edges], e_id[edges] = j + 1, word
            ending[j + 1] |= roles[word]
            beginning[i] |= roles[word]
            cost = forward[i] + costs[word]
            if cost < forward[j + 1]:
                forward[j + 1], via[j + 1], origin[j + 1] = cost, edges, i
            edges += 1
    e_first[length] = edges


@part
def _path(length, first, tokens, starts, n_tokens, costs, space):  # type: ignore[no-untyped-def]
    """Adds the tokens of the cheapest path, the last first, and finds the cheapest way from each place to the end."""
    _, backward, via, origin, _, _, cut, e_first, e_end, e_id = space
    cut[:length] = False
    cut[length] = True
    place = length
    while place > 0:
        starts[n_tokens], tokens[n_tokens] = first + origin[place], e_id[via[place]]
        n_tokens += 1
        place = origin[place]
        cut[place] = True
    backward[length] = 0
    for i in range(length - 1, -1, -1):
        backward[i] = NEVER
        for edge in range(e_first[i], e_first[i + 1]):
            backward[i] = min(backward[i], costs[e_id[edge]] + backward[e_end[edge]])
    return n_tokens


@part
def _names(  # type: ignore[no-untyped-def] # noqa: PLR0912
    since, until, first, behind, run, costs, roles, tables, space, places, margins, n_names
):
    """Adds the names that could start at places `since` to `until` of a run, which stands behind the character
    `behind`; how many there are now."""
    surname, given, ordinary, counted, before, doubled, compound = tables
    forward, backward, _, _, ending, beginning, cut, e_first, e_end, e_id = space
    length = len(run)
    for i in range(since, until):
        code, left = run[i], ending[i]
        if counted[code] and _is_counted(run[i - 1] if i > 0 else behind, i == 0 or cut[i - 1]):
            continue
        if i > 0 and run[i - 1] == _CALLS and ending[i - 1] & np.uint32(PERSON):
            left |= np.uint32(CUE)  # 我儿子叫
        supported = not ordinary[code] or (left & _BESIDE != 0 and (i == 0 or cut[i]))
        for made in range(7):
            low, high, price = _shape(made, i, run, left, supported, surname, given, before, doubled, compound)
            for core in range(low, min(high, length) + 1):
                if made == CUED:
                    # Taken whole, up to the first word that can not belong to it.
                    if not cut[core] or not beginning[core] & np.uint32(EDGE | END | RIGHT):
                        continue
                    cost = backward[i] - backward[core]
                else:
                    cost = price
                    if made == FULL:
                        cost += _choice(low, core, run, given, doubled, e_first, e_end, e_id, roles, costs)
                    if made in (FULL, DOUBLED, GIVEN):
                        listed = _listed(i, core, e_first, e_end, e_id, roles, costs)
                        # 高峰, 舒服些: what the dictionary lists may be a word after all.
                        if made == FULL and (core == i + 2 or given[run[core - 1]] >= _OFTEN_GIVEN):
                            listed += _LISTED_DOUBT
                        cost = min(cost, listed)
                if cost >= NEVER:
                    continue
                # First without a form of address, then with each that follows.
                titles = e_first[core]
                if core < length and made != CUED and beginning[core] & _TITLES:
                    titles = e_first[core + 1]
                for edge in range(e_first[core] - 1, titles):
                    end, role, title = core, np.uint32(0), np.float32(0)
                    if edge >= e_first[core]:
                        end, role, title = e_end[edge], roles[e_id[edge]] & _TITLES, costs[e_id[edge]]
                    if not _addressed(made, role, supported, ordinary[code], edge >= e_first[core]):
                        continue
                    margin = forward[length] - forward[i] - backward[end] - cost - title
                    if margin < _LEAST_MARGIN:
                        continue
                    own = role | _roles_of(i, core, made == CUED, cut, e_first, e_end, e_id, roles)
                    places[n_names, 0], places[n_names, 1], places[n_names, 2] = first + i, first + core, first + end
                    places[n_names, 3], places[n_names, 4], places[n_names, 5] = made, left, beginning[end]
                    places[n_names, 6], margins[n_names] = own, margin
                    n_names += 1
                if made == CUED:
                    break
    return n_names


@part
def _before(first, codes):  # type: ignore[no-untyped-def]
    """The character before a run; of a number of three digits or more, which counts nothing here, 0 instead."""
    if first == 0 or (first >= 3 and min(codes[first - 3 : first]) >= 48 and max(codes[first - 3 : first]) <= 57):
        return np.uint16(0)
    return codes[first - 1]


@part
def _is_counted(by, alone):  # type: ignore[no-untyped-def]
    """Whether a character of which there may be several is counted `by` the one before it, which begins a word
    (`alone`) or not."""
    return by in _COUNTS and (alone or by not in _ENDS_A_WORD)


@part
def _shape(  # type: ignore[no-untyped-def] # noqa: PLR0911
    made, i, run, left, supported, surname, given, before, doubled, compound
):
    """Where a name made this way may end, a form of address apart, and what it costs but for characters of choice."""
    code = run[i]
    follows = run[i + 1] if i + 1 < len(run) else np.uint16(0)
    if made in (FULL, TITLED):
        own = 1 if made == FULL else 0
        if follows != 0 and _is_compound(code, follows, compound):
            return i + 2 + own, i + 2 + 2 * own, _A_COMPOUND if made == FULL else _A_TITLED_COMPOUND
        if surname[code] < NEVER:
            price = surname[code] + (_A_FULL if made == FULL else _A_TITLED)
            return i + 1 + own, i + 1 + 2 * own, price + (np.float32(0) if supported else _UNSUPPORTED)
    elif made == CALLED and before[code]:
        price = surname[follows]
        if code in _DEAR_TO_ALL or (code != _OLD and given[follows] < _OFTEN_GIVEN):
            price = min(price, _GIVEN_AFTER_CALLED + given[follows])
        return i + 2, i + 2, _A_CALLED + price
    elif made == DEAR and given[code] < _OFTEN_GIVEN and surname[code] == NEVER:
        return i + 1, i + 1, _A_DEAR + given[code]
    elif made == DOUBLED and doubled[code] and follows == code:
        return i + 2, i + 2, _A_DOUBLED
    elif made == GIVEN and left & _BESIDE and max(given[code], given[follows]) < _OFTEN_GIVEN:
        price = _A_GIVEN if left & np.uint32(PERSON) else _A_GIVEN_ANYWHERE
        return i + 2, i + 2, price + given[code] + given[follows]
    elif made == CUED and left & np.uint32(CUE | NAMED):
        return i + 1, i + 6, np.float32(0)
    return 1, 0, NEVER


@part
def _choice(low, core, run, given, doubled, e_first, e_end, e_id, roles, costs):  # type: ignore[no-untyped-def]
    """What the given name of a full name costs."""
    chosen = np.float32(0)
    for place in range(low - 1, core):
        chosen += given[run[place]]
    if core > low and run[core - 1] == run[core - 2] and doubled[run[core - 1]]:
        chosen = min(chosen, _DOUBLED_GIVEN)
    chosen = min(chosen, _listed(low - 1, core, e_first, e_end, e_id, roles, costs))
    return chosen + (_ONE_CHARACTER if core == low else _TWO_CHARACTERS)


@part
def _addressed(made, role, supported, ordinary, is_title):  # type: ignore[no-untyped-def]
    """Whether a name made this way may end here: with this form of address (`role`: long or short), or without one."""
    if not is_title:
        return made not in (TITLED, DEAR)
    is_long, is_short = role & np.uint32(TITLE) != 0, role & np.uint32(SHORT_TITLE) != 0
    if made == TITLED:
        return (is_long or (is_short and not ordinary)) and supported
    if made == DEAR:
        return is_short and not is_long
    if made in (DOUBLED, GIVEN):
        return is_long
    return is_long or is_short


@part
def _is_compound(one, other, compound):  # type: ignore[no-untyped-def]
    """Whether two characters are a surname."""
    key = (np.uint32(one) << np.uint32(16)) + np.uint32(other)
    for listed in compound:  # forty, sorted
        if listed >= key:
            return listed == key
    return False


@part
def _listed(i, j, e_first, e_end, e_id, roles, costs):  # type: ignore[no-untyped-def]
    """The cost of the characters from i to j as a name that the dictionary lists."""
    if j > i + 1:
        for edge in range(e_first[i], e_first[i + 1]):
            if e_end[edge] == j and roles[e_id[edge]] & np.uint32(NAMELIKE):
                return costs[e_id[edge]]
    return NEVER


@part
def _roles_of(i, j, whole, cut, e_first, e_end, e_id, roles):  # type: ignore[no-untyped-def]
    """The roles of the word from i to j; if `whole`, also ORDINARY of any token inside, REFUSED of the first."""
    own = np.uint32(0)
    for edge in range(e_first[i], e_first[i + 1]):
        if e_end[edge] == j:
            own |= roles[e_id[edge]]
    place = i
    while whole and place < j:
        following = place + 1
        while not cut[following]:
            following += 1
        for edge in range(e_first[place], e_first[place + 1]):
            if e_end[edge] == following:
                own |= roles[e_id[edge]] & np.uint32(ORDINARY | REFUSED if place == i else ORDINARY)
        place = following
    return own


@kernel
def _twice(array):  # type: ignore[no-untyped-def]
    """`array` with room for as many rows again."""
    larger = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


@kernel
def best_apart(starts, ends, scores):  # type: ignore[no-untyped-def]
    """Of intervals sorted by their ends, those that overlap no other and have the highest sum of scores (bool each)."""
    n = len(starts)
    best = np.zeros(n + 1)
    for one in range(n):
        before = np.searchsorted(ends[:one], starts[one], side="right")
        best[one + 1] = max(best[one], best[before] + scores[one])
    chosen = np.zeros(n, np.bool_)
    one = n - 1
    while one >= 0:
        if best[one + 1] > best[one]:
            chosen[one] = True
            one = np.searchsorted(ends[:one], starts[one], side="right") - 1
        else:
            one -= 1
    return chosen


Floats = npt.NDArray[np.float32]
Roles = npt.NDArray[np.uint32]
