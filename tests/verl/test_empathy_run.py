"""E's whole chain, for real: SFT on chains, an encoder on triplets, and GRPO from that warm start with that encoder.
The policy is trained as a Dagster asset.
"""

import json
import shutil
from decimal import Decimal
from pathlib import Path

import dagster as dg
import pyarrow.parquet as pq
import pytest
from judge_host import JudgeHost
from judge_process import profiles
from train_env import SEED, Trained, failure, materialize, read_lines

from pipelines.errors import RequestError
from pipelines.operations.evaluate.evaluating import EvaluationOptions
from pipelines.operations.evaluate.rejudging import rejudge
from pipelines.rewards.contrastive import MOST_ECHOED, echoed
from pipelines.rewards.empathy import question
from pipelines.rewards.format import coe, section
from pipelines.settings import load
from pipelines.store import Store
from pipelines.store.releases import Releases
from pipelines.train.runs import MODEL, NOTE, SCORED, read_metrics, read_note
from schemas.reasoning import COE_TAGS

pytestmark = [
    pytest.mark.timeout(1500),
    pytest.mark.xdist_group("training"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
    pytest.mark.filterwarnings("ignore:AssetExecutionContext.run_id:DeprecationWarning"),
]

NAME, ENCODER = "e-empathy_coe", f"real-empathy_encoder-s{SEED}"
STEPS, SAVED, PROMPTS, GROUP = 4, 2, 8, 8
KEY = dg.AssetKey("train_empathy_coe")
POLICY = [
    *(f"trainer.total_training_steps={STEPS}", f"trainer.save_freq={SAVED}"),
    *("trainer.test_freq=-1", "trainer.val_before_train=false"),
]


def materialized(home: Path, instance: dg.DagsterInstance, *settings: str) -> dg.ExecuteInProcessResult:
    named = {"name": NAME, "start": "warm", "encoder": ENCODER}
    return materialize(KEY, home, instance, settings=[*POLICY, *settings], **named)


@pytest.fixture(scope="module")
def ran(training_home: Path, warm_start: Path, experiment: Trained):
    """The run of the policy's asset, and the instance that it reported to."""
    with dg.instance_for_test() as instance:
        result = materialized(training_home, instance)
        assert result.success, failure(result)
        yield result, instance


@pytest.fixture(scope="module")
def folder(training_home: Path, ran) -> Path:
    return training_home / "training" / NAME


def test_its_reward_is_the_form_and_the_encoders_similarity_of_the_answer(folder: Path, training_home: Path):
    assert read_note(folder)["overrides"]["actor_rollout_ref.model.path"] == str(folder.parent / "warm" / MODEL)
    encoder = json.loads((folder.parent / ENCODER / MODEL / "encoder.json").read_text())
    rows = pq.read_table(Releases(training_home).folder("v1") / "grpo_coe").to_pylist()
    extra_info = {row["row_id"]: row["extra_info"] for row in rows}
    scored = read_lines(folder / SCORED)
    assert len(scored) == STEPS * PROMPTS * GROUP
    for row in scored:
        terms, answer = row["terms"], section(row["output"], "answer", COE_TAGS)
        assert terms["r_format"] == coe(row["output"])
        assert terms["score"] == terms["r_format"] + terms["r_answer"]
        if answer is None:
            assert terms["similarity"] == terms["r_answer"] == 0
        else:
            assert terms["echo"] == pytest.approx(echoed(question(extra_info[row["row_id"]]), answer))
            fits = terms["similarity"] > encoder["threshold"]["guarded"] and terms["echo"] <= MOST_ECHOED
            assert terms["r_answer"] == fits
    assert any(row["terms"]["similarity"] for row in scored), "the encoder was asked"
    means = [metrics["critic/score/mean"] for metrics in read_metrics(folder).values()]
    total = sum(row["terms"]["score"] for row in scored)
    assert sum(means) * PROMPTS * GROUP == pytest.approx(total, abs=1e-3), "verl was trained with it"


def test_its_steps_are_observed_as_they_are_made(folder: Path, ran):
    _, instance = ran
    records = instance.fetch_observations(KEY, limit=100).records
    observed = {record.asset_observation.metadata["step"].value: record for record in records}
    assert set(range(1, STEPS + 1)) <= observed.keys()
    metrics = read_metrics(folder)
    for step in range(1, STEPS + 1):
        figures = observed[step].asset_observation.metadata
        assert figures["reward"].value == pytest.approx(metrics[step]["critic/score/mean"])
        assert {"length", "entropy"} <= figures.keys()
    assert observed[STEPS].timestamp - observed[1].timestamp > 0.2, "live, and not all at the end"


def test_its_rows_are_logged_before_its_steps(ran):
    result, instance = ran
    messages = [one.user_message for one in instance.all_logs(result.run_id)]
    [rows] = [place for place, one in enumerate(messages) if one.startswith("text only: ")]
    assert "\nprompts of train: " in messages[rows]
    assert rows < min(place for place, one in enumerate(messages) if one.startswith("step 1 of"))


def test_its_materialisation_shows_what_it_was_made_of_and_what_it_left(ran):
    (event,) = ran[0].get_asset_materialization_events()
    metadata = event.materialization.metadata
    assert (metadata["release"].value, metadata["steps"].value) == ("v1", STEPS)
    assert [record.data["step"] for record in metadata["checkpoints"].records] == [SAVED, STEPS]
    assert Path(metadata["model"].path, "config.json").exists()
    assert Path(metadata["page"].path).read_text(encoding="utf-8").count("<img") >= 4
    assert list(Path(metadata["tensorboard"].path).iterdir())
    terms = {one.data["term"]: one.data for one in metadata["terms_of_the_reward"].records}
    assert metadata["judge_ok"].value == terms["judge_ok"]["last"] == 1
    assert {"plot: terms of the reward", "plot: share of outputs with the judge's verdict"} <= metadata.keys()


def test_its_outputs_are_a_table_and_every_one_met_what_was_scored_for_it(folder: Path, training_home: Path):
    store = Store(training_home / "data")
    version = store.version("rollouts", partition=NAME)
    note = version.manifest.runs[-1].note
    assert version.rows == note["outputs"] == STEPS * PROMPTS * GROUP
    assert (note["unscored"], version.dropped) == (0, 0)
    rows = store.read("rollouts", partition=NAME).collect()
    assert rows["row_id"].null_count() == 0
    assert set(rows["split"]) == {"train"}
    assert set(rows.group_by("step", "uid").len()["len"]) == {GROUP}


def test_the_same_run_again_reports_the_same_and_another_of_its_name_fails(training_home: Path, ran):
    _, instance = ran
    again = materialized(training_home, instance)
    assert again.success
    (event,) = again.get_asset_materialization_events()
    assert event.materialization.metadata["steps"].value == STEPS
    assert len(Store(training_home / "data").versions("rollouts", NAME)) == 1
    other = failure(materialized(training_home, instance, "data.seed=5"))
    assert "asked for something else" in other.user_failure_data.description


def test_what_it_wrote_last_is_judged_again_without_it(training_home: Path, ran, tmp_path: Path):
    home = tmp_path / "home"
    for part in (f"data/rollouts/{NAME}", "releases"):
        shutil.copytree(training_home / part, home / part)
    (home / "training" / NAME).mkdir(parents=True)
    shutil.copy(training_home / "training" / NAME / NOTE, home / "training" / NAME)
    with JudgeHost() as host:
        profiles(home, host.base_url, profile='key_variable = ""\n', temperature="temperature = 0.7\n")
        asked = EvaluationOptions(suites=("judge",), judges=("judge",), samples=2, budget=Decimal(50))
        rejudge(home, load(home), NAME, asked, step=1)
        rejudge(home, load(home), NAME, asked)
    store = Store(home / "data")
    asked = EvaluationOptions(suites=("judge",), judges=("judge",), samples=2, provider="replay")
    with pytest.raises(RequestError, match="no rollouts of that step"):
        rejudge(home, load(home), NAME, asked, step=STEPS + 1)
    last = store.read("rollouts", partition=NAME).collect().filter(step=STEPS)
    assert set(store.partitions("evaluations")) == {f"{NAME}-step1", f"{NAME}-step{STEPS}"}
    answers = store.read("model_answers", partition=f"{NAME}-step{STEPS}").collect()
    assert set(answers["row_id"]) == set(last["row_id"])
    assert set(answers["output"]) <= set(last["output"])
    assert set(answers["model"]) == {NAME}
    kept = store.read("evaluations", partition=f"{NAME}-step{STEPS}").collect()
    [unread] = kept.filter(metric="no_answer")["value"]
    assert unread == pytest.approx(answers["answer"].is_null().mean())
    scores = kept.filter(judge="judge", metric="overall")["value"].to_list()
    assert scores == ([] if unread == 1 else [pytest.approx(4)]), "what cannot be read is shown to nobody"
