"""Figures and pictures for a card: length, language and topic of its rows, how many no model made or nobody read."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import polars.selectors as cs

from pipelines.core.plotting import png
from pipelines.store.release_manifest import Release
from schemas.table import NO_MODEL
from schemas.taxonomy import CATEGORY_OF

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LENGTHS, TOPICS = PICTURES = ("pictures/lengths.png", "pictures/topics.png")
_OTHER = "not of the taxonomy"
_COLOUR = "#4c72b0"
_LINE = "#c44e52"
_SIZE = (7.2, 3.6)
_DPI = 110


@dataclass
class Measures:
    """Of whole rows: `lengths` by config in characters of the row's text, `topics` (M's categories) by rows of the
    prompt sets, `languages` by rows, `of_no_model` by config the rows with a provider that is no model; `unreviewed`:
    how many chains of `sft_coe` no professional has reviewed.
    """

    lengths: dict[str, list[int]] = field(default_factory=dict)
    topics: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    of_no_model: Counter[str] = field(default_factory=Counter)
    unreviewed: int = 0


def measure(release: Release, folder: Path, public: Path) -> Measures:
    """Measures the rows of a release in `folder`, where they have all their words, that stand in `public` too."""
    measures = Measures()
    for config, shards in release.configs.items():
        lengths = measures.lengths.setdefault(config, [])
        for shard in shards:
            published = pl.read_parquet(public / shard.path, columns=["row_id"], hive_partitioning=False)
            rows = pl.read_parquet(folder / shard.path, hive_partitioning=False)
            of_rows = _measured(rows.join(published, on="row_id", how="semi", maintain_order="left"))
            lengths.extend(of_rows["length"])
            measures.languages.update(of_rows["lang"])
            measures.topics.update(CATEGORY_OF.get(topic, _OTHER) for topic in of_rows["topic"].drop_nulls())
            measures.of_no_model[config] += int(of_rows["of_no_model"].sum())
            measures.unreviewed += int(of_rows["unreviewed"].sum()) if config == "sft_coe" else 0
    return measures


def _measured(rows: pl.DataFrame) -> pl.DataFrame:
    """`length`, `lang`, `topic`, `of_no_model`, `unreviewed` of each row. A prompt set has the dialogue a second time,
    for the reward: that is not counted. Releases of older versions lack some columns.
    """
    chat = next((name for name in ("messages", "prompt") if name in rows.columns), None)
    messages = [] if chat is None else [pl.col(chat).list.eval(pl.element().struct.field("content")).list.join("")]
    text = pl.concat_str(*messages, cs.by_name("query", "positive", "negative", require_all=False), ignore_nulls=True)
    spoken = pl.when(text.str.contains("[一-鿿]")).then(pl.lit("zh")).otherwise(pl.lit("en"))
    extra = {field.name for field in getattr(rows.schema.get("extra_info"), "fields", ())}
    noted = {name: pl.col("extra_info").struct.field(name) for name in ("lang", "topic") if name in extra}
    by = pl.col("providers") if "providers" in rows.columns else pl.lit([], pl.List(pl.String))
    reviewed = pl.col("reviewed").fill_null(False) if "reviewed" in rows.columns else pl.lit(False)
    return rows.select(
        length=text.str.len_chars(),
        lang=pl.coalesce(noted.get("lang", pl.lit(None, pl.String)), spoken),
        topic=noted.get("topic", pl.lit(None, pl.String)),
        of_no_model=by.list.set_intersection(list(NO_MODEL)).list.len() > 0,
        unreviewed=~reviewed,
    )


def pictures(measures: Measures) -> dict[str, bytes]:
    """PNG files by name, the same bytes for the same rows; none where there is nothing to draw."""
    drawn = {}
    if any(measures.lengths.values()):
        drawn[LENGTHS] = png(lambda axes: _lengths(axes, measures), _SIZE, _DPI)[0]
    if measures.topics:
        drawn[TOPICS] = png(lambda axes: _topics(axes, measures), _SIZE, _DPI)[0]
    return drawn


def _lengths(axes: "Axes", measures: Measures) -> None:
    """A box per config: quartiles, and the longest and shortest within 1.5 boxes."""
    configs = [config for config, lengths in measures.lengths.items() if lengths][::-1]
    axes.boxplot(
        [measures.lengths[config] for config in configs],
        orientation="horizontal",
        tick_labels=configs,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": _COLOUR, "alpha": 0.6},
        medianprops={"color": _LINE},
    )
    axes.set(title="Lengths of rows", xlabel="characters", xlim=(0, None))


def _topics(axes: "Axes", measures: Measures) -> None:
    names, counts = zip(*reversed(measures.topics.most_common()), strict=True)
    axes.bar_label(axes.barh(names, counts, color=_COLOUR))
    axes.set(title="Prompts by primary category (M Table 1)", xlabel="rows of the prompt sets")
