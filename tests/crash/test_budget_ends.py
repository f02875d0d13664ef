"""A budget that ends: what was paid for is rows, the rest waits for money, and in the end the table is the one that a
run without a hitch makes, with nothing paid twice.
"""

import sys
from collections import Counter
from pathlib import Path

import pytest
from killing import Command, home_with, killed, require_sound
from vendor_profile import PROFILE

from pipelines.llm.ledger.ledger import Ledger
from pipelines.store import Store
from tests.doubles.vendor import Vendor

pytestmark = [pytest.mark.slow, pytest.mark.drill("kill")]

PAIRS = 24
SELECT = ("refresh", "--select", "coe_chains", "--select", "sft_coe", "--provider", "openai")
GONGQING = (str(Path(sys.executable).with_name("gongqing")),)
MADE = ("coe_chains", "sft_coe")


def home_asking(vendor: Vendor, sample_home: Path, home: Path) -> Path:
    """The parents of chains alone, and R1 at the vendor's."""
    home_with(sample_home, home, ["imported_posts", "unique_posts", "splits", "topics"])
    profile = PROFILE.format(url=vendor.base_url).replace("qwen-plus", "deepseek-r1")
    (home / "models.toml").write_text(profile.replace('"stub"', '"deepseek-r1"'), encoding="utf-8")
    asked = f"[annotate]\nhuman_answers = false\nsizes.coe_chains = {PAIRS}\n"
    (home / "gongqing.toml").write_text(f'[llm]\nprofiles = "models.toml"\nconcurrency = 4\n{asked}', encoding="utf-8")
    return home


def refreshed(home: Path, budget: str) -> tuple[int, str]:
    with Command(home, *SELECT, "--budget", budget, program=GONGQING) as command:
        return command.wait(), command.printed


def current(home: Path) -> dict[str, str]:
    store = Store(home / "data")
    return {table: store.version(table).version for table in MADE if store.pointer(table) is not None}


def reasons(home: Path) -> Counter[str]:
    return Counter(Store(home / "data").read_dropped("coe_chains").collect()["reason"])


def test_a_budget_ends_a_refresh_is_killed_and_the_table_is_that_of_an_undisturbed_run(sample_home, tmp_path):
    with Vendor() as vendor:
        undisturbed = home_asking(vendor, sample_home, tmp_path / "undisturbed")
        assert refreshed(undisturbed, "5")[0] == 0
        billed = vendor.stats()["billed"]
        with Ledger(undisturbed / "ledger.sqlite") as ledger:
            [spent] = ledger.spend()
    wanted = current(undisturbed)
    assert (billed, spent.calls, wanted.keys()) == (PAIRS, PAIRS, set(MADE))
    assert reasons(undisturbed)["not_sampled"] > 0

    with Vendor() as vendor:
        home = home_asking(vendor, sample_home, tmp_path / "home")
        code, printed = refreshed(home, "0.0001")
        assert (code, current(home), vendor.stats()["billed"]) == (1, {}, 0)
        assert "coe_chains, sft_coe wait for a budget: the budget is too small" in printed
        assert "was not enough to ask everything: coe_chains, sft_coe wait\n  hint: the same command" in printed

        code, printed = refreshed(home, f"{spent.cost / 2:f}")
        assert code == 1
        store, left = Store(home / "data"), reasons(home)["not_asked_yet"]
        assert f"coe_chains waits for a budget: {left} rows are not asked about yet" in printed
        assert 0 < vendor.stats()["billed"] == PAIRS - left < PAIRS
        assert store.version("sft_coe").rows == store.version("coe_chains").rows > 0, "what is there is learnt from"

        half = vendor.stats()["requests"]
        vendor.change(latency=0.3)
        killed(home, *SELECT, "--budget", "5", program=GONGQING, when=lambda _: vendor.stats()["requests"] > half + 1)
        vendor.change(latency=0.0)
        code, printed = refreshed(home, "5")
        assert code == 0, printed
        assert current(home) == wanted
        with Ledger(home / "ledger.sqlite") as ledger:
            lost = Counter(one.key for one in ledger.open_attempts())
            assert sum(one.calls for one in ledger.spend()) == PAIRS
        again = vendor.stats()["requests"] - PAIRS
        assert 0 <= again <= lost.total() <= 4, "what was in flight when it was killed, and nothing else"
        assert all(billed <= 2 for _, billed, _ in vendor.book().values())
    require_sound(home)
