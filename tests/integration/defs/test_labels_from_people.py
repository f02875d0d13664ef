"""The sensor that takes labels that arrive: it asks for a refresh where there are new ones, and says why where not."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import dagster as dg
import pytest
from reviewed import label, lines, read_tasks

from pipelines.defs.schedules import labels_from_people
from pipelines.operations.review.exporting import export, task_file
from pipelines.settings import Settings
from pipelines.store import Store
from pipelines.store.suppression import alone


@pytest.fixture
def home(labelled_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    store = Store(tmp_path / "home" / "data")
    for table in ("coherent_dialogues", "sampled_turns", "splits", "cer_candidates"):
        store.write(table, labelled_store.read(table))
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def tick(opened: dg.DagsterInstance | None = None) -> tuple[list[str | None], str | None]:
    """The keys of the runs that it asks for, or why it asks for none."""
    with dg.build_sensor_context(instance=opened or dg.DagsterInstance.ephemeral()) as context:
        said = labels_from_people.evaluate_tick(context)
    return [one.run_key for one in said.run_requests or []], said.skip_message


@contextmanager
def another_at_work(home: Path) -> Iterator[None]:
    """A refresh holds the home: a lock is of a thread."""
    begun, over = Event(), Event()

    def hold() -> None:
        with alone(home):
            begun.set()
            over.wait(60)

    with ThreadPoolExecutor(1) as threads:
        threads.submit(hold)
        assert begun.wait(60)
        try:
            yield
        finally:
            over.set()


def test_new_labels_ask_for_a_refresh_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported = export(home, Settings(), "cer", ["甲", "乙"])
    [first, _] = exported.tasks
    text = lines(*(label(task) for task in read_tasks(task_file(exported.folder, first))))
    inbox = home / "review" / "inbox" / "cer"
    inbox.mkdir(parents=True)
    (inbox / "labels.jsonl").write_text(text, encoding="utf-8")
    later = time.time() + 60
    monkeypatch.setattr("pipelines.defs.schedules.time.time", lambda: later)
    with another_at_work(home):
        runs, why = tick()
        assert (runs, "at work" in str(why)) == ([], True)
    with dg.DagsterInstance.ephemeral() as opened:
        [key], why = tick(opened)
        assert (bool(key), why) == (True, None)
        event = opened.get_latest_materialization_event(dg.AssetKey("cer_votes"))
        assert event is not None, "the web UI shows what came"
        assert event.asset_materialization is not None
        shown = event.asset_materialization.metadata["sample"]
        assert isinstance(shown, dg.TableMetadataValue)
        assert all(one.data["response"] for one in shown.records), "what was labelled"
    assert tick() == ([], "no new labels")
    (inbox / "again.jsonl").write_text("{}", encoding="utf-8")
    assert "1 files were refused" in str(tick()[1])
    assert Store(home / "data").read("cer_votes").collect().height == exported.tasks[first]


def test_it_is_off_until_somebody_switches_it_on() -> None:
    assert labels_from_people.default_status == dg.DefaultSensorStatus.STOPPED
