"""Names of persons, and the accounts that people go by: 张伟, 陈阿姨, 小周, 阿强, 婷婷, "我叫…", Lucy."""

from functools import cache
from itertools import chain

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.text.pii import lattice as la
from pipelines.text.pii import vocabulary as voc
from pipelines.text.pii.lattice import best_apart
from pipelines.text.pii.segmentation import Segmented
from pipelines.text.pii.spans import SPANS, gather, matches, spans

# What each make must bring, in nats (see `segmentation`), before it is a name.
_NEEDED = {la.FULL: -2.5, la.TITLED: 0.5, la.CALLED: 0.5, la.DEAR: 0.0, la.DOUBLED: 1.5, la.GIVEN: 2.5, la.CUED: 0.0}

# What stands before and behind it, the strongest evidence first; nats.
_LEFT = {la.NAMED: 8.0, la.CUE: 7.0, la.PERSON: 5.0, la.WEAK: 4.0, la.VERB: 2.0, la.EDGE: 1.5, la.LINK: 0.5}
_RIGHT = {la.SPEECH: 3.5, la.END: 3.0, la.RIGHT: 2.0, la.TITLE: 2.0, la.EDGE: 1.5, la.LINK: 0.5}
_NOTHING_BEHIND = -1.0  # an ordinary word that does not follow names as a rule
_ADDRESSED = 2.0  # a form of address, taken into the name
_REFUSED = -3.0  # made like a name, and a verb or the like


def names_in(segmented: Segmented) -> pl.DataFrame:
    """Spans of names and accounts in segmented texts."""
    chosen = _chosen(_scored(segmented.names), segmented.offsets)
    texts = segmented.texts
    hits = _as_spans(chosen, texts)
    return gather([hits, _family(texts), _minority(texts), _introduced(texts), _latin(texts), _english(texts)])


def _has(column: str, role: int) -> pl.Expr:
    return (pl.col(column) & role) != 0


def _evidence(column: str, weights: dict[int, float], otherwise: float) -> pl.Expr:
    evidence = pl.lit(otherwise)
    for role, weight in reversed(weights.items()):
        evidence = pl.when(_has(column, role)).then(weight).otherwise(evidence)
    return evidence


def _scored(names: pl.DataFrame) -> pl.DataFrame:
    """The candidates that may be names, with their `score` in nats; the better, the surer."""
    cued = pl.col("made") == la.CUED
    ordinary, refused = _has("own", la.ORDINARY), _has("own", la.REFUSED)
    free = ~refused & (_has("left", la.NAMED) | ~ordinary)
    long_enough = pl.col("core") - pl.col("start") >= 6
    addressed = _has("own", la.TITLE) | _has("own", la.SHORT_TITLE)
    score = (
        pl.col("margin")
        + _evidence("left", _LEFT, 0.0)
        + _evidence("right", _RIGHT, _NOTHING_BEHIND)
        + pl.when(addressed & (pl.col("core") < pl.col("end"))).then(_ADDRESSED).otherwise(0.0)
        + pl.when(refused).then(_REFUSED).otherwise(0.0)
        - pl.col("made").replace_strict(_NEEDED, return_dtype=pl.Float64)
    )
    return (
        names.filter(
            ~cued | free & long_enough,
            # 才华, 真爱: a given name alone must be no word.
            (pl.col("made") != la.GIVEN) | ~ordinary,
            ~_has("own", la.PUBLIC),
            ~_has("own", la.ANONYMOUS),
        )
        # A name made in no particular way is only as sure as what announces it.
        .with_columns(score=pl.when(cued).then(1.0).otherwise(score))
        .filter(pl.col("score") > 0)
    )


def _chosen(names: pl.DataFrame, offsets: npt.NDArray[np.int64]) -> pl.DataFrame:
    """Of candidates that overlap, those that are the surest together."""
    names = names.sort("row", "end", "start")
    base = offsets[names["row"].to_numpy()]
    chosen = best_apart(base + names["start"].to_numpy(), base + names["end"].to_numpy(), names["score"].to_numpy())
    return names.filter(pl.Series(chosen, dtype=pl.Boolean))


def _as_spans(names: pl.DataFrame, texts: pl.Series) -> pl.DataFrame:
    """Chosen names as spans. The value leaves out the form of address behind a name that is one without it."""
    core = pl.when(pl.col("made").is_in([la.TITLED, la.DEAR])).then("end").otherwise("core")
    return (
        names.with_columns(data=texts.gather(names["row"]).cast(pl.Binary))
        .select("row", "start", "end", kind=pl.lit("name"), value=_piece(core))
        .cast(SPANS)
    )


def _piece(end: pl.Expr) -> pl.Expr:
    return pl.col("data").bin.slice(pl.col("start"), end - pl.col("start")).cast(pl.String)


def _family(texts: pl.Series) -> pl.DataFrame:
    """Surnames that somebody states: 我姓何, 免贵姓欧阳."""
    surnames = voc.lexicon("surnames")
    compound = "|".join(surnames["compound"])
    stated = matches(
        texts,
        f"(?:{compound}|[{''.join(surnames['single'])}])",
        cue=r"(?:^|[^百同异随冠改小])姓",
        tail=r"(?:$|[^\p{Han}]|的|今年|名|呢|啊|吧|哈)",
    )
    # Those that are no word besides also go alone: 欧阳把我删了.
    alone = matches(
        texts,
        f"(?:{'|'.join(surnames['alone'])})",
        cue=r"(?:^|[^\p{Han}]|[和跟与给被对找问])",
        tail=r"(?:$|[^\p{Han}]|[说把对跟和给是在也就的问让又总还走])",
    )
    # Hardly anyone's, and words besides: 区慧仪 behind a relative, 查主任 where a name can begin.
    words = voc.lexicon("names")
    listed = voc.lexicon("given_names")
    given = f"[{''.join(listed['frequent'] + listed['usual'])}]"
    rare = f"[{''.join(surnames['rare'])}]"
    kin = "|".join(sorted((one for one in words["left"]["person"] if len(one) > 1), key=len, reverse=True))
    follows = r"(?:$|[^\p{Han}]|[嫁说是在对把跟和给去来也都就总还今又让打骂叫])"
    related = matches(texts, f"{rare}{given}{{2}}", cue=f"(?:{kin})", tail=follows)
    titles = "|".join(words["title"]["rare"])
    titled = matches(texts, f"{rare}(?:{titles})", cue=r"(?:^|[^\p{Han}]|[的们和跟与找问])", tail="(?:$|[^务人])")
    # “郗明朗，你给我站起来！”; 尉迟静好这个名字.
    every = f"(?:{compound}|[{''.join(surnames['single'])}]|{rare})"
    called = matches(texts, f"{every}{given}{{2}}", cue='[“「『"]', tail="[，,！!](?:你|您|站|起来|出来|过来|滚|上来)")
    meant = matches(
        texts, rf"{every}\p{{Han}}{{1,2}}", cue=r"(?:^|[^\p{Han}])", tail="[这那](?:个|一个|三个|两个)?(?:名字|姓名)"
    )
    return gather(spans(hits, "name") for hits in (stated, alone, related, titled, called, meant))


def _minority(texts: pl.Series) -> pl.DataFrame:
    """Names in other languages of the country, made of parts that Chinese words do not have: 扎西次仁, 艾尔肯."""
    listed = voc.lexicon("given_names")
    parts = "|".join(sorted((*listed["minority"], *listed["minority_weak"]), key=len, reverse=True))
    whole = f"(?:{'|'.join(listed['minority'])})(?:{parts})*|(?:{parts}){{2,3}}"
    # 买买提·吐尔逊: the name and the father's.
    return spans(matches(texts, rf"(?:{whole})(?:[·•・](?:{parts})+|[·•]\p{{Han}}{{2,4}})?"), "name")


def _introduced(texts: pl.Series) -> pl.DataFrame:
    """Who introduces himself by what is read as no name elsewhere: 我叫 周 海 燕, 我叫zhou haiyan, a star's name."""
    surnames = voc.lexicon("surnames")
    surname = f"(?:{'|'.join(surnames['compound'])}|[{''.join(surnames['single'])}])"
    public = "|".join(chain.from_iterable(voc.lexicon("public_figures").values()))
    syllables = "(?:(?:zh|ch|sh|[bpmfdtnlgkhjqxzcsryw])?[aeiouv]{1,3}(?:ng|[nr])?){1,4}"
    cue, end = r"(?:我|俺)(?:就|的?名字|的?名|的?真名)?叫[ :“【「]?", r"(?:$|[^\p{Han}A-Za-z0-9_@.\-])"
    apart = matches(texts, rf"{surname}(?:[ \-.·]\p{{Han}}){{1,2}}", cue=cue, tail=end)
    spelt = matches(texts, rf"(?i:{syllables})(?:[ \-](?i:{syllables})){{0,2}}", cue=cue, tail=end)
    known = matches(texts, f"(?:{public})", cue=cue, tail=end)
    together = pl.col("hit").str.replace_all(r"[ \-.·]", "")
    return gather([spans(apart, "name", together), spans(spelt, "name"), spans(known, "name")])


@cache
def _foreign() -> str:
    return "|".join(sorted(voc.lexicon("given_names")["foreign"], key=len, reverse=True))


def _latin(texts: pl.Series) -> pl.DataFrame:
    """English given names in Chinese sentences: 我朋友Tony."""
    words = voc.lexicon("names")
    titled = rf"(?: [A-Z][a-z]+)?(?: ?(?:{'|'.join(words['title']['latin'])}))?"
    rows = texts.str.contains("[A-Z][a-z]").arg_true()
    texts = texts.gather(rows)
    end = r"(?:$|[^A-Za-z0-9_@.])"
    hits = pl.concat(
        [
            matches(texts, rf"(?:{_foreign()}){titled}", cue=r"(?:^|[^A-Za-z.@_\-/ ]|\p{Han} )", tail=end),
            # Not listed: 阿May, 外教Yvette, Kiki跟我说.
            matches(texts, f"阿[A-Z][a-z]+{titled}", tail=end),
            matches(texts, f"[A-Z][a-z]{{1,9}}{titled}", cue=f"(?:{'|'.join(words['left']['person'])})", tail=end),
            matches(texts, "[A-Z][a-z]{1,9}", cue="(?:^|[^A-Za-z ])", tail=f"(?:{'|'.join(words['right']['latin'])})"),
        ]
    ).pipe(lambda hits: hits.with_columns(row=rows.gather(hits["row"])))
    chinese = r"[\p{Han}\x{3000}-\x{303f}\x{ff00}-\x{ffef}“”‘’…]"
    beside = pl.col("before").str.contains(chinese + r" ?$") | pl.col("after").str.contains("^ ?" + chinese)
    public = pl.col("hit").is_in(_public_foreign())
    return spans(hits.filter(beside, ~public), "name")


def _english(texts: pl.Series) -> pl.DataFrame:
    """Given names in English sentences, after what announces a person: my friend Tom, I am Sarah."""
    words = {key: [one.replace("_", " ") for one in listed] for key, listed in voc.lexicon("english").items()}
    announced = "|".join([*words["kin"], *words["cue"]])
    cue = rf"(?:^|[^A-Za-z])(?i:{announced})[,:]? "
    listed = matches(texts, rf"(?:{_foreign()})(?: [A-Z][a-z]+)?", cue=cue, tail=r"(?:$|[^A-Za-z])")
    named = rf"(?:^|[^A-Za-z])(?i:{'|'.join(words['named'])}) "
    free = matches(texts, r"[A-Z][a-z]+(?: [A-Z][a-z]+)?", cue=named, tail=r"(?:$|[^A-Za-z])")
    # My boyfriend Zorbin: in small letters, so that no title (My Boyfriend Left) is read as one.
    mine = (
        rf"(?:^|[^A-Za-z])[Mm]y (?:(?:ex|best|old|new|little|big|older|younger)[ \-])?(?:{'|'.join(words['kin'])}),? "
    )
    kin = matches(texts, r"[A-Z][a-z]{2,}(?: [A-Z][a-z]+)?", cue=mine, tail=r"(?:$|[^A-Za-z])")
    kin = kin.filter(~pl.col("hit").str.extract("^([A-Za-z]+)").is_in(words["no_name"]))
    titled = matches(texts, r"(?:Mr|Mrs|Ms|Dr|Miss|Professor|Prof)\.? [A-Z][a-z]+", cue=r"(?:^|[^A-Za-z])")
    public = pl.col("hit").is_in(_public_foreign())
    return gather(spans(hits.filter(~public), "name") for hits in (listed, free, kin, titled))


@cache
def _public_foreign() -> list[str]:
    return [one.replace("_", " ") for one in voc.lexicon("english")["public"]]
