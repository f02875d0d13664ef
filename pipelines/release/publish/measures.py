"""Figures and pictures for a card: length, language and topic of its rows, how many no model made or nobody read."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from pipelines.core.plotting import png
from pipelines.store.release_manifest import Release
from pipelines.store.releases import rows_of
from schemas.dropped import Row
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
            published = set(pq.read_table(public / shard.path, columns=["row_id"])[0].to_pylist())
            for row in rows_of(folder / shard.path):
                if row["row_id"] not in published:
                    continue
                text = "".join(_texts(row))
                lengths.append(len(text))
                extra = row.get("extra_info") or {}
                measures.languages[extra.get("lang") or _language(text)] += 1
                measures.unreviewed += config == "sft_coe" and not row.get("reviewed")
                measures.of_no_model[config] += not set(NO_MODEL).isdisjoint(row.get("providers") or ())
                if (topic := extra.get("topic")) is not None:
                    measures.topics[CATEGORY_OF.get(topic, _OTHER)] += 1
    return measures


def _texts(row: Row) -> Iterator[str]:
    """The texts of a row, once: a prompt set has the dialogue a second time, for the reward."""
    for message in row.get("messages") or row.get("prompt") or []:
        yield message["content"]
    for name in ("query", "positive", "negative"):
        if name in row:
            yield row[name]


def _language(text: str) -> str:
    return "zh" if any("一" <= character <= "鿿" for character in text) else "en"


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
