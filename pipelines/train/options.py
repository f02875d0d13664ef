"""The options of the contrastive training (`pipelines.train.contrastive`), and what each may be."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pipelines.errors import RequestError, UnknownName
from pipelines.train.recipe import SETTINGS_PLACE


class Options(BaseModel):
    """A contrastive training, as `config.json` of its run has it. Defaults are ours: E gives none (papers.md §7).

    `start` is an encoder's folder or name, `out` the folder that is made; the files are Parquet. `margin` is m of
    E eq. 5: a cosine goes from −1 to 1, and two are 2 apart at most. `max_length` are the tokens of a window, None for
    the encoder's; `windows` says how a longer text is read (`pipelines.train.embedding`).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    start: Path
    train: list[Path] = Field(min_length=1)
    validation: list[Path] = Field(min_length=1)
    out: Path
    epochs: int = Field(3, ge=1)
    batch: int = Field(16, ge=2)
    rate: float = Field(2e-5, gt=0)
    margin: float = Field(0.2, ge=0, le=2)
    seed: int = Field(0, ge=0)
    max_length: int | None = Field(None, ge=8)
    windows: Literal["mean", "first"] = "mean"
    save_every: int = Field(100, ge=1)
    device: Literal["auto", "cpu", "cuda"] = "auto"

    @field_validator("train", "validation", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return value if isinstance(value, list) else [value]

    @field_validator("epochs", "batch", "rate", "margin", "seed", "max_length", "save_every", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError("a number is wanted")
        return value


def check_options(settings: Mapping[str, Any]) -> Options:
    """The options of a run. Raises UnknownName for a name that is no option, and RequestError for a wrong value."""
    for name in settings:
        if name not in Options.model_fields:
            raise UnknownName("option of the contrastive training", name, Options.model_fields)
    try:
        return Options.model_validate(dict(settings))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        raise RequestError(
            f"{name}: {first['msg']}, and not {first['input']!r}",
            where=f"{name}={settings.get(name)}",
            hint=f"look at {SETTINGS_PLACE}",
        ) from error
