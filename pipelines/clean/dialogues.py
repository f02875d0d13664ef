"""Dialogues: cleaned, and filtered.

Of Chinese ones that models wrote stage directions go: （微笑）, （一段时间后）, a line in brackets of its own. Nobody
says them aloud. The brackets in which people add something (（继父）, （和别人相比）) stay: only the words of
`[directions]` in `lexicons/artefacts.toml` tell one from the other, and a bracket that is a whole line.
"""

from functools import cache

import polars as pl

from pipelines.clean.cells import NO_PII, as_written, cleaned, cleaned_labels, first_reason
from pipelines.clean.lengths import REASON as TOO_LONG
from pipelines.clean.lengths import split_dialogues
from pipelines.core.stage import stage
from pipelines.settings import Cleaning, Filters, Settings
from pipelines.text.chunks import in_shares
from pipelines.text.keys import han_ratio, n_chars
from pipelines.text.lexicon import alternation, filled, lexicon
from pipelines.text.minors import minors
from pipelines.text.pii.placeholders import EMOTICON, without_placeholders
from pipelines.text.risk import risk
from pipelines.text.script import script
from schemas.dialogues import CleanDialogues, ImportedDialogues
from schemas.dropped import drops, gather
from schemas.table import Dropped

STAGE = "clean_dialogues"

_OPENING = "[（(]"
_QUESTION_OF_AGE = r"几岁|多大|年龄|年纪|(?i:how old|your age)"
_ANOTHER = "他|她|孩子|宝宝|娃|儿子|女儿|弟弟|妹妹"
_OF_ANOTHER = rf"(?:{_ANOTHER})[^，。？！你您]{{0,4}}(?:几岁|多大|几年级)|(?i:how old (?:is|are) (?:he|she|they|your))"
_NUMERALS = "一二三四五六七八九十"
_BARE_AGE = rf"^\s*我?(?:今年|刚|才|快|马上)*([0-9]{{1,2}}|[{_NUMERALS}]{{1,3}})(?:$|[^0-9{_NUMERALS}年月日点号分])"


def clean_dialogues(
    frame: pl.DataFrame | pl.LazyFrame, filters: Filters | None = None, cleaning: Cleaning | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Dialogues of at least one round, in the language that their set says.

    What is too long is dropped unread. Artefacts and personal data are taken out of every turn, stage directions out
    of Chinese turns that a model wrote; one that was nothing else becomes `[表情]`, so that the roles still alternate.
    Ages and risk are judged on what was written (see `cells.as_written`), of which nothing is returned.

    Args:
        frame: Rows of `imported_dialogues`.
        filters: The thresholds; the papers' by default.

    Returns `(kept, dropped)`: rows of `clean_dialogues`, and drops in the unit `dialogue`.
    """
    filters, cleaning = filters or Filters(), cleaning or Cleaning()
    came = frame.lazy().select(ImportedDialogues.column_names()).collect()
    dialogues, long = split_dialogues(came, filters)
    dialogues = dialogues.with_row_index("group")
    judged = in_shares(lambda some: _judged(_with_texts(some, *cleaned(_cells(some), cleaning)), filters), dialogues)
    notes = judged["attributes"].explode().struct.field("value")
    label = cleaned_labels(pl.concat([judged["topic"], judged["emotion"], notes]), cleaning)
    judged = judged.with_columns(
        label(pl.col("topic")),
        label(pl.col("emotion")),
        pl.col("attributes").list.eval(
            pl.element().struct.with_fields(value=label(pl.element().struct.field("value")))
        ),
    )
    refused = judged.filter(pl.col("reason").is_not_null())
    dropped = gather(
        drops(long, STAGE, "dialogue", "dialogue_id", TOO_LONG, pl.col("detail")),
        drops(refused, STAGE, "dialogue", "dialogue_id", pl.col("reason"), pl.col("detail")),
    )
    kept = judged.filter(pl.col("reason").is_null()).with_columns(risk=risk(pl.col("all_written"), simplified=True))
    return CleanDialogues.cast(kept.select(CleanDialogues.column_names())), Dropped.cast(dropped)


def _cells(dialogues: pl.DataFrame) -> pl.DataFrame:
    """`group`, `lang`, `place` (-1 the situation, from 0 the turns), `text` and, for verdicts, `written`."""
    turns = _turns(dialogues).with_columns(played=(pl.col("lang") == "zh") & (pl.col("origin") == "model"))
    cells = pl.concat(
        [
            dialogues.select("group", "lang", place=pl.lit(-1, pl.Int64), text="situation", played=pl.lit(False)),
            turns.select("group", "lang", "place", "text", "played"),
        ]
    )
    spoken = pl.when("played").then(without_directions(pl.col("text"))).otherwise("text")
    return cells.select("group", "lang", "place", text=spoken, written=as_written(pl.col("text")))


def _turns(dialogues: pl.DataFrame) -> pl.DataFrame:
    """One row a turn: `group`, `lang`, `place` and its fields."""
    turns = dialogues.select("group", "lang", "turns").explode("turns", empty_as_null=False).unnest("turns")
    return turns.with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64).over("group"))


def _with_texts(dialogues: pl.DataFrame, cells: pl.DataFrame, pii: pl.DataFrame) -> pl.DataFrame:
    """The dialogues with the cleaned texts in their places, `script` as they were written in, and `pii`. `all_written`
    and `own_written` are what was written (see `cells.as_written`), by the seeker alone in the latter.
    """
    fields = [field.name for field in dialogues.schema["turns"].inner.fields]  # type: ignore[attr-defined]
    written = cells.filter(pl.col("place") >= 0).select("group", "place", "stored", "written")
    shown = pl.when(pl.col("stored") != "").then("stored").otherwise(pl.lit(EMOTICON))
    turns = (
        _turns(dialogues)
        .join(written, on=["group", "place"], how="left", maintain_order="left")
        .with_columns(text=shown, own=_own_words())
        .group_by("group", maintain_order=True)
        .agg(
            turns=pl.struct(fields),
            all_written=pl.col("written").str.join("\n"),
            own_written=pl.col("own").drop_nulls().str.join("\n"),
        )
    )
    situations = cells.filter(place=-1)
    return (
        dialogues.with_columns(
            script=script(_whole_text()), situation=situations["stored"], situation_written=situations["written"]
        )
        .drop("turns")
        .join(turns, on="group", how="left", maintain_order="left")
        .join(pii, on="group", how="left", maintain_order="left")
        .with_columns(
            pl.col("turns").fill_null([]),
            pl.col("pii").fill_null(NO_PII),
            all_written=pl.concat_str("situation_written", "all_written", separator="\n", ignore_nulls=True),
            own_written=pl.concat_str("situation_written", "own_written", separator="\n", ignore_nulls=True),
        )
    )


def _own_words() -> pl.Expr:
    """What a seeker wrote, null for other turns; a bare number is their age where somebody has just asked for it, and
    the sentence behind a question of another's age tells of that one.
    """
    written, before = pl.col("written"), pl.col("written").shift(1).over("group")
    of_another = before.str.contains(_OF_ANOTHER).fill_null(value=False)
    asked = before.str.contains(_QUESTION_OF_AGE) & ~of_another
    age = written.str.extract(_BARE_AGE)
    own = (
        pl.when(of_another)
        .then(written.str.replace(r"^[^。！？!?\n]*", ""))
        .when(asked & age.is_not_null())
        .then(pl.format("我今年{}岁。{}", age, written))
        .otherwise(written)
    )
    return pl.when(pl.col("role") == "seeker").then(own)


def _judged(dialogues: pl.DataFrame, filters: Filters) -> pl.DataFrame:
    """What is measured of each dialogue, and the `reason` (with its `detail`) to drop it, null where there is none."""
    measured = (
        dialogues.lazy()
        .with_columns(whole_text=_whole_text())
        .with_columns(
            n_chars=n_chars(pl.col("whole_text")),
            han_ratio=han_ratio(without_placeholders(pl.col("whole_text"))),
            age=minors(pl.col("own_written")),
        )
        .unnest("age")
    )
    chinese = pl.col("han_ratio") >= filters.min_han_ratio
    share = pl.format("Chinese share {}", pl.col("han_ratio").round(2))
    reason = first_reason(
        (pl.col("n_rounds") == 0, "no_round", "no seeker turn that a supporter turn answers"),
        ((pl.col("lang") == "zh") & ~chinese, "not_chinese", share),
        ((pl.col("lang") == "en") & chinese, "not_english", share),
        (pl.col("under_14"), "under_14", "the seeker says to be younger than 14"),
    )
    return measured.with_columns(reason.struct.unnest()).collect()


def _whole_text() -> pl.Expr:
    """All turns below each other."""
    return pl.col("turns").list.eval(pl.element().struct.field("text")).list.join("\n")


def without_directions(text: pl.Expr) -> pl.Expr:
    """`text` of a turn without stage directions; a null stays one, what was nothing else becomes empty."""
    made = text.str.replace_all(_line(), "").str.replace_all(_pattern(), "")
    changed = pl.when(text.str.contains(_OPENING)).then(made).otherwise(text)
    return pl.when(changed == text).then(text).otherwise(changed.str.strip_chars())


@cache
def _pattern() -> str:
    return alternation(
        filled(pattern, {"in": _inside()}) for pattern in lexicon("artefacts", __file__)["directions"]["patterns"]
    )


@cache
def _line() -> str:
    return rf"(?m)^[ \t]*{_OPENING}{_inside()}{{1,80}}[）)][。.]?[ \t]*$\n?"


def _inside() -> str:
    return str(lexicon("artefacts", __file__)["directions"]["in"])


@stage(
    "clean_dialogues",
    group="clean",
    reads=("filters", "cleaning"),
    units={"clean_dialogues": {"dialogue": ("imported_dialogues",)}},
    by_row=True,
)
def make_clean_dialogues(imported_dialogues: pl.DataFrame, settings: Settings) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`clean_dialogues`, of what was imported."""
    return clean_dialogues(imported_dialogues, settings.filters, settings.cleaning)
