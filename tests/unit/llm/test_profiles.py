"""Model profiles: what is shipped, what a user's file changes, and what is refused."""

import json
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest

from pipelines.errors import NoHost, NoKey, SettingsError, UnknownPrice, UnreadableFile
from pipelines.llm.profiles import SHIPPED, host, key, price, prices, profile, profiles
from pipelines.settings import ROOT

ALIASES = {
    *("deepseek-r1", "deepseek-v4-pro", "deepseek-flash", "gpt-4o"),
    *("qwen2.5-72b", "qwen-plus", "qwen2.5-vl"),
    *(SERVED := ("vllm-local", "unifireward", "compeer-prm", "compeer-orm")),
}


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "profiles.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_these_are_shipped_and_each_file_names_its_tables_once():
    assert set(profiles()) == ALIASES
    named = [alias for path in SHIPPED.glob("*.toml") for alias in tomllib.loads(path.read_text(encoding="utf-8"))]
    assert sorted(named) == sorted(ALIASES)
    priced = {alias: one.price for alias, one in profiles().items() if one.price}
    assert set(priced) == {"gpt-4o", "deepseek-v4-pro", "deepseek-flash", "qwen-plus", *SERVED}
    assert {found.currency for found in priced.values()} == {"USD"}


def test_the_whole_file_of_the_docs_gives_every_model_a_price(tmp_path):
    text = (ROOT / "docs" / "asking.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in text.split("```toml\n")[1:]]
    example = next(block for block in blocks if ".price]" in block)
    extra = written(tmp_path, example)
    found = profiles(extra)
    assert set(found) == ALIASES
    assert len(prices(found.values())) == len(ALIASES)
    named = {alias for alias, table in tomllib.loads(example).items() if "price" in table}
    assert named == {alias for alias, one in profiles().items() if one.price is None}
    assert all("placeholder" in found[alias].price.source for alias in named)


def test_the_hint_names_any_alias_as_toml_can_read_it(tmp_path):
    for alias in ('a "model"', "m²", "gpt-4o_mini"):
        mine = profiles(written(tmp_path, f"[{json.dumps(alias, ensure_ascii=False)}]\nmodel = 'm'\n"))[alias]
        with pytest.raises(UnknownPrice) as caught:
            price(mine)
        table = caught.value.hint.removeprefix("write ").split(" with input")[0]
        assert tomllib.loads(table) == {alias: {"price": {}}}
        with pytest.raises(NoHost) as unserved:
            host(mine)
        table = unserved.value.hint.split("write ")[1].split(" base_url")[0]
        assert tomllib.loads(table) == {alias: {}}


def test_r1_needs_a_host_by_variable_or_by_file(tmp_path, monkeypatch):
    monkeypatch.delenv("DEEPSEEK_R1_BASE_URL", raising=False)
    with pytest.raises(NoHost, match="deepseek-r1") as caught:
        host(profiles()["deepseek-r1"])
    assert caught.value.exit_code == 2
    assert "DEEPSEEK_R1_BASE_URL" in caught.value.hint
    extra = written(tmp_path, '[deepseek-r1]\nbase_url = "http://127.0.0.1:1/v1"\nkey_variable = ""\n')
    given = profiles(extra)["deepseek-r1"]
    monkeypatch.setenv("DEEPSEEK_R1_BASE_URL", "http://127.0.0.1:2/v1")
    assert host(profiles()["deepseek-r1"]) == "http://127.0.0.1:2/v1"
    assert host(given) == "http://127.0.0.1:1/v1"  # what the file says is not undone by the variable of another host
    assert key(given) is None


def test_a_key_that_is_not_there_is_named_and_never_guessed(monkeypatch):
    for missing in ("", "  "):
        monkeypatch.setenv("OPENAI_API_KEY", missing)
        with pytest.raises(NoKey, match="OPENAI_API_KEY") as caught:
            key(profiles()["gpt-4o"])
        assert caught.value.exit_code == 2
    monkeypatch.setenv("OPENAI_API_KEY", "sk-invented")
    assert key(profiles()["gpt-4o"]) == "sk-invented"
    assert key(profiles()["vllm-local"]) is None


def test_a_field_of_a_shipped_profile_is_changed_and_the_rest_stays(tmp_path):
    changed = profiles(written(tmp_path, "[gpt-4o]\nconcurrency = 7\n"))["gpt-4o"]
    assert changed == profiles()["gpt-4o"].model_copy(update={"concurrency": 7})


def test_another_host_or_model_takes_no_price_along_and_another_host_no_key(tmp_path):
    with pytest.raises(SettingsError, match="which key goes there"):
        profiles(written(tmp_path, '[gpt-4o]\nbase_url = "https://proxy.example/v1"\n'))
    for change, variable in (
        ('base_url = "https://proxy.example/v1"\nkey_variable = "MINE"', "MINE"),
        ('model = "gpt-4o-2024-08-06"', "OPENAI_API_KEY"),
    ):
        moved = profiles(written(tmp_path, f"[gpt-4o]\n{change}\n"))["gpt-4o"]
        assert (moved.price, moved.key_variable) == (None, variable)


def test_a_profile_of_the_users_own(tmp_path):
    extra = written(
        tmp_path,
        """
        ["my.model"]
        base_url = "http://127.0.0.1:9/v1"
        model = "mine"
        temperature = 0.3
        extra_body = { top_p = 0.9, thinking = { type = "disabled" }, stop = ["a", 1.5] }
        requests_per_minute = 60
        tokens_per_minute = 100000
        [ "my.model".price ]
        input = 0.003
        output = 1
        currency = "CNY"
        date = 2026-11-01
        source = "the bill"
        """,
    )
    mine = profile(profiles(extra), "my.model")
    assert mine.extra_body == {"top_p": 0.9, "thinking": {"type": "disabled"}, "stop": ["a", 1.5]}
    assert type(mine.extra_body["top_p"]) is float  # it is sent as JSON
    assert mine.temperature == 0.3
    assert price(mine).input == Decimal("0.003")
    assert set(profiles(extra)) == ALIASES | {"my.model"}


@pytest.mark.parametrize(
    ("text", "told", "hint"),
    [
        ('[m]\nmodel = "m"\nbase_ulr = "x"\n', "no key 'base_ulr'", "'base_url'"),
        ('[m]\nbase_url = "http://x"\n', "lacks 'model'", "add it"),
        ('[gpt-4o]\nbase_url = "http://[::1"\nkey_variable = ""\n', "no address of a host", "correct"),
        ('[gpt-4o]\nbase_url = "localhost:8000/v1"\nkey_variable = ""\n', "no address of a host", "correct"),
        ("[gpt-4o]\nextra_body = { n = nan }\n", "sent as JSON", "correct"),
        ("[gpt-4o]\ntemperature = 0\nextra_body = { temperature = 1 }\n", "one of them would be lost", "correct"),
        ('[gpt-4o]\nextra_body = { model = "m", stream = true }\n', "model, stream cannot be given here", "correct"),
        ("[gpt-4o.price]\ninptu = 1\n", "no key 'price.inptu'", "'input'"),
        ("[gpt-4o.price]\noutput = 0.0375\n", "three decimals", "correct"),
        ("[gpt-4o.price]\nbatch = 0.0001\n", "in a batch", "correct"),
        ("[gpt-4o.price]\ncached_input = 3\n", "above input", "correct"),
        ("[gpt-4o.price]\ninput = -1\n", "price.input", "correct"),
        ('[gpt-4o]\nstructured = "yaml"\n', "structured", "correct"),
        ('[gpt-4o]\nalias = "gpt-5"\n', "alias is another", "leave alias out"),
        ('model = "m"\n', "outside of a profile", "below the alias"),
    ],
)
def test_what_a_file_gets_wrong_is_named(tmp_path, text, told, hint):
    if "price" in text:  # a table of prices replaces ours as a whole: the fields that a case does not name
        rest = {"input": "1", "output": "1", "currency": '"USD"', "date": "2026-11-21", "source": '"x"'}
        text += "".join(f"{name} = {value}\n" for name, value in rest.items() if f"\n{name} =" not in text)
    path = written(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        profiles(path)
    assert told in str(caught.value)
    assert hint in caught.value.hint
    assert (caught.value.where, caught.value.exit_code) == (path, 2)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe")
    for path in (tmp_path / "odd.toml", tmp_path / "none.toml"):
        with pytest.raises(UnreadableFile) as caught:
            profiles(path)
        assert caught.value.where == path


def test_a_host_in_the_environment_that_is_none_is_named_by_its_variable(monkeypatch):
    monkeypatch.setenv("DEEPSEEK_R1_BASE_URL", "my host/v1")
    with pytest.raises(SettingsError, match="no address of a host") as caught:
        host(profiles()["deepseek-r1"])
    assert "DEEPSEEK_R1_BASE_URL" in str(caught.value.where)


def test_a_key_that_no_request_can_hold_is_refused_and_not_repeated(monkeypatch):
    for wrong in ("你的钥匙", "sk-one\nsk-two"):
        monkeypatch.setenv("OPENAI_API_KEY", wrong)
        with pytest.raises(SettingsError, match="key for gpt-4o") as caught:
            key(profiles()["gpt-4o"])
        assert "OPENAI_API_KEY" in str(caught.value.where)
        assert wrong not in str(caught.value)
