"""Recipes: the set-ups of the papers as the trainers' own configurations, one YAML file each in `recipes/`.

A recipe says what its paper says (`paper`), what we had to decide (`ours`), and what it is made of; a preset, what kind
of machine it runs on; an arm, what a paper compares with its own set-up. Later layers win: `ours`, `paper`, the preset,
what the recipe says of the preset, the arm, what a caller sets. What then differs from the paper, `differences` tells.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from pipelines.errors import RequestError, UnknownName
from pipelines.train.kinds import finite

Preset = Literal["gpu", "cpu_smoke"]
PRESETS: tuple[Preset, ...] = ("gpu", "cpu_smoke")
TrainerName = Literal["grpo", "sft", "contrastive"]
Service = Literal["judge", "encoder"]
Form = Literal["ecot", "coe", "cer"]
Overrides = dict[str, Any]

_FOLDER = Path(__file__).parent / "recipes"
_COMMON = _FOLDER / "common"
_KEY = re.compile(r"\+?[A-Za-z_][\w.]*", re.ASCII)
_PLAIN = re.compile(r"[\w./:%@+-]+", re.ASCII)  # what Hydra reads as it stands; numbers among it


class _Layers(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    ours: Overrides = Field(default_factory=dict)
    gpu: Overrides = Field(default_factory=dict)
    cpu_smoke: Overrides = Field(default_factory=dict)


class Arm(_Layers):
    """What a paper compares with its own set-up: one switch.

    `recipe` names another recipe, which is then trained in place of this one. `scratch` starts from the base model and
    not from what `Recipe.starts` names, `start_arm` from that arm of it. `chain` says whether there is reasoning before
    the answer, `variants` which rows of C's rewriting are learnt from (by default the recipe's), `judging` how C's
    judge is asked, `every` what is set with either preset. Of each variant that an arm names there have to be rows.
    """

    about: str
    recipe: str | None = None
    scratch: bool = False
    start_arm: str = ""
    chain: bool = True
    variants: tuple[str, ...] = ()
    judging: Literal["unified", "apart"] = "unified"
    every: Overrides = Field(default_factory=dict)


class Recipe(_Layers):
    """A recipe. `rows` is the set of a release that it trains on, `variants` which of them by C's rewriting (all by
    default), where its arm does not say; one of those may have no rows.

    Of GRPO, `reward` is a module of `pipelines.rewards`, `services` what that asks, and `starts` the recipe whose model
    it starts from. `form` is what the tiny model of `cpu_smoke` knows already. `implied` is what verl makes of `paper`,
    or has by default, where the paper says it too: it is compared, and never set.
    """

    name: str
    about: str
    trainer: TrainerName = "grpo"
    rows: str
    variants: tuple[str, ...] = ()
    reward: str = ""
    services: tuple[Service, ...] = ()
    starts: str | None = None
    form: Form | None = None
    paper: Overrides = Field(default_factory=dict)
    implied: Overrides = Field(default_factory=dict)
    arms: dict[str, Arm] = Field(default_factory=dict)

    def arm(self, name: str) -> Arm:
        """An arm by its name; the paper's own set-up for none. Raises UnknownName."""
        if not name:
            return Arm(about=self.about)
        if name not in self.arms:
            raise UnknownName(f"arm of {self.name}", name, self.arms)
        return self.arms[name]


def recipes() -> tuple[str, ...]:
    """The names there are."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def recipe(name: str) -> Recipe:
    """A recipe by its name. Raises UnknownName."""
    if name not in recipes():
        raise UnknownName("recipe", name, recipes())
    return Recipe(name=name, **_read(_FOLDER / f"{name}.yaml"))


def overrides(
    told: Recipe, preset: Preset, given: Mapping[str, Any] | None = None, *, arm: Arm | None = None
) -> Overrides:
    """What the trainer's configuration is to be, by key; `given` wins over everything."""
    common = _Layers(**_read(_COMMON / f"{told.trainer}.yaml"))
    of_arm = (arm.every, getattr(arm, preset)) if arm else ()
    layers = (
        *(common.ours, told.ours, told.paper, getattr(common, preset), getattr(told, preset)),
        *of_arm,
        given or {},
    )
    found: Overrides = {}
    for layer in layers:
        for key, value in layer.items():
            if f"+{key}" in found:  # a layer below has said that verl's schema does not name it
                found[f"+{key}"] = value
            else:
                found.pop(_bare(key), None)
                found[key] = value
    return found


def as_arguments(found: Mapping[str, Any]) -> list[str]:
    """Overrides as Hydra reads them on a command line."""
    return [f"{key}={_written(value)}" for key, value in found.items()]


def given(settings: Sequence[str]) -> Overrides:
    """`KEY=VALUE` of a command line; values as YAML reads them. Raises RequestError for anything else."""
    found: Overrides = {}
    for one in settings:
        key, sign, value = one.partition("=")
        if not sign or not _KEY.fullmatch(key):
            raise RequestError(
                f"{one!r} sets nothing",
                where="--set",
                hint="write KEY=VALUE, a key of the trainer's; with one + in front where its schema does not name it",
            )
        try:
            read = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise RequestError(f"{value!r} is no value", where=f"--set {key}", hint="write it as YAML") from error
        # A date, say, is none that a configuration can hold.
        found[key] = read if isinstance(read, (bool, int, float, str, list, type(None))) else value
        if not finite(found[key]):
            raise RequestError(f"{value} is no number to train with", where=f"--set {key}")
    return found


def number(value: Any) -> Any:
    """A value as it is compared: YAML 1.1 reads 1e-6 as a string."""
    try:
        return float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else value
    except ValueError:
        return value


def _read(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read


def _bare(key: str) -> str:
    return key.removeprefix("+")


def _written(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, str) and not _PLAIN.fullmatch(value):
        # Hydra's quotes: within them a quote is escaped, and so is a backslash, but before a quote alone.
        return "'" + re.sub(r"(\\*)('|$)", lambda at: at[1] * 2 + ("\\'" if at[2] else ""), value) + "'"
    return str(value)
