"""Recipes: the set-ups of the papers as the trainers' own configurations, one YAML file each in `recipes/`.

A recipe says what its paper says (`paper`), what we had to decide (`ours`), and what it is made of. Later layers win:
`ours`, `paper`, the preset (the kind of machine), what the recipe says of the preset, the ablation, what a caller sets.
"""

import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from pipelines.errors import RequestError, UnknownName

Preset = Literal["gpu", "cpu_smoke"]
PRESETS: tuple[Preset, ...] = ("gpu", "cpu_smoke")
TrainerName = Literal["grpo", "sft", "contrastive"]
Service = Literal["judge", "encoder"]
Overrides = dict[str, Any]
Kind = Literal["true or false", "a whole number", "a number"]
KINDS: dict[type, Kind] = {bool: "true or false", int: "a whole number", float: "a number"}
SETTINGS_PLACE = "--set, or [settings] of an experiment"  # where settings of a trainer are written
REWARD_SETTING = "custom_reward_function.reward_kwargs."  # how the keys of a reward's settings begin

_FOLDER = Path(__file__).parent / "recipes"
_KEY = re.compile(r"\+?[A-Za-z_][\w.]*", re.ASCII)
_PLAIN = re.compile(r"[\w./:%@+-]+", re.ASCII)  # what Hydra reads as it stands; numbers among it


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Layers(_Strict):
    ours: Overrides = Field(default_factory=dict)
    gpu: Overrides = Field(default_factory=dict)
    cpu_smoke: Overrides = Field(default_factory=dict)


class Ablation(_Strict):
    """What a paper compares with its own set-up: one switch.

    `recipe` names another recipe, which is then trained in place of this one. `scratch` starts from the base model and
    not from what `Recipe.starts` names, `start` from that ablation of it. `chain` says whether there is reasoning
    before the answer, `variants` which rows of C's rewriting are learnt from (by default the recipe's; of each there
    have to be rows), `judging` how C's judge is asked, `settings` what the trainer is set to.
    """

    about: str
    recipe: str | None = None
    scratch: bool = False
    start: str = ""
    chain: bool = True
    variants: tuple[str, ...] = ()
    judging: Literal["unified", "apart"] = "unified"
    settings: Overrides = Field(default_factory=dict)


class Recipe(_Layers):
    """A recipe. `rows` is the set of a release that it trains on, `variants` which of them by C's rewriting (all by
    default), where its ablation does not say; one of those may have no rows.

    Of GRPO, `reward` is a module of `pipelines.rewards`, and `services` what that asks. `starts` are the recipes whose
    models it may start from, besides its own: where no run is named it starts from the first of them, with `scratch`
    from the base model. `form` is what the tiny model of `cpu_smoke` knows already. `implied` is what verl makes of
    `paper`, or has by default, where the paper says it too: it is compared, and never set.
    """

    name: str
    about: str
    trainer: TrainerName = "grpo"
    rows: str
    variants: tuple[str, ...] = ()
    reward: str = ""
    services: tuple[Service, ...] = ()
    starts: tuple[str, ...] = ()
    scratch: bool = False
    form: Literal["ecot", "coe", "cer"] | None = None
    paper: Overrides = Field(default_factory=dict)
    implied: Overrides = Field(default_factory=dict)
    ablations: dict[str, Ablation] = Field(default_factory=dict)

    def ablation(self, name: str) -> Ablation:
        """An ablation by its name; the paper's own set-up for an empty one. Raises UnknownName."""
        if not name:
            return Ablation(about=self.about)
        if name not in self.ablations:
            raise UnknownName(f"ablation of {self.name}", name, self.ablations)
        return self.ablations[name]

    def start(self, ablation: Ablation) -> str | None:
        """The recipe whose model it starts from where no run is named; None: from the base model."""
        return self.starts[0] if self.starts and not (self.scratch or ablation.scratch) else None


def recipe_names() -> tuple[str, ...]:
    """The names of all recipes."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def load_recipe(name: str) -> Recipe:
    """A recipe by its name. Raises UnknownName."""
    if name not in recipe_names():
        raise UnknownName("recipe", name, recipe_names())
    return Recipe(name=name, **_read(_FOLDER / f"{name}.yaml"))


def build_overrides(
    recipe: Recipe, preset: Preset, settings: Mapping[str, Any] | None = None, *, ablation: Ablation | None = None
) -> Overrides:
    """The trainer's configuration, by key; `settings` win over everything."""
    common = _Layers(**_read(_FOLDER / "common" / f"{recipe.trainer}.yaml"))
    of_preset = (getattr(common, preset), getattr(recipe, preset))
    of_ablation = ablation.settings if ablation else {}
    overrides: Overrides = {}
    for layer in (common.ours, recipe.ours, recipe.paper, *of_preset, of_ablation, settings or {}):
        for key, value in layer.items():
            if f"+{key}" in overrides:  # a layer below has said that verl's schema does not name it
                overrides[f"+{key}"] = value
            else:
                overrides.pop(key.removeprefix("+"), None)
                overrides[key] = value
    return overrides


def as_arguments(overrides: Mapping[str, Any]) -> list[str]:
    """Overrides as Hydra reads them on a command line."""
    return [f"{key}={_hydra_text(value)}" for key, value in overrides.items()]


def parse_settings(words: Sequence[str]) -> Overrides:
    """`KEY=VALUE` of a command line; values as YAML reads them. Raises RequestError for anything else."""
    settings: Overrides = {}
    for word in words:
        key, sign, text = word.partition("=")
        if not sign or not _KEY.fullmatch(key):
            raise RequestError(
                f"{word!r} sets nothing",
                where="--set",
                hint="write KEY=VALUE, a key of the trainer's; with one + in front where its schema does not name it",
            )
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise RequestError(f"{text!r} is no value", where=f"--set {key}", hint="write it as YAML") from error
        # A date, say, is a text to a configuration.
        settings[key] = value if isinstance(value, (bool, int, float, str, list, type(None))) else text
        if not is_finite(settings[key]):
            raise RequestError(f"{text} is no number to train with", where=f"--set {key}")
    return settings


def as_number(value: Any) -> Any:
    """A value; of a text that is a number, that: YAML 1.1 reads 1e-6 as a text."""
    for number in (int, float):
        with contextlib.suppress(ValueError):
            return number(value) if isinstance(value, str) else value
    return value


def kind_of(value: Any) -> Kind | None:
    """The kind of a value, or of its text; None for all that is neither a number nor a boolean."""
    return KINDS.get(type(as_number(value)))


def fits(value: Any, wanted: Kind) -> bool:
    """Whether a value can stand where one of a kind is wanted: a whole number is a number."""
    kind = kind_of(value)
    return kind == wanted or (wanted == "a number" and kind == "a whole number")


def is_finite(value: Any) -> bool:
    """False for NaN and infinity, as a number, as its text, or within a list."""
    if isinstance(value, list):
        return all(map(is_finite, value))
    return kind_of(value) != "a number" or math.isfinite(float(value))


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def _hydra_text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{','.join(map(_hydra_text, value))}]"
    if isinstance(value, str) and not _PLAIN.fullmatch(value):
        # Hydra's quotes: within them a quote is escaped, and so is a backslash, but before a quote alone.
        return "'" + re.sub(r"(\\*)('|$)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), value) + "'"
    return str(value)
