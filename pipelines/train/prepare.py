"""A run of a recipe on a release: its name, its rows, what it starts from, and whom it asks."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from pipelines.train.launch import Run, rewritten_rows
from pipelines.train.recipe import (
    REWARD_SETTING,
    SETTINGS_PLACE,
    Ablation,
    Kind,
    Overrides,
    Preset,
    Recipe,
    Service,
    build_overrides,
    fits,
    kind_of,
    load_recipe,
)
from pipelines.train.rows import are_rewritten, require_variants
from pipelines.train.runs import MODEL, NOTE, ROLLOUTS, START, learnt_releases, read_note
from pipelines.train.services import PYTHON, Judge, judge_command
from pipelines.train.trainers import TRAINERS, folder_settings

ENCODER = "empathy_encoder"  # the recipe whose model E's reward asks
_HELD = (
    *("reward.reward_manager.source", "reward.reward_manager.name", "reward.reward_manager.module.path"),
    *("trainer.v1.sampler.custom_sampler.path", "trainer.v1.sampler.custom_sampler.name", "trainer.logger"),
    *("trainer.use_v1", "trainer.v1.trainer_mode"),  # what they name asks that sampler
    "data.train_max_samples",  # rows are chosen before they are counted
)
# A partition of `rollouts` has its name, and 16 hex digits are a version of the store's.
_NAME = re.compile(r"(?![0-9a-f]{16}$)[A-Za-z0-9][A-Za-z0-9._-]{0,120}")
_OF_LABELS = ("sft_cer", "rm_process", "rm_outcome", "rm_unified")  # empty until people have labelled


def prepare(
    home: Path,
    recipe: Recipe,
    preset: Preset,
    *,
    ablation: str = "",
    release: str | None = None,
    name: str = "",
    start: str | None = None,
    encoder: str | None = None,
    provider: JudgeProvider | None = None,
    budget: Decimal | None = None,
    rewards: Rewards | None = None,
    most_rows: int | None = None,
    settings: Mapping[str, Any] | None = None,
    awaited: Collection[str] = (),
) -> Run:
    """A run of a recipe on a release, the current one unless another is named.

    Args:
        home: Where the releases are, and the run's folder will be.
        recipe, preset: What is trained, and on what kind of machine.
        ablation: Of the recipe; empty: the paper's own set-up.
        release: Of the home.
        name: Of the run; default: recipe, ablation, preset and release.
        start: The run whose model this one starts from, of its recipe or of one of `Recipe.starts`; default: the run of
            `Recipe.start` on the same release.
        encoder: The run whose encoder the reward asks; default: that of `ENCODER` on the same release.
        provider: Who judges. A `gpu` run that is judged has to name it. `none`, the default of `cpu_smoke`: nobody; the
            reward is what needs no judge, format and redundancy.
        budget: The most that judging may cost.
        rewards: Which models judge, how long they may take, and how many may fail.
        most_rows: Train on so many rows; default: on all.
        settings: Settings of the trainer's that win over the recipe's.
        awaited: Runs that will have ended before this one starts.

    Raises:
        UnknownName: No such ablation.
        RequestError: No environment to train in, no release, one without the rows of the recipe or of a variant that
            its ablation names, or no run of that name to start from or to ask.
    """
    if not PYTHON.exists():
        raise RequestError("there is no environment to train in", where=PYTHON, hint="make train-env")
    for option, value in (("--name", name), ("--start", start), ("--encoder", encoder)):
        if value and not _NAME.fullmatch(value):
            hint = "letters, digits, . _ and -, and not 16 hex digits, which are a version"
            raise RequestError(f"{value!r} is no name of a run", where=option, hint=hint)
    settings = settings or {}
    chosen = recipe.ablation(ablation)
    if chosen.recipe is not None:
        recipe = load_recipe(chosen.recipe)
    trainer = TRAINERS[recipe.trainer]
    released = find_release(home, release)
    batch = build_overrides(recipe, preset, settings, ablation=chosen).get("data.train_batch_size")
    files = _files(home, released, recipe, batch if isinstance(batch, int) else 1)
    require_variants(files["train"], recipe, chosen)
    folder = Home(home).training / (name or "-".join(filter(None, (recipe.name, ablation, preset, released.name))))
    ours = _file_settings(folder, recipe, chosen, files, most_rows)
    ours |= folder_settings(recipe.trainer, folder, folder / ROLLOUTS)
    if start is not None and start in awaited:
        model: Path | None = Home(home).training / start / MODEL
    else:
        model = _start(home, recipe, chosen, preset, released, start)
    if model is not None or preset == "cpu_smoke":
        ours[trainer.model] = str(model or folder / START)
    if recipe.reward:
        ours["reward.custom_reward_function.path"] = f"pkg://pipelines.rewards.{recipe.reward}"
        ours["reward.custom_reward_function.name"] = "compute_score"
    _refuse_idle(recipe, encoder, provider, budget)
    details: dict[str, Any] = {"ablation": ablation, "most_rows": most_rows}
    services: dict[Service, list[str]] = {}
    if "encoder" in recipe.services or encoder:
        encoder_folder = _model(home, encoder or f"{ENCODER}-{preset}-{released.name}", (ENCODER,), "--encoder")
        services["encoder"] = [str(PYTHON), "-m", "pipelines.train.encoder", str(encoder_folder)]
        details["encoder"] = str(encoder_folder.relative_to(home))
    judge = _judge(recipe, chosen, preset, provider, budget, rewards or Rewards())
    if judge is not None:
        services["judge"] = judge_command(home, folder.name, judge)
        details["judge"] = {"provider": judge.provider, **judge.models, "mode": judge.mode}
    elif "judge" in recipe.services:
        ours[f"+reward.{REWARD_SETTING}judge"] = False
        details["judge"] = {"provider": "none", "reward": "format and redundancy alone"}
    _refuse_unknown_settings(recipe, settings)
    _refuse_ours(recipe, ours, settings)
    overrides = build_overrides(recipe, preset, {**ours, **settings}, ablation=chosen)
    steps = overrides.get(trainer.steps)  # the run reads it before verl does
    if steps is not None and (kind_of(steps) != "a whole number" or int(steps) < 1):
        what = f"{trainer.steps} is to be a whole number of 1 or more, and {steps!r} is not"
        raise RequestError(what, where=SETTINGS_PLACE)
    weights = [overrides.get(trainer.model, ""), home / details.get("encoder", "")]
    details["learnt_of"] = _learnt_of(home, released, map(Path, weights))
    return Run(folder, recipe, chosen, preset, released, files, overrides, most_rows, judge, services, details)


def used_options(recipe: Recipe) -> set[str]:
    """Of `provider`, `budget` and `encoder` those that mean something to a run of a recipe."""
    judged = {"provider", "budget"} if "judge" in recipe.services else set()
    return judged | ({"encoder"} if recipe.trainer == "grpo" and recipe.reward != "mindchat" else set())


def find_release(home: Path, name: str | None) -> Release:
    """A release by its name, by default the current one. Raises RequestError where there is none."""
    releases = Releases(home)
    release = releases.read(name) if name else releases.current()
    if release is None:
        raise RequestError("there is no release to train on", where=home, hint="gongqing release NAME")
    return release


def _judge(
    recipe: Recipe,
    ablation: Ablation,
    preset: Preset,
    provider: JudgeProvider | None,
    budget: Decimal | None,
    rewards: Rewards,
) -> Judge | None:
    if "judge" not in recipe.services or provider == "none":
        return None
    if provider is None:
        if preset == "cpu_smoke":
            return None
        raise RequestError(
            f"--provider is missing: a judge gives the reward {recipe.reward}",
            where=recipe.name,
            hint="--provider openai (a model, with --budget), or --provider none: format and redundancy alone",
        )
    models = {"model": getattr(rewards, recipe.reward)}
    if ablation.judging == "apart":
        models |= {"model-process": rewards.compeer_process, "model-outcome": rewards.compeer_outcome}
    return Judge(provider, models, budget, ablation.judging, rewards)


def _refuse_idle(recipe: Recipe, encoder: str | None, provider: str | None, budget: Decimal | None) -> None:
    """Options without effect, and a budget that is no money."""
    if budget is not None:
        nano(budget)
    for option, value in (("provider", provider), ("budget", budget), ("encoder", encoder)):
        if value is not None and option not in used_options(recipe):
            raise RequestError(f"{recipe.name} has no use for --{option}", where=value, hint="leave it out")
    if budget is not None and provider == "none":
        raise RequestError("nobody judges, and so nothing is spent", where="--budget", hint="leave it out")


def _refuse_unknown_settings(recipe: Recipe, settings: Mapping[str, Any]) -> None:
    """verl's workers would meet a setting that the reward does not have in the first step."""
    reward = import_module(f"pipelines.rewards.{recipe.reward}") if recipe.reward else None
    known = getattr(reward, "SETTINGS", {})
    for key, value in settings.items():
        _, separator, name = key.partition(REWARD_SETTING)
        if not separator:
            continue
        if name not in known:
            raise UnknownName(f"setting of the reward {recipe.reward}", name, known)
        wanted = known[name]
        if isinstance(wanted, tuple) and value not in wanted:
            raise UnknownName(f"{name} of the reward {recipe.reward}", str(value), wanted)
        if isinstance(wanted, str) and not fits(value, cast(Kind, wanted)):
            raise RequestError(
                f"{name} of the reward {recipe.reward} is to be {wanted}, and {value!r} is not",
                where=f"{key}: {SETTINGS_PLACE}",
                hint="look at docs/training.md, Rewards",
            )


def _refuse_ours(recipe: Recipe, ours: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """With other values of its own settings a run would not find its files, or lose its rewards."""
    model = TRAINERS[recipe.trainer].model
    held = {*(key.removeprefix("+") for key in ours), *_HELD} - {model}
    for key, value in settings.items():
        bare = key.removeprefix("+")
        within = any(one.startswith(f"{bare}.") for one in (*held, model))  # a part that holds it goes with it
        if bare in held or within:
            raise RequestError(f"{key} is the run's own to set", where=SETTINGS_PLACE, hint="leave it out")
        if bare == model and not isinstance(value, str):
            raise RequestError(f"{value!r} is no model to start from", where=f"{key}: {SETTINGS_PLACE}", hint="name it")


def _files(home: Path, release: Release, recipe: Recipe, batch: int = 1) -> dict[str, list[Path]]:
    """The files of the recipe's rows by split. Of SFT reward models are validated and warm starts are not, which have
    no held-out rows; nor is it validated on fewer rows than one batch takes, for verl leaves out what fills no batch.
    """
    folder = Releases(home).folder(release.name)
    files = {
        split: [folder / shard.path for shard in release.configs.get(recipe.rows, []) if shard.split == split]
        for split in ("train", "validation")
    }
    if recipe.trainer == "sft" and release.rows(recipe.rows, "validation") < batch:
        files["validation"] = []
    for split in ("train",) if recipe.trainer == "sft" else ("train", "validation"):
        if not files[split]:
            raise RequestError(
                f"the release {release.name} has no {split} rows of {recipe.rows}",
                hint="people have to label candidates first (the table cer_labels: docs/reviewing.md); then "
                "gongqing refresh --select rewrite --select training, and another release"
                if recipe.rows in _OF_LABELS
                else "gongqing refresh --select training, then make another release",
            )
    return {split: paths for split, paths in files.items() if paths}


def _file_settings(
    folder: Path, recipe: Recipe, ablation: Ablation, files: Mapping[str, list[Path]], most: int | None
) -> Overrides:
    trainer = TRAINERS[recipe.trainer]
    rewritten = are_rewritten(recipe, ablation, most)
    settings: Overrides = {}
    for split, paths in files.items():
        names = [str(rewritten_rows(folder, split))] if rewritten else [str(path) for path in paths]
        settings[trainer.train if split == "train" else trainer.validation] = names[0] if len(names) == 1 else names
    if recipe.trainer == "sft" and "validation" not in files:
        settings["trainer.test_freq"] = -1  # else verl would look for rows to validate on
    return settings


def _start(
    home: Path, recipe: Recipe, ablation: Ablation, preset: Preset, release: Release, start: str | None
) -> Path | None:
    """The model to start from; None: the recipe's own, or a tiny one."""
    if start is not None:
        return _model(home, start, (*recipe.starts, recipe.name), "--start")
    first = recipe.start(ablation)
    if first is None:
        return None
    run = "-".join(filter(None, (first, ablation.start, preset, release.name)))
    return _model(home, run, (first,), "--start")


def _learnt_of(home: Path, release: Release, models: Iterable[Path]) -> list[str]:
    """The releases that a run on this one has learnt of: also what the runs of the home had that left it these models,
    to start from or to be rewarded by. An erasure names it by them, also where those runs are gone by then.
    """
    folders = {folder.resolve() for model in models for folder in model.parents}
    training = Home(home).training.resolve()
    runs = [folder for folder in folders if folder.parent == training and (folder / NOTE).exists()]
    return sorted({release.name}.union(*map(learnt_releases, runs)))


def _model(home: Path, run: str, recipes: Sequence[str], option: str) -> Path:
    """The model of a run of one of some recipes that has ended."""
    folder = Home(home).training / run
    if not (folder / MODEL).is_dir():
        raise RequestError(
            f"there is no run {run} that has come to its end",
            where=folder / MODEL,
            hint=f"gongqing train {recipes[0]} first, or name a run with {option}",
        )
    if (was := read_note(folder)["recipe"]) not in recipes:
        wanted = " or ".join(recipes)
        hint = f"name a run of {wanted}, or leave {option} out"
        raise RequestError(f"{run} is a run of {was}, and not of {wanted}", where=option, hint=hint)
    return folder / MODEL
