"""The filters that every post, answer and dialogue must pass; each gives `(kept, dropped)`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.clean.dialogues import clean_dialogues as clean_dialogues
    from pipelines.clean.posts import clean_posts as clean_posts


def __getattr__(name: str) -> Any:
    """The two steps, imported when first asked for: importing this package does not import polars."""
    if name == "clean_posts":
        from pipelines.clean.posts import clean_posts

        return clean_posts
    if name == "clean_dialogues":
        from pipelines.clean.dialogues import clean_dialogues

        return clean_dialogues
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
