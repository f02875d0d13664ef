"""Judges asked about what is there already: answers of an evaluation, rollouts of a run, dialogues of a log."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.core.home import Home
from pipelines.errors import NoVersion, RequestError, UnknownName
from pipelines.evaluate.answering import answer_rows
from pipelines.evaluate.benchmarks import benchmark_rows, last_log, roles_of, run_benchmark
from pipelines.llm.factory import open_client
from pipelines.llm.interface import JUDGES, require_provider
from pipelines.llm.profiles import profiles
from pipelines.llm.progress import Progress
from pipelines.operations.evaluate.evaluating import EvaluationOptions, judge_rows, require_options
from pipelines.operations.evaluate.kept import ANSWERS, FIGURES, keep, last_note, note_key
from pipelines.operations.evaluate.targets import Target
from pipelines.settings import Settings
from pipelines.store.releases import Releases
from pipelines.store.store import Store, Version
from pipelines.train.processes import no_erasure
from pipelines.train.recipe import load_recipe
from pipelines.train.runs import read_note


def rejudge(
    home: Path,
    settings: Settings,
    name: str,
    options: EvaluationOptions,
    *,
    step: int | None = None,
    progress: Progress | None = None,
) -> Version:
    """Asks judges about answers that are there already, and pays for no answer again: those of an evaluation; or, where
    a step is named or there is none of that name, the rollouts of a run of training (those of its last step, or of
    `step`), which are the evaluation `RUN-stepN`. Judges that were asked before are so again, out of the ledger:
    figures of all judges are of all of them. With the suite `esc_eval` two judges are asked about the dialogues of its
    last log; the figures of other pairs stay.

    Raises UnknownName where there is neither, NoVersion where there is no such log, and as `evaluate`.
    """
    if options.suites == ("esc_eval",):
        return _rejudge_dialogues(home, settings, name, options)
    if options.suites != ("judge",):
        raise RequestError("nobody judges that suite again", where=", ".join(options.suites), hint="judge, or esc_eval")
    store = Store(Home(home).data)
    with no_erasure(home):
        answers, note = stored_answers(store, name, step)
        if "step" in note:
            name = f"{name}-step{note['step']}"
        known = last_note(store, name) if name in store.partitions(FIGURES) else {}
        before = known.get("judge", {}).get("judges", [])
        options = replace(options, judges=tuple(dict.fromkeys((*before, *options.judges))))
        require_options(settings.llm, options)
        target = str(note["target"])
        alias = target if target in profiles(settings.llm.profiles) else None  # whose model may judge itself
        own = Target(target, settings.llm, alias)
        with open_client(
            home,
            settings.llm,
            options.provider,
            budget=options.budget,
            budget_of=f"evaluation {name}, again",
            progress=progress,
        ) as client:
            rows = judge_rows(client, own, answers, options)
        made = {"judges": list(options.judges), "samples": options.samples, "provider": options.provider}
        return keep(home, name, answers, rows, note | made)


def _rejudge_dialogues(home: Path, settings: Settings, name: str, options: EvaluationOptions) -> Version:
    require_provider(options.provider, JUDGES)
    roles = roles_of("esc_eval", "", options.judges)
    store, logs = Store(Home(home).data), Home(home).evaluations / name
    last = last_log("esc_eval", logs)
    if last is None:
        hint = "gongqing evaluate TARGET --suite esc_eval"
        raise NoVersion("no dialogues of ESC-Eval are kept under that name", where=logs, hint=hint)
    log, played = last
    roles["seeker"] = played["seeker"]
    kept = name in store.partitions(FIGURES)
    before = store.read(FIGURES, partition=name).filter(suite="esc_eval").collect() if kept else None
    if before is None or before.is_empty():
        hint = "run the same gongqing evaluate again: nothing that was answered is paid for twice"
        raise NoVersion("its dialogues have no figures yet", where=log, hint=hint)
    with no_erasure(home):
        judged = run_benchmark(
            *("esc_eval", home, settings.llm, options.provider, played["tested"], roles, log, logs),
            budget=options.budget,
            budget_of=f"evaluation {name}, again",
        )
        [model], [setting] = set(before["model"]), set(before["mode"])
        rows = benchmark_rows(judged, "esc_eval", model, roles, setting, seed=options.seed)
        others = before.filter(pl.col("judge") != rows[0]["judge"]).to_dicts()
        note = last_note(store, name)[note_key("esc_eval", setting)]
        note = note | {"judges": list(dict.fromkeys((*note["judges"], *options.judges)))}
        return keep(home, name, None, [*rows, *others], note)


def stored_answers(store: Store, name: str, step: int | None = None) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Rows of `model_answers`, and how they were made: those of an evaluation; or, where a step is named or there is no
    evaluation of that name, those of a run's rollouts, with the `step`. Raises UnknownName, and RequestError for a step
    of no run.
    """
    is_run = name in store.partitions("rollouts")
    if name in store.partitions(ANSWERS) and (step is None or not is_run):
        if step is not None:
            raise RequestError("an evaluation has no steps", where=name, hint="leave out --step")
        notes = last_note(store, name)
        note = notes.get("judge") or notes.get("automatic") or {"target": name}
        note = {key: value for key, value in note.items() if key != "step"}  # it is in the name already
        return store.read(ANSWERS, partition=name).collect(), note
    if not is_run:
        known = [*store.partitions(ANSWERS), *store.partitions("rollouts")]
        raise UnknownName("evaluation or run with rollouts", name, known)
    return rollout_answers(store, name, step)


def rollout_answers(store: Store, run: str, step: int | None) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The outputs of a step of a run (its last one by default) as rows of `model_answers`, the first of each prompt's
    group, and how they were made; without those of which nothing says which row was asked. Raises RequestError where
    there is none.
    """
    rollouts = store.read("rollouts", partition=run).drop_nulls("row_id").collect()
    steps = sorted(set(rollouts["step"]))
    if not steps or step not in (None, *steps):
        raise RequestError(
            f"the run {run} has no rollouts of that step", where=step, hint=f"steps {steps[:1]} to {steps[-1:]}"
        )
    step = steps[-1] if step is None else step
    rows = rollouts.filter(step=step).sort("output_index").unique("row_id", keep="first")
    folder = Home(store.storage.root.parent).training / run
    recipe, release = load_recipe(read_note(folder)["recipe"]), read_note(folder)["release"]["name"]
    prompts = Releases(folder.parents[1]).frame(release, recipe.rows).collect()
    outputs: dict[str, tuple[str, str | None]] = {
        row_id: (output, None) for row_id, output in rows.select("row_id", "output").iter_rows()
    }
    splits = " and ".join(sorted(set(rows["split"].drop_nulls())))
    note = {"target": run, "prompts": recipe.rows, "split": splits, "release": release, "step": step}
    return answer_rows(prompts, run, outputs), note
