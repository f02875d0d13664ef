"""Personal data replaced by typed placeholders, the same value by the same one inside a post."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import polars as pl

from pipelines.core.arrow import column
from pipelines.errors import RequestError
from pipelines.text.chunks import with_rows
from pipelines.text.pii import placeholders
from pipelines.text.pii.folding import fold
from pipelines.text.pii.handles import find_handles, find_links, find_nicknames
from pipelines.text.pii.numbers import find_numbers, find_plates
from pipelines.text.pii.patterns import CHINESE_DIGITS, SEPARATOR
from pipelines.text.pii.spans import gather, matches, spans

Names = Literal["strict", "wide", "none"]

# Who wins where spans overlap: first the smaller rank, then the longer span, then the one that starts first, then the
# kind that stands first: an employer is one for who works there, be it a kindergarten.
_KEPT = "placeholder"  # what an earlier run replaced: nothing touches it
_RANKS = {
    kind: rank
    for rank, kinds in enumerate(
        (
            *((_KEPT,), ("email",), ("url",), ("id_card",), ("bank_card",), ("phone",), ("wechat", "qq")),
            *(("licence_plate",), ("account",), ("employer", "school", "hospital", "address"), ("name",)),
        )
    )
    for kind in kinds
}
_CUT = ("employer", "school", "hospital", "address", "name")  # of which a part is replaced as well
_ORDER = {kind: order for order, kind in enumerate(_RANKS)}

# Each reading replaces something, so they come to an end; a text made to draw them out is left after so many.
_READINGS = 20

# Where no four letters or digits follow each other and nobody is mentioned there is nothing but, perhaps, a nickname.
_LETTER_OR_DIGIT = rf"[0-9A-Za-z{''.join(CHINESE_DIGITS)}]"
_CONTACT_GATE = rf"@|{_LETTER_OR_DIGIT}(?:{SEPARATOR}{{0,3}}{_LETTER_OR_DIGIT}){{3}}"
_LINE_BREAK = "\U0010fffd"  # nobody's

_LATIN = "[A-Za-z]{2}"  # no address is without


class Redacted(NamedTuple):
    """Texts with placeholders, and how many of each kind stand for something in which row."""

    texts: pl.Series
    counts: pl.DataFrame


def redact(
    texts: pl.Series | Iterable[str | bytes | None],
    groups: pl.Series | None = None,
    *,
    names: Names = "strict",
    ner: Path | None = None,
) -> Redacted:
    """`texts` with their personal data replaced by placeholders (see `placeholders`).

    Args:
        texts: A column of texts, or anything that `pipelines.core.arrow.column` makes one of.
        groups: What each text belongs to (a post; by default itself): inside a group the same value has the same
            placeholder, and a different one another.
        names: How names of persons, schools, employers, hospitals and addresses are looked for, besides contact data:
            `strict` takes those that have the evidence to be some, `wide` all that read like one, `none` none.
        ner: A folder with a model for token classification, which looks for them as well (see `tagger`).

    Returns `(texts, counts)`: as many texts, nulls where they were, and a frame `row: UInt32, kind: String, count:
    Int64`, sorted, of what was replaced. Redacting the result again changes nothing.

    Raises RequestError where texts and groups differ in number.
    """
    # In one piece: gathered out of several, a text would be copied whole for each of its hits.
    current = column(texts).rechunk()
    row = pl.int_range(len(current), dtype=pl.UInt32, eager=True)
    groups = row if groups is None else groups
    if len(groups) != len(current):
        raise RequestError(f"{len(groups)} groups for {len(current)} texts", hint="give one group a text")
    of_row = pl.DataFrame({"row": row, "group": groups})
    english = _in_english(current, groups)
    numbers = _numbers_given(current, of_row)
    replaced = [pl.DataFrame(schema={"row": pl.UInt32, "kind": pl.String})]
    # What is left may read differently once its neighbours are placeholders, so a row that changed is read again, and
    # its group with it, which may name again what is found only now; until nothing is found.
    rows = row
    for _ in range(_READINGS):
        some = current.gather(rows) if len(rows) < len(current) else current
        hits = find(some, of_row["group"].gather(rows), names=names, ner=ner)
        if hits.is_empty():
            break
        hits = hits.with_columns(row=rows.gather(hits["row"])).join(of_row, on="row", maintain_order="left")
        numbers = _numbered(hits, numbers)
        hits = hits.join(numbers, on=["group", "kind", "value"], how="left", nulls_equal=True, maintain_order="left")
        replaced.append(hits.select("row", "kind"))
        rows, changed = _rebuilt(current, hits.with_columns(stands=_placeholder(english.gather(hits["row"]))))
        current = current.scatter(rows, changed)
        changed_groups = of_row[rows].select("group").unique()
        rows = of_row.join(changed_groups, on="group", how="semi", nulls_equal=True, maintain_order="left")["row"]
    counts = pl.concat(replaced)
    return Redacted(current, counts.group_by("row", "kind").agg(count=pl.len().cast(pl.Int64)).sort("row", "kind"))


def without_addresses(texts: pl.Series) -> pl.Series:
    """`texts` with a blank in the place of each e-mail address and link, also of a spelt one; a null stays one."""
    rows = texts.str.contains(_LATIN).fill_null(False).arg_true()
    if rows.is_empty():
        return texts
    some = texts.gather(rows).rechunk()
    folded = fold(some)
    hits = _apart(folded.back(find_links(folded.texts)))
    if hits.is_empty():
        return texts
    changed, without = _rebuilt(some, hits.with_columns(stands=pl.lit(" ")))
    return with_rows(texts, rows.gather(changed), without)


def find(
    texts: pl.Series, groups: pl.Series | None = None, *, names: Names = "strict", ner: Path | None = None
) -> pl.DataFrame:
    """What `redact` replaces when it first reads `texts`: a frame of SPANS, sorted, none overlapping another."""
    folded = fold(texts)
    kept = spans(matches(folded.texts, placeholders.PATTERN), _KEPT)
    entities = [] if names == "none" else [find_entities(folded.texts, groups, wide=names == "wide", ner=ner)]
    hits = folded.back(gather([kept, _find_contact(folded.texts), *entities]))
    return _apart(hits).filter(pl.col("kind") != _KEPT)


def _find_contact(texts: pl.Series) -> pl.DataFrame:
    """Contact data in folded texts, as a frame of SPANS."""
    rows = texts.str.contains(_CONTACT_GATE).arg_true()
    if rows.is_empty():
        return find_nicknames(texts)
    # What is left of a page's markup, as one sign of as many bytes.
    breaks = {"<br />": f"{_LINE_BREAK}  ", "<br/>": f"{_LINE_BREAK} ", "<br>": _LINE_BREAK}
    some = texts.gather(rows).str.replace_many(breaks)
    hits = gather(finder(some) for finder in (find_links, find_numbers, find_handles, find_plates))
    return gather([hits.with_columns(row=rows.gather(hits["row"]).cast(pl.UInt32)), find_nicknames(texts)])


def find_entities(
    texts: pl.Series, groups: pl.Series | None = None, *, wide: bool = False, ner: Path | None = None
) -> pl.DataFrame:
    """Names, schools, employers, hospitals and addresses in folded texts, and wherever their groups name them again."""
    from pipelines.text.pii.again import with_repeats
    from pipelines.text.pii.institutions import institutions_in
    from pipelines.text.pii.names import names_in
    from pipelines.text.pii.persons import persons_in
    from pipelines.text.pii.places import places_in
    from pipelines.text.pii.segmentation import segment

    segmented = segment(texts)  # once for all
    names, found = names_in(segmented), [institutions_in(texts)]
    found += [places_in(segmented), names] if wide else [persons_in(names, texts)]
    if ner is not None:
        from pipelines.text.pii.tagger import tagged

        found.append(tagged(texts, ner))
    groups = pl.int_range(len(texts), eager=True) if groups is None else groups
    return with_repeats(gather(found), names, texts, groups)


def _apart(hits: pl.DataFrame) -> pl.DataFrame:
    """`hits` without what overlaps a better one, sorted by row and start.

    Of a name, an institution or an address the rest stays: whoever looks for more replaces all that others do, and
    more. A rest beside a span of its kind is part of that. Of anything else no rest is one: it is read apart again.
    """
    chosen = []
    kind = pl.col("kind")
    left = hits.with_columns(
        rank=kind.replace_strict(_RANKS, return_dtype=pl.UInt8),
        order=kind.replace_strict(_ORDER, return_dtype=pl.UInt8),
        rest=False,
    ).sort("row", "start", "end")
    while len(left):
        # Spans that hang together, by reaching into one another; of each such run the best one stays.
        reach = pl.col("end").cum_max().shift(1).over("row")
        left = left.with_columns(run=((pl.col("start") >= reach) | reach.is_null()).cum_sum())
        length = pl.col("end") - pl.col("start")
        best = left.group_by("run", maintain_order=True).agg(
            pl.all().sort_by("rank", -length, "start", "order").first()
        )
        chosen.append(best.drop("run"))
        left = left.join(best.select("run", rank_of_best="rank", first="start", last="end"), on="run")
        left = _rests(left).drop("run", "rank_of_best", "first", "last").sort("row", "start", "end")
    return _joined(pl.concat([left, *(one.select(left.columns) for one in chosen)])).select(hits.columns)


def _rests(left: pl.DataFrame) -> pl.DataFrame:
    """What is left of spans before and behind the best of their run: `first` to `last`."""
    apart = (pl.col("end") <= pl.col("first")) | (pl.col("start") >= pl.col("last"))
    # What an earlier run replaced is no part of anything.
    left = left.filter(apart | (pl.col("kind").is_in(_CUT) & (pl.col("rank_of_best") > _RANKS[_KEPT])))
    rest = pl.col("rest") | ~apart
    before = left.with_columns(rest=rest, end=pl.min_horizontal("end", "first"))
    behind = left.with_columns(rest=rest, start=pl.max_horizontal("start", "last"))
    return pl.concat([before, behind]).filter(pl.col("start") < pl.col("end"))


def _joined(spans: pl.DataFrame) -> pl.DataFrame:
    """Spans that lie apart, each with the rests beside it of spans of its kind; sorted."""
    spans = spans.sort("row", "start")
    beside = (pl.col("start") == pl.col("end").shift(1)) & (pl.col("row") == pl.col("row").shift(1))
    one = beside & (pl.col("kind") == pl.col("kind").shift(1)) & (pl.col("rest") | pl.col("rest").shift(1))
    pieces = spans.with_columns(piece=(~one.fill_null(False)).cum_sum())
    return pieces.group_by("piece", maintain_order=True).agg(
        pl.col("row", "start", "kind").first(), pl.col("end").last(), pl.col("value").sort_by("rest").first()
    )


def _numbers_given(texts: pl.Series, of_row: pl.DataFrame) -> pl.DataFrame:
    """The placeholders that stand in the texts already: what they stood for is not known, their numbers are taken."""
    rows = texts.str.contains(placeholders.PATTERN).fill_null(False).arg_true()
    return (
        of_row[rows]
        .with_columns(given=texts.gather(rows).str.extract_all(placeholders.PATTERN))
        .explode("given")
        .with_columns(pl.col("given").str.extract_groups(placeholders.NAMED))
        .select(
            "group",
            kind=pl.col("given").struct[0].replace_strict(dict(placeholders.KINDS), default=None),
            value=pl.lit(None, pl.String),
            number=pl.col("given").struct[1].cast(pl.UInt32).fill_null(1),
        )
        .drop_nulls("kind")
    )


def _numbered(hits: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    """`numbers` and those of the values that it does not hold, counted on in the order of their appearance."""
    new = hits.join(numbers, on=["group", "kind", "value"], how="anti", nulls_equal=True, maintain_order="left")
    taken = numbers.group_by("group", "kind").agg(taken=pl.col("number").max())
    new = (
        new.unique(["group", "kind", "value"], keep="first", maintain_order=True)
        .join(taken, on=["group", "kind"], how="left", nulls_equal=True, maintain_order="left")
        .with_columns(
            number=pl.col("taken").fill_null(0) + pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over("group", "kind")
        )
    )
    return pl.concat([numbers, new.select(numbers.columns).cast(numbers.schema)])


def _in_english(texts: pl.Series, groups: pl.Series) -> pl.Series:
    """Whether the group of each text is in English: words of it, and no Chinese character."""
    of_groups = pl.DataFrame({"group": groups, "text": texts})
    chinese, english = (
        pl.col("text").str.contains(r"\p{Han}"),
        pl.col("text").str.contains(r"[A-Za-z]{2}[,.]? [A-Za-z]{2}"),
    )
    return of_groups.select((~chinese & english).any().over("group") & ~chinese.any().over("group")).to_series()


def _placeholder(english: pl.Series) -> pl.Expr:
    number = pl.when(pl.col("number") > 1).then(pl.col("number").cast(pl.String)).otherwise(pl.lit(""))
    chinese, latin = (
        pl.col("kind").replace_strict(dict(names), return_dtype=pl.String)
        for names in (placeholders.NAMES, placeholders.ENGLISH_NAMES)
    )
    name = pl.when(english).then(latin).otherwise(chinese)
    return pl.concat_str(pl.lit("["), name, number, pl.lit("]"))


def _rebuilt(texts: pl.Series, hits: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    """The rows with spans, and their texts with what `stands` in the place of each instead."""
    rebuilt = (
        hits.with_columns(
            # Bytes, for a slice of bytes costs nothing however long the text is.
            data=texts.gather(hits["row"]).cast(pl.Binary),
            since=pl.col("end").shift(1, fill_value=0).over("row"),
        )
        .with_columns(
            piece=pl.col("data").bin.slice(pl.col("since"), pl.col("start") - pl.col("since")).cast(pl.String)
        )
        .group_by("row", maintain_order=True)
        .agg(
            text=pl.concat_str("piece", "stands").str.join(""),
            rest=pl.col("data").last().bin.slice(pl.col("end").last()).cast(pl.String),
        )
    )
    return rebuilt["row"], rebuilt.select(pl.col("text") + pl.col("rest")).to_series()
