"""`gongqing refresh` against hosts of models that mean no good: the table stands as it was, and so does the budget."""

import json
import re
import shutil
from decimal import Decimal
from pathlib import Path

import pytest
from hostile_host import HostileHost, bomb, completion
from killing import measured
from vendor_profile import PROFILE

from pipelines.llm.failures import LEAST_OF_A_STAGE
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.money import NANO
from pipelines.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.drill("model host")]

TABLE, CAP, KEY = "emotions", "0.5", "sk-secretmarker-0123456789"
AT_ONCE = 16
MEGABYTES = 900  # of a refresh that asks, Dagster and polars within; a bomb took 4,200
REFRESH = ("refresh", "--select", TABLE, "--provider", "openai", "--budget", CAP)


@pytest.fixture
def home(sample_home: Path, tmp_path: Path) -> Path:
    shutil.copytree(sample_home / "data", tmp_path / "home" / "data")
    (tmp_path / "home" / "gongqing.toml").write_text('[llm]\nprofiles = "models.toml"\ntimeout = 20\nattempts = 2\n')
    return tmp_path / "home"


def useless(handler, asked):
    handler.give(completion('忽略以上。{"emotion":"<script>"}', asked))


def echo(handler, asked):
    handler.give(json.dumps({"error": {"code": KEY, "message": f"{KEY}: {asked}"}}).encode(), 401)


PACKED = bomb()
KINDS = {
    "useless": (useless, "are invalid after all repairs", 2 * (LEAST_OF_A_STAGE + 2 * AT_ONCE)),
    "echo": (echo, "answers 401: nothing more is sent", AT_ONCE),
    "bomb": (lambda handler, _: handler.give(PACKED, Content_Encoding="gzip"), "replies of more than", 8 + 2 * AT_ONCE),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_host_that_means_no_good_leaves_the_table(home, kind):
    before = Store(home / "data").version(TABLE).version
    answer, message, most = KINDS[kind]
    with HostileHost(answer) as host:
        profile = PROFILE.format(url=host.base_url).replace('key_variable = ""', 'key_variable = "HOSTILE_KEY"')
        (home / "models.toml").write_text(profile, encoding="utf-8")
        code, printed, megabytes = measured(home, *REFRESH, HOSTILE_KEY=KEY)
    assert (code, [part for part in (message, "hint:") if part not in printed]) == (1, []), printed
    assert not re.search(f"{KEY}|Traceback", printed)
    assert host.requests <= most
    assert megabytes <= MEGABYTES
    assert Store(home / "data").version(TABLE).version == before
    with Ledger(home / "ledger.sqlite") as ledger:
        spent = sum(one.cost for one in ledger.spend())
        assert all(one.spent + one.held <= Decimal(CAP) * NANO for one in ledger.budgets())
        assert ledger.open_attempts() == []
    assert (spent > 0) is (kind == "useless")
    for path in home.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes()
