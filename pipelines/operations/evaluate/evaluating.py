"""An evaluation: answers to held-out prompts of a release, their figures beside three baselines, and what judges say.

It is kept under its name: the answers in `model_answers`, the figures in `evaluations`, a partition each. Broken off,
the same command goes on: what was paid for is in the ledger.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import polars as pl

from pipelines.core.estimates import estimate_share
from pipelines.core.home import Home
from pipelines.errors import NoVersion, RequestError, UnknownName
from pipelines.evaluate.answering import SETS, ask_model, baseline_rows, draw_prompts, read_answers
from pipelines.evaluate.benchmarks import (
    FIVE_ROUNDS,
    LOG,
    ROLES,
    Benchmark,
    benchmark_rows,
    require_seekers,
    roles_of,
    run_benchmark,
)
from pipelines.evaluate.data import evaluate_sets
from pipelines.evaluate.emotions import TURNS
from pipelines.evaluate.judge_figures import ALL_JUDGES, bias_figures, judge_figures
from pipelines.evaluate.judges import SAMPLES, judge_answers, require_judges, reward_model_rows
from pipelines.evaluate.metrics import BASELINES, Answer, score_answers
from pipelines.evaluate.ranking import compare_models, rank_models
from pipelines.evaluate.reward_model import score_encoder, score_triplets
from pipelines.llm.factory import open_client
from pipelines.llm.interface import JUDGES, LLMClient, require_provider
from pipelines.llm.profiles import profile, profiles
from pipelines.llm.progress import Progress
from pipelines.operations.evaluate.kept import keep
from pipelines.operations.evaluate.targets import Kind, Target, kind_of, open_target
from pipelines.operations.release import chosen
from pipelines.settings import Llm, Settings
from pipelines.store.releases import Releases, require_name
from pipelines.store.store import Store, Version
from pipelines.train.processes import no_erasure
from pipelines.train.recipe import load_recipe
from pipelines.train.runs import list_runs, read_note
from pipelines.trainsets.labelled import Labelled, labelled
from schemas.personas import RewrittenRounds

Suite = Literal["automatic", "judge", "reward_model", "sage", "esc_eval"]
SUITES: tuple[Suite, ...] = get_args(Suite)
_OF_ANSWERS = ("automatic", "judge")  # suites over answers to held-out prompts
PEOPLE, DATA = "people", "data-"  # the evaluation with the figures of people's rankings; those of releases begin so


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions:
    """How an evaluation is made; what is None is not asked for."""

    suites: Sequence[str] = ("automatic",)
    release: str | None = None  # None: the current one
    prompts: str | None = None  # None: those of the run's recipe, else grpo_coe
    split: str = "test"
    size: int | None = 100  # prompts; None: all, as of a file. E asked 2,000
    judges: Sequence[str] = ()
    samples: int = SAMPLES
    seekers: Path | None = None  # profiles of seekers, for the dialogue benchmarks
    seeker: str | None = None  # the profile of the model that plays them
    setting: str = "published"  # of SAGE
    provider: str = "openai"
    budget: Decimal | None = None
    seed: int = 0


class Evaluated(NamedTuple):
    """The figures that were kept, and how many prompts have no answer, by reason."""

    version: Version
    unanswered: Mapping[str, int]


def evaluate(
    home: Path,
    settings: Settings,
    target: str,
    options: EvaluationOptions,
    *,
    name: str | None = None,
    progress: Progress | None = None,
) -> Evaluated:
    """Evaluates a file of answers, a model of a profile, or the model of a run (`open_target`), under a name.

    Raises UnknownName and RequestError for what cannot be evaluated so, and what asking models raises: then nothing is
    kept but the ledger.
    """
    options = replace(options, prompts=options.prompts or default_prompts(home, target))
    require_options(settings.llm, options)
    kind = kind_of(home, settings.llm, target)
    _require_fit(kind, target, options)
    name = name or (Path(target).stem if kind == "file" else target)
    require_name(name, "an evaluation")
    if name == PEOPLE or name.startswith(DATA):
        raise RequestError("that name is kept for other figures", where=name, hint="--name, another")
    with no_erasure(home):
        material = _gather(home, kind, options)  # before a model is served: what is missing is refused at once
        with open_target(home, settings.llm, target) as opened:
            if options.suites[0] in ROLES:
                made = _run_benchmark(home, opened, options, name)
            else:
                made = _measure(home, opened, material, options, _budget_of(name, options), progress)
        note = {**note_of(target, options), **material.note, "unanswered": made.unanswered, "seconds": made.seconds}
        return Evaluated(keep(home, name, made.answers, made.rows, note), made.unanswered)


def evaluate_people(home: Path, *, seed: int = 0) -> Version:
    """The figures of all rankings and comparisons by people (M, E, C), as the evaluation `people`: rankings of other
    models are another study. Raises NoVersion where nobody has ranked, RequestError for what is no ranking.
    """
    store = Store(Home(home).data)
    if not store.current("rankings"):
        raise NoVersion("nobody has ranked anything yet", hint="gongqing review export rank, or compare")
    rankings = store.read("rankings").collect()
    rows: list[dict[str, Any]] = []
    studies = rankings.with_columns(study=pl.col("models").list.sort().list.join(", ")).partition_by(
        "study", as_dict=True, maintain_order=True
    )
    ranked = [study for study, of in studies.items() if not of.filter(kind="rank").is_empty()]
    for study in ranked:
        mode = f"among {study[0]}" if len(ranked) > 1 else ""
        for one in rank_models(studies[study], seed=seed).iter_rows(named=True):
            about = {"suite": PEOPLE, "model": one["model"], "judge": "", "mode": mode, "subset": "all"}
            for metric in ("win1", "win2", "mean_rank"):
                figures = {"value": one[metric], "low": one[f"{metric}_low"], "high": one[f"{metric}_high"]}
                rows.append(about | {"metric": metric, "n": one["n_rankings"]} | figures)
    for one in compare_models(rankings, seed=seed).iter_rows(named=True):
        about = {
            "suite": PEOPLE,
            "model": one["model"],
            "judge": "",
            "mode": f"against {one['other']}",
            "subset": "all",
        }
        figures = {"value": one["win_rate"], "low": one["win_rate_low"], "high": one["win_rate_high"]}
        n = one["wins"] + one["losses"] + one["both_good"] + one["neither"]
        rows.append(about | {"metric": "win_rate", "n": n} | figures)
    return keep(home, PEOPLE, None, rows, {"target": "rankings"})


def evaluate_data(home: Path, name: str | None, *, seed: int = 0) -> Version:
    """The figures of the data of a release, or of the current one, as the evaluation `data-NAME`. Raises UnknownName,
    and DamagedRelease where a file of it is missing or another.
    """
    releases = Releases(home)
    name = chosen(releases, name)
    release = releases.read(name)
    with no_erasure(home):
        rows = evaluate_sets({one: releases.frame(name, one).collect() for one in release.configs}, seed=seed)
        if not rows:
            hint = "prompt sets and chats are measured (docs/evaluating.md)"
            raise RequestError("nothing in the release can be measured", where=name, hint=hint)
        for one in release.agreement:
            about = {"suite": "data", "model": f"labels of people, {one.kind}", "judge": "", "mode": one.question}
            value, low, high = one.figures.get("alpha") or (None, None, None)
            figures = {"n": one.items, "value": value, "low": low, "high": high}
            rows.append(about | {"metric": "alpha", "subset": "all"} | figures)
        return keep(home, f"{DATA}{name}", None, rows, {"release": name, "content": release.content})


def default_prompts(home: Path, target: str) -> str:
    """The prompt set whose form the model of a run has learnt; that of E for whatever is no run."""
    runs = {run.name: run for run in list_runs(home)}
    if target not in runs:
        return "grpo_coe"
    rows = load_recipe(read_note(runs[target])["recipe"]).rows
    return rows if rows in SETS else rows.replace("sft_", "grpo_") if rows.startswith("sft_") else "grpo_cer"


def held_out_labels(store: Store) -> list[Labelled]:
    """The candidates of validation and test that people labelled. Raises NoVersion where there is none."""
    tables = ("sampled_turns", "splits", "cer_candidates", "cer_labels")
    if all(store.current(table) for table in tables):
        turns, splits, candidates, labels = (store.read(table).collect() for table in tables)
        kept, _ = labelled(turns, splits, candidates, labels, RewrittenRounds.create_empty())
        if held_out := [one for one in kept if one.split != "train"]:
            return held_out
    raise NoVersion("people have labelled no candidate of validation or test", hint="gongqing review export cer")


def require_options(llm: Llm, options: EvaluationOptions) -> None:
    """Raises UnknownName and RequestError for options that are none, or do not go together."""
    require_provider(options.provider, JUDGES)  # nobody has written what a model will answer
    for suite in options.suites:
        if suite not in SUITES:
            raise UnknownName("suite", suite, SUITES)
    if len(set(options.judges)) < len(options.judges):
        raise RequestError("a judge is named twice", where=", ".join(options.judges), hint="name each once")
    if options.split not in ("test", "validation"):
        raise RequestError("a model is evaluated on what is held out", where=options.split, hint="test, or validation")
    if options.samples < 1 or (options.size is not None and options.size < 1):
        raise RequestError("of nothing there is no figure", hint="samples and size are 1 or more; of size 0 means all")
    if options.prompts not in (None, *SETS):
        raise UnknownName("set of prompts", str(options.prompts), SETS)
    if not options.suites:
        raise RequestError("no suite is named", hint=f"--suite, one of {', '.join(SUITES)}")
    if not set(options.suites).isdisjoint(ROLES):
        _require_benchmark(llm, options)
        return
    if ("judge" in options.suites) != bool(options.judges):
        raise RequestError("the suite judge and its judges belong together", hint="--suite judge --judge PROFILE")
    require_judges(llm, options.judges, options.samples)


def _require_benchmark(llm: Llm, options: EvaluationOptions) -> None:
    if len(options.suites) > 1:
        hint = "give the command once for each; they are kept under one name"
        raise RequestError("a dialogue benchmark is run by itself: it has a budget of its own", hint=hint)
    if options.seekers is None or options.seeker is None:
        hint = "--seekers FILE --seeker PROFILE (docs/evaluating.md)"
        raise RequestError(f"{options.suites[0]} needs profiles of seekers, and who plays them", hint=hint)
    if options.seekers.suffix == LOG:
        raise RequestError("a log is judged again", where=options.seekers, hint="gongqing evaluate rejudge NAME")
    if options.setting not in TURNS:
        raise UnknownName("setting of SAGE", options.setting, TURNS)
    for alias in roles_of(_benchmark(options), options.seeker, options.judges).values():
        profile(profiles(llm.profiles), alias)


def judge_rows(
    client: LLMClient, target: Target, answers: pl.DataFrame, options: EvaluationOptions
) -> list[dict[str, Any]]:
    """What judges say of answers, and what is wrong with the judges: rows of the suites `judge` and `bias`."""
    judged = judge_answers(client, answers, options.judges, options.samples, options.seed)
    lengths = answers.select("row_id", "model", n_chars=pl.col("answer").str.len_chars())
    # A person's answer stands in for another model's: beside it a judge's own and its length are told.
    baselines = set(answers.filter("baseline")["model"]) - {"sibling"}
    known = profiles(target.llm.profiles)
    asked = {target.name: profile(known, target.alias).model} if target.alias is not None else {}
    own = {
        judge: [one for one in set(answers["model"]) if asked.get(one, one) in (judge, profile(known, judge).model)]
        for judge in options.judges
    }
    unread = [_unread_row(str(model), of_model) for (model,), of_model in sorted(answers.group_by("model"))]
    return [*judge_figures(judged), *unread, *bias_figures(judged, lengths, own, baselines)]


def _unread_row(model: str, answers: pl.DataFrame) -> dict[str, Any]:
    """How many outputs of a model no judge was asked about, for they cannot be read as an answer."""
    unread = answers["answer"].is_null().cast(pl.Float64).to_numpy()
    about = {"suite": "judge", "model": model, "judge": ALL_JUDGES, "metric": "no_answer", "mode": "", "subset": "all"}
    return about | {"n": len(answers)} | estimate_share(unread, answers["row_id"])._asdict()


def note_of(target: str, options: EvaluationOptions) -> dict[str, Any]:
    """What an evaluation remembers of how it was made."""
    made = {key: value for key, value in asdict(options).items() if key not in ("release", "budget", "suites")}
    return {"target": target} | {key: str(value) if isinstance(value, Path) else value for key, value in made.items()}


class _Material(NamedTuple):
    """What a target is put to, and what of it the note tells."""

    note: Mapping[str, Any] = {}
    prompts: pl.DataFrame | None = None
    labels: Sequence[Labelled] = ()
    triplets: pl.DataFrame | None = None


class _Measured(NamedTuple):
    """Rows of `evaluations`, the answers they are of, and the seconds of each suite, and of the answers."""

    rows: list[dict[str, Any]]
    seconds: Mapping[str, float]
    answers: pl.DataFrame | None = None
    unanswered: Mapping[str, int] = {}


def _budget_of(name: str, options: EvaluationOptions) -> str:
    """The name of a budget: two commands of other suites may be at work under one name."""
    return f"evaluation {name}: {', '.join(options.suites)}"


def _benchmark(options: EvaluationOptions) -> Benchmark:
    return "sage" if options.suites[0] == "sage" else "esc_eval"


def _require_fit(kind: Kind, target: str, options: EvaluationOptions) -> None:
    """Raises RequestError for suites that a target cannot be put to, and for a model that is called as a baseline."""
    if kind == "file" and not set(options.suites) <= set(_OF_ANSWERS):
        hint = f"of answers there are the suites {', '.join(_OF_ANSWERS)}"
        raise RequestError("a file of answers cannot be asked", where=target, hint=hint)
    if kind == "encoder" and set(options.suites) != {"reward_model"}:
        raise RequestError("an encoder writes no answer", where=target, hint="--suite reward_model")
    if kind != "file" and target in BASELINES:
        raise RequestError("a model is called as a baseline", where=target, hint="give it another name")


def _gather(home: Path, kind: Kind, options: EvaluationOptions) -> _Material:
    """Reads what a target is put to. Raises UnknownName and NoVersion for what is not there, and RequestError for a
    release without held-out triplets.
    """
    if options.suites[0] in ROLES:
        require_seekers(options.seekers, options.suites[0])
        return _Material()
    releases = Releases(home)
    release = chosen(releases, options.release)
    note = {"release": release, "content": releases.read(release).content}
    if kind == "encoder":
        triplets = releases.frame(release, "rm_triplets", options.split).collect()
        if triplets.is_empty():
            raise RequestError(
                f"the release has no triplets in {options.split}", hint="--release, or --split validation"
            )
        return _Material(note, triplets=triplets)
    prompts = None
    if not set(_OF_ANSWERS).isdisjoint(options.suites):
        prompts = releases.frame(release, str(options.prompts), options.split).collect()
        prompts = prompts.filter(pl.col("variant").fill_null("none") == "none")
        prompts = draw_prompts(prompts, None if kind == "file" else options.size, options.seed)
    labels = held_out_labels(Store(Home(home).data)) if "reward_model" in options.suites else ()
    return _Material(note, prompts, labels)


def _measure(
    home: Path,
    target: Target,
    material: _Material,
    options: EvaluationOptions,
    budget_of: str,
    progress: Progress | None,
) -> _Measured:
    """The suites over a release, and over labels."""
    seconds: dict[str, float] = {}
    if material.triplets is not None:
        with _timed(seconds, "reward_model"):
            return _Measured(_encoder_rows(material.triplets, target, options), seconds)
    llm = target.llm
    if material.labels:  # that its verdicts cannot be read is a figure, and no reason to stop
        llm = llm.model_copy(update={"failures": 1.0})
    answers: pl.DataFrame | None = None
    unanswered: Mapping[str, int] = {}
    rows: list[dict[str, Any]] = []
    with open_client(
        home, llm, options.provider, budget=options.budget, budget_of=budget_of, progress=progress
    ) as client:
        if material.prompts is not None:
            with _timed(seconds, "answers"):
                answers, unanswered = _answers(client, target, material.prompts)
            answered = material.prompts.filter(pl.col("row_id").is_in(answers["row_id"].implode()))
            answers = pl.concat([answers, baseline_rows(answered, options.seed)])
        if answers is not None and "automatic" in options.suites:
            with _timed(seconds, "automatic"):
                rows += _automatic_rows(answers, options)
        if answers is not None and "judge" in options.suites:
            with _timed(seconds, "judge"):
                rows += judge_rows(client, target, answers, options)
        if material.labels:
            with _timed(seconds, "reward_model"):
                rows += reward_model_rows(client, material.labels, str(target.alias), target.name, options.seed)
    return _Measured(rows, seconds, answers, unanswered)


@contextmanager
def _timed(seconds: dict[str, float], what: str) -> Iterator[None]:
    """Writes down what the block has taken."""
    started = time.monotonic()
    yield
    seconds[what] = round(time.monotonic() - started, 1)


def _answers(client: LLMClient, target: Target, prompts: pl.DataFrame) -> tuple[pl.DataFrame, Mapping[str, int]]:
    if target.file is not None:
        answers = read_answers(target.file, prompts)
        lacking = len(prompts) * answers["model"].n_unique() - len(answers)
        return answers, {"not_in_the_file": lacking} if lacking else {}
    assert target.alias is not None
    return ask_model(client, target.alias, prompts, target.name)


def _run_benchmark(home: Path, target: Target, options: EvaluationOptions, name: str) -> _Measured:
    assert options.seekers is not None
    assert options.seeker is not None
    benchmark = _benchmark(options)
    roles = roles_of(benchmark, options.seeker, options.judges)
    setting = options.setting if benchmark == "sage" else FIVE_ROUNDS
    logs = Home(home).evaluations / name
    seconds: dict[str, float] = {}
    with _timed(seconds, benchmark):
        log = run_benchmark(
            *(benchmark, home, target.llm, options.provider, str(target.alias), roles, options.seekers, logs),
            setting=options.setting,
            form="cer" if options.prompts == "grpo_cer" else "plain",
            budget=options.budget,
            budget_of=_budget_of(name, options),
        )
        return _Measured(benchmark_rows(log, benchmark, target.name, roles, setting, seed=options.seed), seconds)


def _encoder_rows(triplets: pl.DataFrame, target: Target, options: EvaluationOptions) -> list[dict[str, Any]]:
    """E's encoder on held-out triplets; the subset is the kind of negative."""
    assert target.encode is not None
    about = {"suite": "reward_model", "model": target.name, "judge": "", "metric": "auc", "mode": options.split}
    areas = score_encoder(score_triplets(triplets, target.encode), seed=options.seed)
    areas = areas.select("low", "high", subset="kind", n="n_negatives", value="auc")
    return [about | row for row in areas.to_dicts()]


def _automatic_rows(answers: pl.DataFrame, options: EvaluationOptions) -> list[dict[str, Any]]:
    """E §4.1.4 of each model and baseline, and how many outputs of a model have the form of the set. What cannot be
    read as an answer scores as an empty one: nobody gains by what a seeker would not see.
    """
    rows = []
    holds = SETS[str(options.prompts)].holds
    for (model,), of_model in sorted(answers.group_by("model")):
        texts = of_model.select("row_id", "answer", "references").iter_rows()
        table = score_answers([Answer(row_id, text or "", references) for row_id, text, references in texts])
        about = {"suite": "automatic", "model": model, "judge": "", "subset": "all"}
        rows += [about | row for row in table.rename({"n_answers": "n"}).to_dicts()]
        if not of_model["baseline"].any():
            form = np.array([float(holds(output)) for output in of_model["output"]])
            estimate = estimate_share(form, of_model["row_id"])
            rows.append(about | {"metric": "form", "mode": options.prompts, "n": len(form)} | estimate._asdict())
    return rows
