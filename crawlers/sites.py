"""Sites, each a TOML file: which engine it runs on, where it stands, its boards, its terms, its manners.

A new forum is a new file in `crawlers/sites/`. An unknown key is an error: a mistyped delay is not no delay.
"""

import tomllib
from collections.abc import Iterable
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from crawlers.errors import RequestRefused, nearest
from schemas.labels import CONSENTS, LANGUAGES, ORIGINS
from schemas.taxonomy import TAXONOMY

FOLDER = Path(__file__).parent / "sites"
_EXAMPLES = "see an example in crawlers/sites/"
# Each names its module of `crawlers.pages` and of `crawlers.spiders`.
Engine = Literal["xinli001", "discuz", "discourse", "nodebb", "douban_group"]


def _one_of(known: Iterable[str], value: str) -> str:
    if value not in known:
        raise ValueError(f"{value!r} is not known; {nearest(value, known)}")
    return value


_Topic = Annotated[str, AfterValidator(partial(_one_of, TAXONOMY))]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Board(_Closed):
    """One list of a forum: its id in the engine's URLs, and our main topic for its posts, where one fits."""

    id: str = Field(min_length=1)
    topic: _Topic | None = None


class Robots(_Closed):
    """What was known of the site's robots.txt when the file was written. A crawl fetches the real one."""

    known: bool
    note: str = ""


class Politeness(_Closed):
    """Seconds between two requests at least (robots' Crawl-delay and the throttle only ever raise it)."""

    delay: Annotated[float, Field(ge=1.0, le=120.0)] = 2.0


class Site(_Closed):
    """A site that may be crawled. Its name is the `source` of its posts."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str
    example: bool = False  # shows how a file is written; no schedule crawls it
    engine: Engine
    base_url: str = Field(pattern=r"^https?://")
    boards: tuple[Board, ...] = ()
    rewritten_urls: bool = False  # Discuz: forum-2-1.html and not forum.php?mod=forumdisplay…
    charset: str | None = None  # only where the pages do not declare it, or declare a wrong one
    licence: str = Field(min_length=1)
    consent: Annotated[str, AfterValidator(partial(_one_of, CONSENTS))]
    lang: Annotated[str, AfterValidator(partial(_one_of, LANGUAGES))] = "zh"
    origin: Annotated[str, AfterValidator(partial(_one_of, ORIGINS))] = "human"
    lineage: tuple[str, ...] = ()
    robots: Robots
    politeness: Politeness = Politeness()
    topics: dict[str, _Topic] = {}  # the site's name of a topic → ours
    overrides: dict[str, str] = {}  # CSS selectors by name, for skins

    @field_validator("charset")
    @classmethod
    def _is_a_charset(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                "".encode(value)
            except LookupError:
                raise ValueError(f"{value!r} is no encoding that Python knows") from None
        return value

    @field_validator("overrides")
    @classmethod
    def _are_selectors_of_the_engine(cls, overrides: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        if overrides and "engine" in info.data:  # it is not where it is wrong itself
            for name in overrides:
                _one_of(import_module(f"crawlers.pages.{info.data['engine']}").SELECTORS, name)
        return overrides

    @property
    def host(self) -> str:
        """The name of the host, for which Dagster has a pool of runs."""
        return urlsplit(self.base_url).hostname or ""


def read_site(path: Path) -> Site:
    """The site that the TOML file at `path` describes.

    Raises RequestRefused for a file that can not be read, is no TOML, or has a wrong key or value.
    """
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RequestRefused(f"the site's file can not be read: {error}", where=path, hint=_EXAMPLES) from error
    try:
        return Site.model_validate(fields)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            known = {name for model in (Site, Board, Robots, Politeness) for name in model.model_fields}
            hint = nearest(str(problem["loc"][-1]), known)
            raise RequestRefused(f"there is no key {key!r} in a site's file", where=path, hint=hint) from None
        raise RequestRefused(
            f"{key}: {problem['msg'].removeprefix('Value error, ')}", where=path, hint=_EXAMPLES
        ) from None


@cache
def sites() -> dict[str, Site]:
    """Every site of the repository, by name."""
    by_name = {}
    for path in sorted(FOLDER.glob("*.toml")):
        site = read_site(path)
        if site.name != path.stem:
            raise RequestRefused(f"the site is called {site.name!r}", where=path, hint="name the file after the site")
        by_name[site.name] = site
    return by_name


def find_site(source: str) -> Site:
    """The site of a name, or of a path to a TOML file outside the repository.

    Raises RequestRefused for a name that no file has.
    """
    if source.endswith(".toml"):
        return read_site(Path(source))
    try:
        return sites()[source]
    except KeyError:
        raise RequestRefused(f"there is no site {source!r}", hint=nearest(source, sites())) from None
