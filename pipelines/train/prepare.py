"""A run of a recipe on a release: its name, its rows, what it starts from, and whom it asks."""

import re
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from pipelines.core.home import Home
from pipelines.errors import RequestError, UnknownName
from pipelines.llm.interface import JudgeProvider
from pipelines.llm.money import nano
from pipelines.settings import Rewards
from pipelines.store.release_manifest import Release
from pipelines.store.releases import Releases
from pipelines.train import rows
from pipelines.train.kinds import GIVEN, Kind, fits, kind
from pipelines.train.launch import Run, rows_of_arm
from pipelines.train.recipe import Arm, Overrides, Preset, Recipe, overrides, recipe
from pipelines.train.runs import MODEL, NOTE, ROLLOUTS, START, learnt_of, note
from pipelines.train.services import PYTHON, Judge, encoder_command, judge_command
from pipelines.train.trainers import TRAINERS, of_the_run

REWARD_SETTING = "custom_reward_function.reward_kwargs."
_HELD = (
    *("reward.reward_manager.source", "reward.reward_manager.name", "reward.reward_manager.module.path"),
    *("trainer.v1.sampler.custom_sampler.path", "trainer.v1.sampler.custom_sampler.name", "trainer.logger"),
    *("trainer.use_v1", "trainer.v1.trainer_mode"),  # what they name asks that sampler
    "data.train_max_samples",  # rows are chosen before they are counted
)
# A partition of `rollouts` has its name, and 16 hex digits are a version of the store's.
_NAME = re.compile(r"(?![0-9a-f]{16}$)[A-Za-z0-9][A-Za-z0-9._-]{0,120}")
_OF_LABELS = ("sft_cer", "rm_process", "rm_outcome", "rm_unified")  # empty until people have labelled
ENCODER = "empathy_encoder"  # the recipe whose model E's reward asks


def prepare(
    home: Path,
    told: Recipe,
    preset: Preset,
    *,
    arm: str = "",
    release: str | None = None,
    name: str = "",
    start: str | None = None,
    encoder: str | None = None,
    provider: JudgeProvider | None = None,
    budget: Decimal | None = None,
    settings: Rewards | None = None,
    most_rows: int | None = None,
    given: Mapping[str, Any] | None = None,
    awaited: Collection[str] = (),
) -> Run:
    """A run of a recipe on a release, the current one unless another is named.

    Args:
        home: Where the releases are, and the run's folder will be.
        told: The recipe.
        preset: The kind of machine.
        arm: An arm of the recipe; none: the paper's own set-up.
        release: A release of the home.
        name: Of the run; default: recipe, arm, preset and release.
        start: The run whose model this one starts from; default: the run of `Recipe.starts` on the same release.
        encoder: The run whose encoder the reward asks; default: that of `ENCODER` on the same release.
        provider: Who judges. Has to be said of a `gpu` run that is judged. `none`, the default of `cpu_smoke`: nobody;
            the reward is what needs no judge, format and redundancy.
        budget: The most that judging may cost.
        settings: Which models judge, how long they may take, and how many failures are borne.
        most_rows: Train on so many rows; default: on all.
        given: Settings of the trainer's that win over the recipe's.
        awaited: Runs that will have come to their end before this one starts.

    Raises:
        UnknownName: There is no such arm.
        RequestError: There is no environment to train in, no release, one without the rows of the recipe or of a
            variant that its arm names, or no run of that name to start from or to ask.
    """
    if not PYTHON.exists():
        raise RequestError("there is no environment to train in", where=PYTHON, hint="make train-env")
    for option, one in (("--name", name), ("--start", start), ("--encoder", encoder)):
        if one and not _NAME.fullmatch(one):
            hint = "letters, digits, . _ and -, and not 16 hex digits, which are a version"
            raise RequestError(f"{one!r} is no name of a run", where=option, hint=hint)
    chosen = told.arm(arm)
    if chosen.recipe is not None:
        told = recipe(chosen.recipe)
    found = release_of(home, release)
    files = _files(home, found, told)
    rows.require(files["train"], told, chosen)
    folder = Home(home).training / (name or "-".join(filter(None, (told.name, arm, preset, found.name))))
    ours = _of_files(folder, told, chosen, files, most_rows) | of_the_run(told.trainer, folder, folder / ROLLOUTS)
    asked: dict[str, Any] = {"arm": arm, "most_rows": most_rows}
    awaiting = start is not None and start in awaited
    model = Home(home).training / str(start) / MODEL if awaiting else _start(home, told, chosen, preset, found, start)
    if model is not None:
        ours[TRAINERS[told.trainer].model] = str(model)
    elif preset == "cpu_smoke":
        ours[TRAINERS[told.trainer].model] = str(folder / START)
    services: dict[Any, list[str]] = {}
    judge = None
    if told.reward:
        ours["reward.custom_reward_function.path"] = f"pkg://pipelines.rewards.{told.reward}"
        ours["reward.custom_reward_function.name"] = "compute_score"
    _refuse_idle(told, encoder, provider, budget)
    if "encoder" in told.services or encoder:
        folder_of = encoder_of(home, preset, found, encoder)
        services["encoder"] = encoder_command(folder_of)
        asked["encoder"] = str(folder_of.relative_to(home))
    if "judge" in told.services:
        if provider is None and preset == "gpu":
            raise RequestError(
                f"nobody said who judges: {told.reward} is a judge's to say",
                where=told.name,
                hint="--provider openai (a model, with --budget), or --provider none: format and redundancy alone",
            )
        if provider is None or provider == "none":
            ours[f"+reward.{REWARD_SETTING}judge"] = False
            asked["judge"] = {"provider": "none", "reward": "format and redundancy alone"}
        else:
            rewards = settings or Rewards()
            models = _judges(rewards, told, chosen)
            judge = Judge(provider, models, budget, chosen.judging, rewards)
            services["judge"] = judge_command(home, folder.name, judge)
            asked["judge"] = {"provider": provider, **models, "mode": judge.mode}
    _refuse_unknown_settings(told, given or {})
    _refuse_ours(told, ours, given or {})
    found_overrides = overrides(told, preset, {**ours, **(given or {})}, arm=chosen)
    _refuse_steps(told, found_overrides)
    weights = [found_overrides.get(TRAINERS[told.trainer].model, ""), home / asked.get("encoder", "")]
    asked["learnt_of"] = _learnt_of(home, found, map(Path, weights))
    return Run(folder, told, chosen, preset, found, files, found_overrides, most_rows, judge, services, asked)


def encoder_of(home: Path, preset: Preset, release: Release, run: str | None) -> Path:
    """The encoder of a run; none named: that of `ENCODER` on the same release. Raises RequestError."""
    return _model(home, run or f"{ENCODER}-{preset}-{release.name}", ENCODER, "--encoder")


def uses(told: Recipe) -> set[str]:
    """Of `provider`, `budget` and `encoder` those that say something of a run of a recipe."""
    judged = {"provider", "budget"} if "judge" in told.services else set()
    return judged | ({"encoder"} if told.trainer == "grpo" and told.reward != "mindchat" else set())


def _judges(rewards: Rewards, told: Recipe, arm: Arm) -> dict[str, str]:
    """Aliases of the models that judge, by the option of the judge's that names them."""
    models = {"model": getattr(rewards, told.reward)}
    if arm.judging == "apart":
        models |= {"model-process": rewards.compeer_process, "model-outcome": rewards.compeer_outcome}
    return models


def _refuse_idle(told: Recipe, encoder: str | None, provider: str | None, budget: Decimal | None) -> None:
    """What is said and would have no effect, and a budget that is no money."""
    if budget is not None:
        nano(budget)
    for option, value in (("provider", provider), ("budget", budget), ("encoder", encoder)):
        if value is not None and option not in uses(told):
            raise RequestError(f"{told.name} has no use for --{option}", where=value, hint="leave it out")
    if budget is not None and provider == "none":
        raise RequestError("nobody judges, and so nothing is spent", where="--budget", hint="leave it out")


def _refuse_steps(told: Recipe, found: Mapping[str, Any]) -> None:
    """A number of steps that is none: the run itself reads it, before verl does."""
    key = TRAINERS[told.trainer].steps
    steps = found.get(key)
    if steps is not None and (kind(steps) != "a whole number" or int(steps) < 1):
        raise RequestError(f"{key} is to be a whole number of 1 or more, and {steps!r} is none", where=GIVEN)


def _refuse_unknown_settings(told: Recipe, given: Mapping[str, Any]) -> None:
    """A setting that the reward does not have, or not so, would be found out by verl's workers in the first step."""
    known = import_module(f"pipelines.rewards.{told.reward}").SETTINGS if told.reward else {}
    for key, value in given.items():
        _, found, name = key.partition(REWARD_SETTING)
        if not found:
            continue
        if name not in known:
            raise UnknownName(f"setting of the reward {told.reward}", name, known)
        wanted = known[name]
        if isinstance(wanted, tuple) and value not in wanted:
            raise UnknownName(f"{name} of the reward {told.reward}", str(value), wanted)
        if isinstance(wanted, str) and not fits(value, cast(Kind, wanted)):
            raise RequestError(
                f"{name} of the reward {told.reward} is to be {wanted}, and {value!r} is not",
                where=f"{key}: {GIVEN}",
                hint="look at docs/training.md, Rewards",
            )


def _refuse_ours(told: Recipe, ours: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """What a run sets itself: with others it would look for its files where they are not, or lose its rewards."""
    model = TRAINERS[told.trainer].model
    held = {*(key.removeprefix("+") for key in ours), *_HELD} - {model}
    for key, value in given.items():
        bare = key.removeprefix("+")
        within = any(one.startswith(f"{bare}.") for one in (*held, model))  # a part that holds it goes with it
        if bare in held or within:
            raise RequestError(f"{key} is the run's own to set", where=GIVEN, hint="leave it out")
        if bare == model and not isinstance(value, str):
            raise RequestError(f"{value!r} is no model to start from", where=f"{key}: {GIVEN}", hint="name one")


def release_of(home: Path, name: str | None) -> Release:
    """A release by its name, the current one for none. Raises RequestError where there is none."""
    releases = Releases(home)
    found = releases.read(name) if name else releases.current()
    if found is None:
        raise RequestError("there is no release to train on", where=home, hint="gongqing release NAME")
    return found


def _files(home: Path, release: Release, told: Recipe) -> dict[str, list[Path]]:
    """The files of the recipe's rows by split. What imitates has training rows alone; it is validated on none."""
    folder = Releases(home).folder(release.name)
    files = {
        split: [folder / shard.path for shard in release.configs.get(told.rows, []) if shard.split == split]
        for split in ("train", "validation")
    }
    for split in ("train",) if told.trainer == "sft" else ("train", "validation"):
        if not files[split]:
            raise RequestError(
                f"the release {release.name} has no {split} rows of {told.rows}",
                hint="people have to label candidates first (the table cer_labels: docs/training-sets.md); then "
                "gongqing refresh --select rewrite --select training, and release anew"
                if told.rows in _OF_LABELS
                else "gongqing refresh --select training, then release anew",
            )
    return {split: paths for split, paths in files.items() if paths}


def _of_files(folder: Path, told: Recipe, arm: Arm, files: Mapping[str, list[Path]], most: int | None) -> Overrides:
    trainer = TRAINERS[told.trainer]
    changed = rows.changes(told, arm, most)
    found: Overrides = {}
    for split, paths in files.items():
        read = [str(rows_of_arm(folder, split))] if changed else [str(path) for path in paths]
        found[trainer.train if split == "train" else trainer.validation] = read[0] if len(read) == 1 else read
    return found


def _start(home: Path, told: Recipe, arm: Arm, preset: Preset, release: Release, start: str | None) -> Path | None:
    """The model to start from; None: the recipe's own, or a tiny one."""
    if start is not None:
        return _model(home, start, told.starts or told.name, "--start")
    if told.starts is None or arm.scratch:
        return None
    run = "-".join(filter(None, (told.starts, arm.start_arm, preset, release.name)))
    return _model(home, run, told.starts, "--start")


def _learnt_of(home: Path, release: Release, models: Iterable[Path]) -> list[str]:
    """The releases that a run on this one has learnt of: also what the runs of the home had that left it these models,
    to start from or to be rewarded by. An erasure names it by them, also where those runs are gone by then.
    """
    folders = {folder.resolve() for model in models for folder in model.parents}
    before = [
        folder for folder in folders if folder.parent == Home(home).training.resolve() and (folder / NOTE).exists()
    ]
    return sorted({release.name}.union(*map(learnt_of, before)))


def _model(home: Path, run: str, recipe: str, option: str) -> Path:
    """The model of a run of a recipe that has come to its end."""
    folder = Home(home).training / run
    if not (folder / MODEL).is_dir():
        raise RequestError(
            f"there is no run {run} that has come to its end",
            where=folder / MODEL,
            hint=f"gongqing train {recipe} first, or name a run with {option}",
        )
    if (was := note(folder)["recipe"]) != recipe:
        raise RequestError(f"{run} is a run of {was}, and not of {recipe}", where=option, hint="name another run")
    return folder / MODEL
