"""A release by the command line: made, given away, brought back; and the same in Dagster (the Hub is on loopback)."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from planted_home import planted_home

from pipelines.core.files import held
from pipelines.defs import releases as assets
from pipelines.defs.resources import HomeResource
from pipelines.errors import Busy
from pipelines.operations.release import export
from pipelines.release.assemble import assemble
from pipelines.settings import Settings
from pipelines.store.releases import Releases, publications
from pipelines.store.suppression import SuppressionList
from tests.doubles.hub import Hub

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("hub")]

REPO = "me/samples"
GONGQING = str(Path(sys.executable).with_name("gongqing"))
PUBLISH = f"""
import dagster as dg
from pipelines.defs.releases import publication
from pipelines.defs.resources import HomeResource
import sys
config = {{"ops": {{"publication": {{"config": {{"repo": {REPO!r}}}}}}}}}
made = dg.materialize([publication], resources={{"home": HomeResource(path=sys.argv[1])}}, run_config=config)
[event] = made.get_asset_materialization_events()
print(event.materialization.metadata["new"].value, event.materialization.metadata["commit"].value)
"""


@pytest.fixture(scope="module")
def home(sample_home: Path, released_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of its own with the sample home's tables, as if people had answered everything."""
    folder = tmp_path_factory.mktemp("publishing") / "home"
    home = planted_home(sample_home, folder, provider="written", read=released_home)
    (home / "gongqing.toml").write_text(f'[publish]\nrepositories = ["{REPO}"]\n', encoding="utf-8")
    return home


@pytest.fixture(scope="module")
def hub():
    with Hub() as hub:
        yield hub


def ran(home: Path, *command: str, hub: Hub | None = None) -> subprocess.CompletedProcess[str]:
    of_hub = {"HF_ENDPOINT": hub.url, "HF_TOKEN": hub.token, "HF_HOME": str(home / "hf")} if hub else {}
    environment = {**os.environ, "GONGQING_HOME": str(home), **of_hub}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def gongqing(home: Path, *arguments: str, hub: Hub | None = None) -> str:
    done = ran(home, GONGQING, *arguments, hub=hub)
    assert done.returncode == 0, done.stderr
    assert hub is None or hub.token not in done.stdout + done.stderr
    return done.stdout


def materialized(home: Path, asset: dg.AssetsDefinition, **config: object) -> dg.ExecuteInProcessResult:
    resources = {"home": HomeResource(path=str(home))}
    run_config = {"ops": {asset.key.to_user_string(): {"config": config}}}
    return dg.materialize([asset], resources=resources, run_config=run_config, raise_on_error=False)


def failure_of(run: dg.ExecuteInProcessResult) -> object:
    assert not run.success
    [event] = [one for one in run.all_node_events if one.is_step_failure]
    return event.step_failure_data


def test_a_refusal_in_dagster_lists_its_checks_and_a_release_stands_for_the_command_line(home):
    failure = failure_of(materialized(home, assets.release, name="v0", allow=[]))
    findings = failure.user_failure_data.metadata["findings"].value
    [found] = [record.data for record in findings.records if record.data["check"] == "not_from_a_model"]
    assert found[""] == "refuse"
    assert found["to do"]
    assert Releases(home).names() == []

    made = materialized(home, assets.release, name="v1", allow=["not_from_a_model"])
    [event] = made.get_asset_materialization_events()
    told = event.materialization.metadata
    made = Releases(home).read("v1")
    rows = [record.data for record in told["rows"].value.records]
    assert [row.pop("set") for row in rows] == list(made.configs)
    assert sum(sum(row.values()) for row in rows) == told["dagster/row_count"].value > 0
    [allowed] = [one.data for one in told["findings"].value.records if one.data["check"] == "not_from_a_model"]
    assert allowed[""] == "allowed"
    assert len(told["pins"].value.records) == len(made.pins)
    assert json.loads(gongqing(home, "releases", "--json"))[0]["name"] == "v1"
    assert "there already" in gongqing(home, "release", "v1", "--allow", "not_from_a_model")


@pytest.mark.drill("web UI")
def test_a_job_publishes_only_where_the_settings_say(home, monkeypatch):
    """Refused before the Hub, or its token, is looked for."""
    monkeypatch.setattr(assets, "to_hub", lambda *_, **__: pytest.fail("it went out"))
    for config, key in (({"repo": "attacker/loot"}, "repositories"), ({"repo": REPO, "public": True}, "public")):
        told = str(failure_of(materialized(home, assets.publication, **config)).error)
        assert "that a job may publish to" in told
        assert f"add it to {key} under [publish]" in told


def test_it_is_given_away_and_comes_back(home, hub, tmp_path):
    assemble(home, "v1", allow=["not_from_a_model"], settings=Settings())
    assert "is there, commit" in gongqing(home, "export", "hub", REPO, hub=hub)
    [published] = publications(home)
    assert (published.repo, published.tag) == (REPO, "v1")

    in_dagster = ran(home, sys.executable, "-c", PUBLISH, str(home), hub=hub)
    assert in_dagster.returncode == 0, in_dagster.stderr
    assert in_dagster.stdout.split() == ["False", published.commit]  # it is there already

    other = tmp_path / "other"
    assert gongqing(other, "import", "hub", REPO, "--revision", "v1", hub=hub).splitlines()[-1].startswith("v1: ")
    theirs, ours = Releases(other), Releases(home)
    # Words that the wide finder takes for a name have gone from these.
    renamed = sum(one.count for one in theirs.read("v1").findings if one.check == "renamed")
    differ = 0
    for config in ours.read("v1").configs:
        at_home = ours.frame("v1", config).collect()
        came_back = theirs.frame("v1", config).select(at_home.columns).collect()
        for before, after in zip(at_home.iter_rows(named=True), came_back.iter_rows(named=True), strict=True):
            assert before["row_id"] == after["row_id"]
            differ += before != after
    assert differ == renamed

    third = tmp_path / "third"  # whoever was erased there does not come back from the Hub
    row_id = ours.frame("v1", "grpo_cer").collect()["row_id"][0].partition("#")[0]
    SuppressionList(third).add([row_id])
    refused = ran(third, GONGQING, "import", "hub", REPO, "--revision", "v1", hub=hub)
    assert (refused.returncode, "was erased here" in refused.stderr) == (2, True), refused.stderr
    assert row_id not in refused.stderr
    assert Releases(third).names() == []
    assert list((third / "releases").rglob("*.parquet")) == []


def test_files_for_other_trainers(released_home, tmp_path):
    home = Path(shutil.copytree(released_home, tmp_path / "home"))
    made = Releases(home).read("v1")
    output = gongqing(home, "export", "jsonl", str(tmp_path / "out"), "--for", "llama-factory")
    assert (tmp_path / "out" / "dataset_info.json").stat().st_size > 0
    [written] = re.findall(r"^sft_cer_train\.jsonl: (\d+) rows", output, flags=re.MULTILINE)
    [lost] = re.findall(r"^left out, sft_cer: .* that the supporter opens: (\d+) rows", output, flags=re.MULTILINE)
    assert int(written) + int(lost) == made.rows("sft_cer")
    assert f"left out, grpo_cer: a prompt set has no answer to imitate: {made.rows('grpo_cer'):,} rows" in output


@pytest.mark.drill("race")
def test_no_erasure_begins_while_a_release_is_given_away_and_none_is_while_one_is_unfinished(tmp_path, monkeypatch):
    """Its receipt would not name where the release is then."""

    def looks(*_):
        with pytest.raises(BlockingIOError), held(tmp_path / ".locks" / "giving", wait=False):
            pass
        raise InterruptedError

    monkeypatch.setattr("pipelines.operations.release.releases_to_give", looks)
    with pytest.raises(InterruptedError):
        export(tmp_path, None, tmp_path / "out")
    with held(tmp_path / ".locks" / "giving", wait=False):
        pass
    monkeypatch.undo()
    (tmp_path / "erasures").mkdir()
    (tmp_path / "erasures" / "one.plan").write_text("{}")
    with pytest.raises(Busy, match="not finished"):
        export(tmp_path, None, tmp_path / "out")
