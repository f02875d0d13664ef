"""Texts as vectors whose dot product is their similarity, by a sentence encoder in a folder of this machine.

Nothing is downloaded. Vectors of characters or words would cluster wording, not personality.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.core.files import sha256_of
from pipelines.errors import RequestError
from schemas.ids import digest

Vectors = npt.NDArray[np.float64]
# One unit row a text, `[n, d]`.
Encode = Callable[[Sequence[str]], Vectors]


def similarity(encode: Encode, before: Sequence[str], after: Sequence[str]) -> float:
    """Mean cosine, −1–1, of the lines of two texts, weighted by the length of those before; 0 where there are none.

    Line by line, for the lines stand opposite each other, and an encoder reads no more than the beginning of a long
    text. Raises ValueError where there are more lines of the one than of the other.
    """
    if len(before) != len(after):
        raise ValueError(f"{len(before)} lines before, {len(after)} after")
    weights = np.array([len(text) for text in before], np.float64)
    if not weights.sum():
        return 0.0
    cosines = np.einsum("nd,nd->n", encode(before), encode(after))
    return float(np.average(cosines, weights=weights).clip(-1, 1))


def sentence_encoder(folder: Path) -> Encode:
    """The sentence-transformers model in `folder`, on the CPU.

    Each text is encoded by itself, and rounded: in a batch the last digits of a vector hang on the texts beside it.

    Raises RequestError where sentence-transformers is not installed or the folder holds no such model.
    """
    _require_model(folder)
    model = _loaded(folder)

    def encode(texts: Sequence[str]) -> Vectors:
        if not len(texts):
            return encode([""])[:0]
        rows = model.encode(list(texts), batch_size=1, convert_to_numpy=True, show_progress_bar=False)
        rows = np.asarray(rows, np.float64)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: Vectors = np.round(rows / np.where(lengths > 0, lengths, 1), 6)
        return unit

    return encode


def encoder_id(folder: Path) -> str:
    """An id of a model, wherever it lies: a hash of its files, model cards left out.

    Raises RequestError for a folder that holds no model.
    """
    _require_model(folder)
    files = sorted(
        (path.relative_to(folder).as_posix(), path)
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix != ".md"
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    return "sentence-transformers-" + digest("".join(f"{name}\n{sha256_of(path)}\n" for name, path in files))


def _require_model(folder: Path) -> None:
    """Raises RequestError for a folder that holds no sentence-transformers model."""
    if not (folder / "modules.json").is_file():
        raise RequestError(
            "there is no sentence-transformers model here: a model's folder has a file modules.json",
            where=f"{folder} (setting rewrite.encoder)",
            hint="name the folder of a model that was saved by sentence-transformers, or leave the setting out",
        )


@cache
def _loaded(folder: Path) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ModuleNotFoundError as error:
        raise RequestError(
            "an encoder is set, but sentence-transformers is not installed",
            where=f"{folder} (setting rewrite.encoder)",
            hint="pip install -r requirements/encoder.txt -c requirements/base.txt, or leave the setting out",
        ) from error
    try:
        return SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    except Exception as error:  # of a damaged folder it raises what its parsers happen to
        raise RequestError(
            "the sentence-transformers model cannot be read",
            where=f"{folder} (setting rewrite.encoder)",
            hint="load it with sentence-transformers by hand to see why, or download it again",
        ) from error
