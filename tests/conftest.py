"""Fixtures that several rooms share."""

import os

# Several tests share a core: threads of torch and polars that wait for each other would take each other's time. Polars
# reads it while it is imported: a command that is a process of its own has as many threads as the machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["POLARS_MAX_THREADS"] = "1"

import contextlib
import gc
import shutil
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from fake_model import FakePool
from hypothesis import HealthCheck, settings
from labels_made import LABELLED, made_labels
from object_server import BUCKET, ObjectServer
from published_rows import Made, mixed_home
from real_sets import REAL_SETS

from pipelines.core.files import held
from pipelines.core.stage import Stage
from pipelines.flow.runner import Runner
from pipelines.flow.stages import STAGES
from pipelines.ingest.import_file import import_file
from pipelines.operations.release import release
from pipelines.settings import ROOT, Settings
from pipelines.store import Store

del os.environ["POLARS_MAX_THREADS"]

# What is imported while tests are collected stays: the garbage collector, which would read it again and again, rests
# until then, and passes it over afterwards.
gc.disable()

# Absl, which rouge_score imports, closes the `sys.stderr` of its import when logging is configured while another stands
# in its place, as Dagster does under typer's runner. It must not be pytest's, which all later tests write to.
with contextlib.redirect_stderr(sys.__stderr__):
    import absl.logging  # noqa: F401

# How long one example takes says nothing on a busy machine. Under CI the examples are the same in every run of the same
# test, so that a commit passes or does not; a developer searches at random.
options = {"max_examples": 30, "deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("house", derandomize="CI" in os.environ, **options)
settings.load_profile("house")


# What a machine may lack: a test that needs it says so as it is skipped.
MAY_LACK = ("a GPU", "../shared/data", "root", "chromium")


# In a fresh clone every process of the first tests would compile the same kernels, for half a minute each: one does it
# while tests are collected.
COMPILE = """
from pipelines.dedup import find_duplicates
from pipelines.text.pii import redact
texts = ["加我微信abc_12345，我叫王小明，在北京大学读书。" * 3] * 4
redact(texts), find_duplicates(texts)
"""


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        compiling = subprocess.Popen([sys.executable, "-c", COMPILE], cwd=ROOT)
        config.add_cleanup(compiling.wait)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Under CI a test that is skipped for another reason than those expected is a failure."""
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if not any(f"needs {lacking}" in reason or f"needs Debian's {lacking}" in reason for lacking in MAY_LACK):
            report.outcome = "failed"
            report.longrepr = f"skipped under CI: {reason}"
    return report


@pytest.fixture(autouse=True)
def _no_settings_of_the_developer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees the developer's environment, nor writes into the repository."""
    for variable in [name for name in os.environ if name.startswith("GONGQING_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real public data: read in place, never copied."""
    path = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not path.is_dir():
        pytest.skip("needs ../shared/data")
    return path


def _make(store: Store, stages: Iterable[Stage], settings: Settings) -> None:
    clients = FakePool(None, settings.llm)
    for stage in stages:
        Runner(store, settings, clients).run(stage)


def _made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """What `make` puts into a folder: the first worker that wants it waits for that, the others copy it."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    made, making = root / f"{name}-made", root / f"{name}-part"
    with held(root / f"{name}-lock"):
        if not made.exists():
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir()
            make(making)
            making.rename(made)
    return Path(shutil.copytree(made, factory.mktemp(name), dirs_exist_ok=True))


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the samples imported and every table made, a fake model answering. Read only."""

    def make(home: Path) -> None:
        (home / "author.key").write_text("5" * 64)  # groups, and so splits, follow from the pseudonyms of authors
        store = Store(home / "data")
        for kind in ("posts", "dialogues"):
            path = ROOT / "samples" / f"{kind}.jsonl"
            import_file(store, home, "mapped", path, data_set="sample", mapping=path.with_suffix(".toml"))
        _make(store, STAGES, Settings())

    return _made_once(tmp_path_factory, "sample-home", make)


@pytest.fixture(scope="session")
def labelled_store(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The sample home with labels that people will give, all three variants, and chains to answers that nobody wrote:
    so every training set has rows. Read only.
    """

    def make(home: Path) -> None:
        shutil.copytree(sample_home / "data", home / "data")
        store = Store(home / "data")
        candidates, turns = (store.read(name).collect() for name in ("cer_candidates", "sampled_turns"))
        store.write("cer_labels", made_labels(candidates, turns))
        named = {"rewrite", "prompts", "training", "coe_chains"}
        _make(store, (stage for stage in STAGES if named & {stage.group, stage.name}), LABELLED)

    return Store(_made_once(tmp_path_factory, "labelled-home", make) / "data")


@pytest.fixture(scope="session")
def released_home(labelled_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The labelled store with a release of it, `v1`. Read only."""

    def make(home: Path) -> None:
        shutil.copytree(labelled_store.storage.root, home / "data")
        release(home, "v1", allow=["not_from_a_model"], settings=LABELLED)

    return _made_once(tmp_path_factory, "released-home", make)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of real data are of the tier `corpus`, wherever they stand; those that read the real home share a worker,
    for to make it takes longer than most of them. A drill's area goes into its reports, which alone reach the process
    that prints the table.
    """
    for item in items:
        if drill := item.get_closest_marker("drill"):
            item.user_properties.append(("drill", drill.args[0]))
        chosen = item.callspec.params.values() if hasattr(item, "callspec") else ()  # test_making: which home
        needs = {*getattr(item, "fixturenames", ()), *map(str, chosen)}
        if needs & {"shared", "real_home", "real_store"}:
            item.add_marker(pytest.mark.corpus)
        if needs & {"real_home", "real_store"}:
            item.add_marker(pytest.mark.xdist_group("real-home"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A table of the drills: how many in each area, how many survived, failed, or could not be run here."""
    outcomes: dict[str, dict[str, str]] = {}
    for outcome in ("passed", "skipped", "failed", "error"):  # the worst of a test's reports counts
        for report in terminalreporter.stats.get(outcome, []):
            if area := dict(getattr(report, "user_properties", ())).get("drill"):  # a module that fails has none
                outcomes.setdefault(area, {})[report.nodeid] = "failed" if outcome == "error" else outcome
    if not outcomes:
        return
    rows = {area: Counter(drills.values()) for area, drills in sorted(outcomes.items())}
    rows["sum"] = sum(rows.values(), Counter())
    terminalreporter.section("drills")
    terminalreporter.write_line(f"{'area':24}{'drills':>8}{'survived':>10}{'failed':>8}{'not run':>9}")
    for area, counts in rows.items():
        figures = f"{counts.total():8}{counts['passed']:10}{counts['failed']:8}{counts['skipped']:9}"
        terminalreporter.write_line(f"{area:24}{figures}")


@pytest.fixture(scope="session")
def real_home(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """A home with the four real sets of the shared data imported and every table made. Read only."""
    home = tmp_path_factory.mktemp("real-home")
    store = Store(home / "data")
    for reader, path in REAL_SETS.items():
        import_file(store, home, reader, shared / path)
    _make(store, STAGES, Settings())
    return home


@pytest.fixture(scope="session")
def mixed(sample_home: Path, released_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A home with an invented and a crawled source, and a release of it. Read only."""
    home = tmp_path_factory.mktemp("mixed-home")
    shutil.copytree(released_home / "readings", home / "readings")  # the same texts, for the greater part
    return mixed_home(Store(sample_home / "data"), home)


@pytest.fixture(scope="session")
def object_server() -> Iterator[ObjectServer]:
    """A storage that speaks S3."""
    with ObjectServer() as server:
        yield server


@pytest.fixture
def bucket(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """Tables and releases of every home lie in a bucket, below this URL; nothing is there yet."""
    for name, value in object_server.environment.items():
        monkeypatch.setenv(name, value)
    url = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    monkeypatch.setenv("GONGQING_STORAGE__URL", url)
    return url


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "data")


@pytest.fixture
def sample_store(sample_home: Path) -> Store:
    """The store of `sample_home`."""
    return Store(sample_home / "data")


@pytest.fixture
def real_store(real_home: Path) -> Store:
    """The store of `real_home`."""
    return Store(real_home / "data")


@pytest.fixture
def in_home(sample_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command line works on `sample_home`."""
    monkeypatch.setenv("GONGQING_HOME", str(sample_home))
    return sample_home


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system of 256 KB (or as much as the test's indirect parameter says) and 100 files."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    options = f"size={getattr(request, 'param', '256k')},nr_inodes=100"
    mount = ["mount", "-t", "tmpfs", "-o", options, "gongqing-test", disk]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small disk here: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)
