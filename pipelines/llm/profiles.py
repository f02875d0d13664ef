"""Model profiles: where a model is asked, how, how fast, and what it costs.

A profile is a table of a TOML file, named by its alias. Ours stand in `profiles/*.toml`; a file of the user's
(`[llm] profiles = …`) adds others, or changes the fields of ours. A key of a profile that does not exist is an error.
No price is a constant of the code: each stands beside its currency, its date and where it was read.
"""

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, model_validator

from pipelines.errors import NoHost, NoKey, SettingsError, UnknownName, UnknownPrice, UnreadableFile

SHIPPED = Path(__file__).parent / "profiles"

# What `extra_body` may not say: the model has a field, a question its messages, and a stream is no body.
_NOT_EXTRA = {"model", "messages", "stream"}
_OF_A_HOST = {"base_url", "base_url_variable"}
_MOST = 10**6  # a price above this, per million tokens, is a slip of the pen
NANO_A_TOKEN = 1000  # 1 of a currency per 1M tokens is 1,000 nano-units a token


def _address(value: str) -> str:
    try:
        parts = urlsplit(value)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        fits = False
    if not fits or any(letter.isspace() for letter in value):
        raise ValueError(f"{value!r} is no address of a host: it begins with http:// or https://")
    return value


def _sendable(value: dict[str, Any]) -> dict[str, Any]:
    if taken := sorted(value.keys() & _NOT_EXTRA):
        raise ValueError(f"{', '.join(taken)} cannot be given here")
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"it is sent as JSON, which has no such value: {error}") from error
    return value


Amount = Annotated[Decimal, Field(ge=0, le=_MOST)]  # 0.15 in a TOML file is the decimal 0.15
Optional = Annotated[str | None, BeforeValidator(lambda value: None if value == "" else value)]  # TOML has no null


class Price(BaseModel, extra="forbid", frozen=True):
    """What a model costs, per 1M tokens, and where that was read. Of several prices the highest counts."""

    input: Amount
    output: Amount
    cached_input: Amount | None = None  # None: as much as input
    batch: Annotated[Decimal, Field(gt=0, le=1)] | None = None  # the share that a batch costs
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    date: date
    source: str = Field(min_length=1)

    @model_validator(mode="after")
    def _in_whole_nano_units(self) -> Self:
        for share in {Decimal(1), self.batch or Decimal(1)}:
            for amount in (self.input, self.output, self.cached_input or Decimal(0)):
                nano = amount * NANO_A_TOKEN * share
                if nano != nano.to_integral_value():
                    raise ValueError(
                        f"{amount} per 1M tokens{'' if share == 1 else f', {share} of it in a batch,'} is no whole "
                        "number of nano-units a token: round it up to three decimals"
                    )
        if self.cached_input is not None and self.cached_input > self.input:
            raise ValueError("cached_input is above input: the worst case of a call would not be its worst")
        return self


class Profile(BaseModel, extra="forbid", frozen=True):
    """One model as it is asked of one host."""

    alias: str
    # None: the user says where, here or in `base_url_variable`
    base_url: Annotated[Optional, AfterValidator(lambda url: url and _address(url))] = None
    base_url_variable: Optional = None
    model: str = Field(min_length=1)  # the host's own name of it
    key_variable: Optional = None  # None: the host wants no key
    structured: Literal["json_schema", "json_object", "none"] = "none"
    extra_body: Annotated[dict[str, Any], AfterValidator(_sendable)] = {}
    # Sent as it stands. "none": the model takes none, and no prompt's hint is sent; unset: as the prompt has it.
    temperature: Annotated[float, Field(ge=0, le=2)] | Literal["none"] | None = None
    system_prompt: bool = True  # False: what is to be done stands in the first user message, before the data
    max_tokens: int = Field(4096, ge=1)  # the most that one reply may hold; a chain of thought counts
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # what the host calls it
    image_tokens: int | None = Field(None, ge=1)  # the most that a picture takes; None: it is asked about none
    thinking: bool = False  # whether it reasons before it answers: then it has no use for the hints of a prompt
    price: Price | None = None
    requests_per_minute: int | None = Field(None, ge=1)
    tokens_per_minute: int | None = Field(None, ge=1)
    concurrency: int = Field(16, ge=1)

    @model_validator(mode="after")
    def _one_temperature(self) -> Self:
        if self.temperature is not None and "temperature" in self.extra_body:
            raise ValueError("temperature is given here and in extra_body: one of them would be lost")
        return self


def profiles(extra: Path | None = None) -> dict[str, Profile]:
    """The profiles by alias: ours, and over them those of the file `extra`.

    A table of `extra` under an alias of ours changes the fields that it names. One that changes the host has to name
    the variable of the key as well, and takes no price from ours; one that changes the model alone takes none but a
    price of nothing. Raises UnreadableFile; SettingsError for what cannot be, with the nearest of an unknown key.
    """
    tables: dict[str, dict[str, Any]] = {}
    for path in sorted(SHIPPED.glob("*.toml")):
        tables |= _tables(path)
    known = {alias: _profile(alias, table, SHIPPED) for alias, table in tables.items()}
    if extra is not None:
        for alias, table in _tables(extra).items():
            known[alias] = _profile(alias, _merged(alias, tables.get(alias, {}), table, extra), extra)
    return known


def shapes(profile: Profile) -> dict[str, Any]:
    """What of a profile decides the payload, and so what is asked: another value of any, another question."""
    named = {
        "model",
        "structured",
        "extra_body",
        "temperature",
        "system_prompt",
        "max_tokens",
        "limit_field",
        "thinking",
    }
    return profile.model_dump(mode="json", include=named)


def profile(known: Mapping[str, Profile], alias: str) -> Profile:
    """The profile of an alias. Raises UnknownName, with the nearest."""
    if alias not in known:
        raise UnknownName("model profile", alias, known)
    return known[alias]


def base_url(profile: Profile) -> str | None:
    """Where the model is served, as its variable or else the profile says; None where neither does."""
    return os.environ.get(profile.base_url_variable or "", "") or profile.base_url


def host(profile: Profile) -> str:
    """The base URL to ask. Raises NoHost where nobody has given one, SettingsError for one that is none."""
    if named := base_url(profile):
        try:
            return _address(named)
        except ValueError as error:
            raise SettingsError(
                str(error), where=f"the environment variable {profile.base_url_variable}", hint="correct it"
            ) from error
    variable = f"set {profile.base_url_variable}, or " if profile.base_url_variable else ""
    raise NoHost(
        f"nobody has said which host serves {profile.alias}",
        where=f"the model profile {profile.alias!r}",
        hint=f'{variable}write [{_toml_key(profile.alias)}] base_url = "https://…/v1" into a file of your own and '
        "name it in the settings ([llm] profiles)",
    )


def key(profile: Profile) -> str | None:
    """The key to send, None for a host that wants none. Raises NoKey; SettingsError for what no request can hold."""
    if profile.key_variable is None:
        return None
    value = os.environ.get(profile.key_variable, "").strip()
    if not value:
        raise NoKey(
            f"the key for {profile.alias} is missing",
            where=f"the environment variable {profile.key_variable}",
            hint=f"export {profile.key_variable}=…, or name a profile of your own machine (docs/asking.md)",
        )
    if not (value.isascii() and value.isprintable()):
        raise SettingsError(
            f"the key for {profile.alias} has letters or line breaks that no key has",
            where=f"the environment variable {profile.key_variable}",
            hint="copy it again, alone",
        )
    return value


def price(profile: Profile) -> Price:
    """What it costs. Raises UnknownPrice where that is unknown: nothing is asked at an unknown price."""
    return profile.price or prices([profile])[0]


def prices(profiles: Iterable[Profile]) -> list[Price]:
    """What each costs. Raises UnknownPrice, which names all whose price is unknown."""
    priced = {profile.alias: profile.price for profile in profiles}
    known = [price for price in priced.values() if price is not None]
    if unknown := [alias for alias, price in priced.items() if price is None]:
        tables = ", ".join(f"[{_toml_key(alias)}.price]" for alias in unknown)
        raise UnknownPrice(
            f"nobody has said what {' and '.join(unknown)} cost{'s' if len(unknown) == 1 else ''}",
            where=f"the model profile{'s' if len(unknown) > 1 else ''} {', '.join(map(repr, unknown))}",
            hint=f"write {tables} with input and output (per 1M tokens; 0 for a machine of your own), currency, "
            "date and source into a file of your own and name it in the settings ([llm] profiles)",
        )
    return known


def _tables(path: Path) -> dict[str, dict[str, Any]]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UnreadableFile(
            f"the model profiles cannot be read: {error}", where=path, hint="name a TOML file with a table a profile"
        ) from error
    for alias, table in tables.items():
        if not isinstance(table, dict):
            raise SettingsError(
                f"{alias!r} stands outside of a profile",
                where=path,
                hint='put it below the alias that it belongs to: ["my-model"]',
            )
    return tables


def _merged(alias: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The fields of ours with those of the user's over them."""
    kept = dict(ours)
    if theirs.keys() & _OF_A_HOST:
        if kept.get("key_variable") and "key_variable" not in theirs:
            raise SettingsError(
                f"the profile {alias!r} has another host, and nobody has said which key goes there",
                where=path,
                hint='give key_variable as well ("" where the host wants none): no key is sent to a host by itself',
            )
        kept = {name: value for name, value in kept.items() if name not in {"price", *_OF_A_HOST}}
    elif "model" in theirs and any(kept.get("price", {}).get(part) for part in ("input", "output")):
        del kept["price"]  # a host that takes nothing takes nothing for another model
    return kept | dict(theirs)


def _profile(alias: str, table: Mapping[str, Any], where: Path) -> Profile:
    if table.get("alias", alias) != alias:
        raise SettingsError(
            f"the model profile {alias!r} says that its alias is another", where=where, hint="leave alias out"
        )
    try:
        return Profile.model_validate({**table, "alias": alias})
    except ValidationError as error:
        first = error.errors()[0]
        named = [str(part) for part in first["loc"]]
        section = Price if named[:1] == ["price"] else Profile
        if first["type"] == "extra_forbidden":
            near = difflib.get_close_matches(named[-1], list(section.model_fields), n=1, cutoff=0.0)
            what, hint = f"has no key {'.'.join(named)!r}", f"did you mean {near[0]!r}?"
        elif first["type"] == "missing":
            what, hint = f"lacks {'.'.join(named)!r}", "add it"
        else:
            what, hint = f"cannot have this {'.'.join(named) or 'content'}: {first['msg']}", "correct the value"
        raise SettingsError(f"the model profile {alias!r} {what}", where=where, hint=hint) from error


def _toml_key(alias: str) -> str:
    """The alias as a key of TOML: bare only where it is of ASCII letters, digits, - and _."""
    return alias if re.fullmatch(r"[A-Za-z0-9_-]+", alias) else json.dumps(alias, ensure_ascii=False)
