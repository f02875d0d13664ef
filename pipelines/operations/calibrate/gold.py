"""Posts that people labelled: how a file of them is read. No error quotes a post."""

import datetime as dt
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

import polars as pl
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from pipelines.errors import UnknownName, UnreadableFile
from pipelines.store.store import Store
from schemas.labels import CALIBRATED, PII_KINDS

# What a span may be called, and the kind that it counts as. None: neither to be found nor missed.
SPAN_KINDS: dict[str, str | None] = {
    **dict.fromkeys(PII_KINDS, "contact"),
    **dict.fromkeys(("contact", "id"), "contact"),
    **dict.fromkeys(("others", "school", "employer", "hospital", "address", "place"), "others"),
    **{"name": "name", "city": None, "public": None},
}
# `any` follows from the others.
LABELS = tuple(
    kind for stage, kinds in CALIBRATED.items() if stage != "personal_data" for kind in kinds if kind != "any"
)

_TABLES = ("raw_posts", "imported_posts")


def _known(what: str, known: tuple[str, ...], name: str) -> str:
    if name not in known:
        error = UnknownName(what, name, known)
        raise ValueError(f"{error.what} ({error.hint})")
    return name


Label = Annotated[str, AfterValidator(partial(_known, "label", LABELS))]
SpanKind = Annotated[str, AfterValidator(partial(_known, "kind of span", tuple(SPAN_KINDS)))]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Span(_Part):
    """Where a post holds personal data: its words, wherever they stand, or the first character and the one after the
    last; both are held against each other.
    """

    kind: SpanKind
    text: str | None = Field(None, min_length=1)
    start: int | None = Field(None, ge=0)
    end: int | None = None

    @model_validator(mode="after")
    def _stands_somewhere(self) -> Self:
        if (self.start is None) != (self.end is None) or (self.text is None and self.start is None):
            raise ValueError("a span has a text, or a start and an end")
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise ValueError("a span ends after it starts")
        return self

    def places(self, text: str) -> list[tuple[int, int]]:
        """Its places in a post, in characters; none where the post does not hold it."""
        if self.start is None or self.end is None:
            return [match.span() for match in re.finditer(re.escape(self.text or ""), text)]
        stands = self.end <= len(text) and self.text in (None, text[self.start : self.end])
        return [(self.start, self.end)] if stands else []


class Reading(_Part):
    """What somebody found in a post. `spans` are for `personal_data`, `labels` for the other stages; an empty list says
    that there is nothing.
    """

    labels: list[Label] | None = None
    spans: list[Span] | None = None

    def of_stage(self, stage: str) -> list[Any] | None:
        """What it says that concerns a stage; None: nothing, not even that there is nothing."""
        return self.spans if stage == "personal_data" else self.labels


class GoldPost(Reading):
    """A line of the file: a post, by its text or by the id of a row of the home, and what it holds.

    `title` and `posted_at` are read by the rules that read them of a post of the home. Without labels of its own the
    post has those of its first reader.
    """

    id: str
    text: str | None = None
    row_id: str | None = None
    title: str = ""
    posted_at: dt.date | None = None
    readers: dict[str, Reading] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_one_post(self) -> Self:
        if (self.text is None) == (self.row_id is None):
            raise ValueError("a post has a text, or the row_id of one in the home")
        return self

    def truth(self, stage: str) -> Reading | None:
        """What counts as right: what is said of the post itself, or by its first reader; None: nothing is said."""
        return next((one for one in (self, *self.readers.values()) if one.of_stage(stage) is not None), None)


def read_gold(path: Path, stage: str, store: Store | None = None) -> list[GoldPost]:
    """The posts of a file, a line of JSON each, all with their texts.

    Raises UnreadableFile, with the line, for what is no such post, has an id for the second time, says nothing of the
    stage, names a row that `store` has not, or a span that its text does not hold.
    """
    posts: dict[int, GoldPost] = {}
    seen: set[str] = set()
    for number, line in _lines(path):
        try:
            post = GoldPost.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            problem = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
            raise _unreadable(problem, path, number) from None  # pydantic's own words quote the line
        if post.id in seen:
            raise _unreadable(f"the id {post.id!r} is there already", path, number)
        if post.truth(stage) is None:
            field = "spans" if stage == "personal_data" else "labels"
            raise _unreadable(f"{stage} needs {field} (where there are none: an empty list)", path, number)
        seen.add(post.id)
        posts[number] = post
    if not posts:
        raise UnreadableFile("no post is in the file", where=path, hint=_HINT)
    rows = _rows(store, {post.row_id for post in posts.values() if post.row_id is not None})
    for number, post in posts.items():
        if post.row_id is not None and post.row_id not in rows:
            raise _unreadable(f"no row of {' or '.join(_TABLES)} has the id {post.row_id!r}", path, number)
        posts[number] = post.model_copy(update=rows.get(post.row_id or "", {}))
        for reading in (post, *post.readers.values()):
            for place, span in enumerate(reading.spans or []):
                if not span.places(posts[number].text or ""):
                    raise _unreadable(f"spans.{place}: the post does not hold it", path, number)
    return list(posts.values())


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"the file cannot be read: {type(error).__name__}", where=path, hint=_HINT) from None
    return ((number, line) for number, line in enumerate(content.split("\n"), 1) if line.strip())


def _rows(store: Store | None, ids: set[str]) -> dict[str, dict[str, Any]]:
    """Of the posts with these ids `text`, `title`, `posted_at`, as they came."""
    rows: dict[str, dict[str, Any]] = {}
    versions = [version for table in _TABLES for version in store.current(table)] if store and ids else []
    for one in versions:
        assert store is not None
        came = store.read(one.table, one.version, one.partition).filter(pl.col("post_id").is_in(list(ids)))
        for row in came.select("post_id", "title", "description", "posted_at").collect().iter_rows(named=True):
            title, body, posted_at = row["title"], row["description"], row["posted_at"]
            whole = body if body.startswith(title) else "\n".join(filter(None, (title, body)))  # as cleaning joins them
            rows[row["post_id"]] = {"text": whole, "title": title, "posted_at": posted_at and posted_at.date()}
    return rows


_HINT = "a JSON object a line: id, text or row_id, then labels, spans or readers (docs/calibrating.md)"


def _unreadable(problem: str, path: Path, number: int) -> UnreadableFile:
    return UnreadableFile(f"no labelled post: {problem}", where=f"{path}, line {number}", hint=_HINT)
