"""Questions and answers as CSV: title, description, answer, and maybe a topic. An answer a row.

Rows with exactly the same title and description are one post. A record is such a post, or a row that cannot be read;
a second equal answer to a post is an answer dropped.
"""

from collections.abc import Iterator

from pipelines.ingest.delimited import Delimited, Row
from pipelines.ingest.records import Answer, Broken, Post, Record, Source

_COLUMNS = {
    "title": ("title", "question", "标题", "问题"),
    "description": ("description", "ask", "content", "描述", "提问"),
    "answer": ("answer", "answer_text", "reply", "response", "回答", "答案"),
    "topic": ("department", "topic", "category", "科室", "主题", "类别"),
}


def read(source: Source) -> Iterator[Record | Broken]:
    """Reads the posts of a CSV file with a header; the description and the topic may be missing."""
    posts: dict[tuple[str, str], list[Row]] = {}
    for row in Delimited(source).named_rows(_COLUMNS, required=("title", "answer")):
        if isinstance(row, Broken):
            yield row
        else:
            posts.setdefault((row.values["title"], row.values.get("description", "")), []).append(row)
    for (title, description), rows in posts.items():
        topics = dict.fromkeys(topic for row in rows if (topic := row.values.get("topic", "").strip()))
        yield Post(
            rows[0].where,
            title,
            description,
            tuple(Answer(row.where, row.values["answer"]) for row in rows),
            topic=next(iter(topics), None),
            subtopics=tuple(topics)[1:],
        )
