"""Which data set a record of unknown form might be of: for the message when somebody names the wrong one."""

from pipelines.ingest.fields import Node

# The first that fits; what it is, in words.
_FORMS = (
    ("psyqa", ("question", "answers"), "a JSON list with `question` and `answers`"),
    ("esconv", ("dialog", "emotion_type"), "a JSON list with `dialog` and `emotion_type`"),
    ("avamerg", ("conversation_id", "turns"), "a JSON list with `conversation_id` and `turns`"),
    ("emollm", ("conversation",), "a JSON list with `conversation`"),
    ("sharegpt", ("conversations",), "objects with `conversations`"),
    ("soulchat", ("messages",), "objects with `messages`"),
    ("llama_factory", ("instruction", "output"), "objects with `instruction` and `output`"),
    ("smile", ("role", "content"), "a JSON list of turns with `role` and `content`"),
)


def guess(record: Node) -> tuple[str, str] | None:
    """The name of the set that `record` looks like, and its form in words."""
    return next(((name, words) for name, keys, words in _FORMS if all(key in record.value for key in keys)), None)
