"""Data-Juicer as its two scripts need it: in one process, no cache, no word, nothing fetched, no torch.

It installs whatever it misses while it runs. torch would be among it, for no more than to empty the memory of GPUs
after each operator; there are no models here, so that call is left out.
"""

import datasets
import pyarrow as pa
from data_juicer.utils.lazy_loader import LazyLoader
from loguru import logger


def _refuse(package: str, *_: object) -> None:
    raise ImportError(f"Data-Juicer asks for {package}, which requirements.txt does not hold")


LazyLoader._install_package = staticmethod(_refuse)

from data_juicer.core.data import NestedDataset  # noqa: E402
from data_juicer.ops import base_op  # noqa: E402

base_op.free_models = lambda *_: None
base_op.OP.runtime_np = lambda _: None  # with 1, datasets starts a second process for every step
logger.remove()
datasets.disable_caching()
datasets.disable_progress_bars()


def dataset(table: pa.Table) -> NestedDataset:
    return NestedDataset(datasets.Dataset(table))


def numbered(texts: pa.ChunkedArray) -> pa.Table:
    """The texts and, since a data set has no row numbers of its own, their rows."""
    return pa.table({"text": texts.cast(pa.string()), "row": pa.array(range(len(texts)))})
