"""Evaluations as assets, one a suite: in jobs of their own, for nobody evaluates by the way.

What a run may spend counts against the cap of all runs in Dagster; no file of the machine is named from the web UI.
"""

from decimal import Decimal
from typing import Any

import dagster as dg
from pydantic import Field

from pipelines.core.home import Home
from pipelines.defs.allowance import allow
from pipelines.defs.presentation import group_of, spelt_out
from pipelines.defs.releases import release
from pipelines.defs.resources import HomeResource, under_way
from pipelines.defs.samples import records
from pipelines.errors import GongqingError, RequestError
from pipelines.llm.profiles import profiles
from pipelines.operations.evaluate.evaluating import SUITES, EvaluationOptions, evaluate, evaluate_data, evaluate_people
from pipelines.store.store import Version
from pipelines.train.runs import list_runs

GROUP = group_of("evaluation")
_ABOUT = {
    "automatic": "BLEU-1, ROUGE-L, METEOR, Distinct-1 beside three baselines (E §4.1.4)",
    "judge": "Scores and biases of judges (M §4.2)",
    "reward_model": "A model as judge of held-out labels (C Table 1)",
    "sage": "SAGE: a seeker who feels",
    "esc_eval": "ESC-Eval: seven dimensions by two judges",
    "people": "Rankings and comparisons by people",
    "data": "The data of a release",
}


class EvaluationConfig(dg.Config):
    """An evaluation, as `gongqing evaluate` has it (docs/evaluating.md). `target` is a run of training or a profile;
    `seekers` the name of a file in the folder `evaluations` of the home.
    """

    target: str
    name: str | None = None
    release: str | None = None
    prompts: str | None = None
    size: int = 100
    judges: list[str] = Field(default_factory=list)
    samples: int = 5
    seekers: str | None = None
    seeker: str | None = None
    setting: str = "published"
    provider: str = "openai"
    budget: float | None = None


class ReleaseToMeasure(dg.Config):
    """Which release; the current one where none is named."""

    release: str | None = None


def _of_models(suite: str) -> dg.AssetsDefinition:
    @dg.asset(name=f"evaluate_{suite}", group_name=GROUP, deps=[release], description=spelt_out(f"{_ABOUT[suite]}."))
    def evaluated(
        context: dg.AssetExecutionContext, config: EvaluationConfig, home: dg.ResourceParam[HomeResource]
    ) -> dg.MaterializeResult[None]:
        settings = home.settings()
        budget = None if config.budget is None else Decimal(str(config.budget))
        try:
            known = [*(run.name for run in list_runs(home.folder)), *profiles(settings.llm.profiles)]
            if config.target not in known:  # a path would let a page read any file into a report
                raise RequestError("the target is no run and no profile", hint=f"one of {', '.join(known)}")
            options = EvaluationOptions(
                suites=(suite,),
                release=config.release,
                prompts=config.prompts,
                size=config.size or None,
                judges=tuple(config.judges),
                samples=config.samples,
                seekers=_seekers(home, config.seekers),
                seeker=config.seeker,
                setting=config.setting,
                provider=config.provider,
                budget=budget,
            )
            if budget is not None:  # after what may be refused: what is allowed counts
                allow(home.folder, settings.llm, f"run {context.run.run_id}", budget, under_way(context.instance))
            version = evaluate(home.folder, settings, config.target, options, name=config.name).version
        except GongqingError as error:
            raise dg.Failure(str(error), allow_retries=False) from error
        return dg.MaterializeResult(metadata=_described(home, version))

    return evaluated


def _seekers(home: HomeResource, name: str | None) -> Any:
    if name is None:
        return None
    folder = Home(home.folder).evaluations
    if "/" in name or not (folder / name).is_file():
        raise RequestError("there is no such file of seekers", where=folder, hint="put it there, and name it alone")
    return folder / name


@dg.asset(name="evaluate_people", group_name=GROUP, description=f"{_ABOUT['people']}.")
def of_people(home: dg.ResourceParam[HomeResource]) -> dg.MaterializeResult[None]:
    """The figures of people's rankings."""
    try:
        return dg.MaterializeResult(metadata=_described(home, evaluate_people(home.folder)))
    except GongqingError as error:
        raise dg.Failure(str(error), allow_retries=False) from error


@dg.asset(name="evaluate_data", group_name=GROUP, deps=[release], description=f"{_ABOUT['data']}.")
def of_data(config: ReleaseToMeasure, home: dg.ResourceParam[HomeResource]) -> dg.MaterializeResult[None]:
    """The figures of a release's data."""
    try:
        return dg.MaterializeResult(metadata=_described(home, evaluate_data(home.folder, config.release)))
    except GongqingError as error:
        raise dg.Failure(str(error), allow_retries=False) from error


def _described(home: HomeResource, version: Version) -> dict[str, Any]:
    """Figures, and no text."""
    rows = home.store().read(version.table, version.version, version.partition).collect()
    shown = [{name: "" if value is None else value for name, value in row.items()} for row in rows.to_dicts()]
    return {
        "evaluation": str(version.partition),
        "figures": records({k: str(v) for k, v in row.items()} for row in shown),
    }


assets = [*map(_of_models, SUITES), of_people, of_data]
jobs = [
    dg.define_asset_job(
        asset.key.to_user_string().replace("evaluate_", "evaluation_"),
        selection=dg.AssetSelection.assets(asset.key),
        description=f"{_ABOUT[asset.key.to_user_string().removeprefix('evaluate_')]} (docs/evaluating.md).",
    )
    for asset in assets
]
