"""The sample home, with tables made by Dagster and by a vendor of models on this machine: after an erasure nothing is
left of what it was asked for, a refresh does not bring it back, and the home goes on working.
"""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from functools import partial
from pathlib import Path

import dagster as dg
import pytest
from every_byte import runs, strings, traces
from killing import versions
from vendor_profile import PROFILE

from pipelines.defs.instance import instance
from pipelines.defs.resources import HomeResource
from pipelines.defs.running import run_stages
from pipelines.errors import RequestError
from pipelines.flow.clients import ClientPool
from pipelines.flow.refresh import refresh
from pipelines.flow.runner import Runner
from pipelines.flow.stages import STAGES
from pipelines.ingest.import_file import import_file
from pipelines.llm.ledger.ledger import Ledger
from pipelines.operations.erase.erasing import erase
from pipelines.operations.erase.survey import Request
from pipelines.operations.lineage import why
from pipelines.settings import ROOT, load
from pipelines.store.store import Store
from tests.doubles.vendor import Vendor

ASKED_OF_MODELS = {"topics", "emotions"}


def rows(home: Path) -> list[dict]:
    """Every row, kept or dropped, of every version of every table."""
    store = Store(home / "data")
    places = [(one.table, one.version, one.partition) for one in versions(home)]
    parts = [read(*place).collect() for place in places for read in (store.read, store.read_dropped)]
    return [row for part in parts for row in part.to_dicts()]


@pytest.fixture(scope="module")
def made(sample_home, tmp_path_factory) -> Iterator[Path]:
    """The sample home, two of its tables asked of a model, and a second version of what follows from a setting."""
    home = tmp_path_factory.mktemp("made") / "home"
    shutil.copytree(sample_home, home)
    (home / "gongqing.toml").write_text(f'seed = 1\n[llm]\nprofiles = "{home / "models.toml"}"\n', encoding="utf-8")
    with Vendor() as vendor:
        (home / "models.toml").write_text(PROFILE.format(url=vendor.base_url), encoding="utf-8")
        for stage in (stage for stage in STAGES if stage.name in {*ASKED_OF_MODELS, "sampled_turns"}):
            asks = {"provider": "openai", "budget": Decimal(5)} if stage.asks else {}
            with ClientPool(home, load(home).llm, **asks) as clients:
                run_stages(home, HomeResource(home).runner(clients), [stage])
        yield home


@pytest.fixture(scope="module")
def before(made, tmp_path_factory) -> Path:
    """A copy of it, to compare with: Dagster knows its state by its place."""
    return Path(shutil.copytree(made, tmp_path_factory.mktemp("before") / "home"))


@pytest.fixture(scope="module")
def asked(before) -> tuple[str, str]:
    """A post that a model was asked about, and a dialogue that others were rewritten to a persona of."""
    store = Store(before / "data")
    post = store.read("topics").collect()["row_id"].sort()[0]
    persona = store.read("rewritten_dialogues").collect()["persona_id"].drop_nulls().sort()[0]
    return post, persona.split("/")[0]


@pytest.fixture(scope="module")
def home(made, before, asked) -> Path:
    """The same, erased. The last tests refresh it."""
    erase(made, Request(rows=asked))
    return made


@pytest.fixture(scope="module")
def wanted(before, home, asked) -> set[str]:
    """Runs of all rows that named what was erased, and of no row that stands."""
    names = re.compile("|".join(rf"{re.escape(name)}(?![0-9A-Za-z])" for name in asked))
    of_it = [row for row in rows(before) if names.search(json.dumps(row, default=str))]
    assert len({key for row in of_it for key in row}) > 50, "rows of many tables name it"
    standing = runs([text for row in rows(home) for text in strings(row)])
    return runs([text for row in of_it for text in strings(row)]) - standing


@pytest.mark.drill("privacy")
def test_no_byte_of_it_is_left_and_no_file_names_it(before, home, asked, wanted):
    assert len(wanted) > 200
    there = traces(before, wanted)
    assert "ledger.sqlite" in there
    assert any(path.startswith(".dagster/") for path in there)
    assert traces(home, wanted) == {}
    assert traces(home, {f'"{name}"' for name in asked if len(name) == 6}) == {}


def test_dagster_reads_its_events_and_the_ledger_is_whole(home, before):
    with instance(home) as standing:
        for stage in ASKED_OF_MODELS:
            event = standing.get_latest_materialization_event(dg.AssetKey(stage))
            assert "sample" in event.asset_materialization.metadata
    with Ledger(home / "ledger.sqlite") as after, Ledger(before / "ledger.sqlite") as earlier:
        after.check()
        assert sum(one.calls for one in after.spend()) == sum(one.calls for one in earlier.spend())
        assert 0 < sum(1 for _ in after.bodies()) < sum(1 for _ in earlier.bodies())


def test_a_refresh_makes_the_tables_again_without_it_and_pays_for_little(home, asked, wanted):
    settings, store = load(home), Store(home / "data")
    stage = next(stage for stage in STAGES if stage.name == "topics")
    assert Runner(store, settings).is_stale(stage)
    with ClientPool(home, settings.llm, budget=Decimal(5)) as clients:
        outcomes = refresh(home, settings, ["clean", "topics"], clients, partial(run_stages, home))
    assert any(outcome.ran for outcome in outcomes)
    assert traces(home, wanted) == {}
    assert asked[0] not in store.read("topics").collect()["row_id"]


@pytest.mark.drill("privacy")
def test_the_same_file_does_not_bring_it_back(home, asked, wanted):
    store = Store(home / "data")
    for kind in ("posts", "dialogues"):
        path = ROOT / "samples" / f"{kind}.jsonl"
        version = import_file(store, home, "mapped", path, data_set="sample", mapping=path.with_suffix(".toml"))
        assert version.manifest.dropped_for("erased") == 1
    assert traces(home, wanted) == {}
    for name in asked:
        with suppress(RequestError):
            assert why(store, name) == []
