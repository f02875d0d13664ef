"""The mapping file of a data set without a reader: what the set is, and which field goes where (TOML).

`docs/mapping.md` shows every key.
"""

import difflib
import tomllib
from pathlib import Path
from typing import Literal, Self
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from pipelines.errors import UnreadableFile

ORIGIN = Literal["human", "model", "unknown"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Columns(_Section):
    """The fields of a post or a dialogue. A post needs a title; without an `id` the hash of the words is taken."""

    id: str | None = None
    lang: str | None = None
    topic: str | None = None
    # posts
    title: str | None = None
    description: str | None = None
    subtopics: str | None = None
    url: str | None = None
    author: str | None = None
    posted_at: str | None = None
    # dialogues
    situation: str | None = None
    emotion: str | None = None
    modality: str | None = None


class Answers(_Section):
    """The fields of an answer. Without `text` each item of `list` is one itself."""

    list: str | None = None
    text: str | None = None
    id: str | None = None
    author: str | None = None
    author_role: str | None = None
    posted_at: str | None = None
    likes: str | None = None
    recommended: str | None = None


class Clips(_Section):
    """The fields of a clip of a turn. `needed` may be true for every clip: text does not do for it."""

    list: str
    uri: str
    kind: str
    sha256: str | None = None
    start_ms: str | None = None
    end_ms: str | None = None
    licence: str | None = None
    needed: str | bool | None = None


class Turns(_Section):
    """The fields of a turn."""

    list: str
    role: str
    text: str
    emotion: str | None = None
    strategies: str | None = None
    feedback: str | None = None
    media: Clips | None = None


class Roles(_Section):
    """What the source calls either side."""

    seeker: tuple[str, ...] = ()
    supporter: tuple[str, ...] = ()


class AuthorRoles(_Section):
    """What the source calls the writers of answers."""

    professional: tuple[str, ...] = ("professional",)
    member: tuple[str, ...] = ("member",)
    unknown: tuple[str, ...] = ("unknown",)


class Sides(_Section):
    """Who wrote what either side says."""

    seeker: ORIGIN
    supporter: ORIGIN


class Mapping(_Section):
    """A mapping file."""

    kind: Literal["posts", "dialogues"]
    title: str = "a data set read by a mapping"
    licence: str
    consent: Literal["given", "public_licence", "agreement", "not_asked", "synthetic", "invented"]
    lang: Literal["zh", "en"]
    origin: ORIGIN | Sides = "unknown"
    lineage: tuple[str, ...] = ()
    encoding: str | None = None
    sheet: str | None = None  # of a spreadsheet; without a name its first
    timezone: ZoneInfo = ZoneInfo("Asia/Shanghai")  # of times without one
    columns: Columns = Columns()
    answers: Answers | None = None
    turns: Turns | None = None
    roles: Roles = Roles()
    author_roles: AuthorRoles = AuthorRoles()
    attributes: dict[str, str] = {}

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.kind == "posts" and self.columns.title is None:
            raise ValueError("posts need `title` under [columns]")
        if self.kind == "dialogues" and self.turns is None:
            raise ValueError("dialogues need [turns]")
        if self.answers is not None and self.answers.text is None and self.answers.list is None:
            raise ValueError("[answers] needs `text`, or a `list` of texts")
        return self

    @property
    def names_authors(self) -> bool:
        """Whether a column holds the name of a writer."""
        return self.columns.author is not None or (self.answers is not None and self.answers.author is not None)


def load(path: Path) -> Mapping:
    """The mapping at `path`. Raises UnreadableFile for one that is missing or wrong; it names the nearest key."""
    try:
        return Mapping.model_validate(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        raise UnreadableFile("the mapping file cannot be read", where=path, hint="check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"the mapping file is no TOML: {error}", where=path, hint="correct it") from error
    except ValidationError as error:
        problems = [_problem(str(one["type"]), one["loc"], one["msg"]) for one in error.errors()]
        raise UnreadableFile("the mapping file is wrong: " + "; ".join(problems), where=path) from error


def _problem(kind: str, loc: tuple[int | str, ...], message: str) -> str:
    key = ".".join(map(str, loc))
    if kind != "extra_forbidden":
        return f"`{key}`: {message}" if key else message
    near = difflib.get_close_matches(str(loc[-1]), _KEYS, n=1)
    return f"there is no key `{key}`" + (f"; did you mean `{near[0]}`?" if near else "")


_KEYS = sorted({name for section in _Section.__subclasses__() for name in section.model_fields})
