"""MESC (Chu et al., 2024): the sessions of the TV series *In Treatment*, an utterance a row, with times of the video.

Read is ``MESC.csv``: Utterance, Speaker (Client, Therapist), Emotion, Strategy (`undefined` for the client),
Dialogue_ID, Utterance_ID, Season, Episode, StartTime, EndTime. The set's train, val and test.json are refused: to each
text they append what a model said of the speaker's face, with nothing to tell the two apart.
"""

import re
from collections.abc import Iterator
from functools import partial

from pipelines.errors import UnreadableFile
from pipelines.ingest.delimited import Delimited, Row
from pipelines.ingest.fields import Unfit
from pipelines.ingest.jsons import fitted
from pipelines.ingest.records import Broken, Dialogue, Media, Record, Source, Utterance

VIDEO_LICENCE = "all rights reserved (HBO); the video is not part of the set"

_COLUMNS = {
    "dialogue": ("Dialogue_ID", "dialog_id", "conversation_id"),
    "utterance": ("Utterance_ID", "utt_id", "turn_id"),
    "speaker": ("Speaker", "role"),
    "text": ("Utterance", "text"),
    "emotion": ("Emotion",),
    "strategy": ("Strategy",),
    "season": ("Season",),
    "episode": ("Episode",),
    "start": ("StartTime", "start"),
    "end": ("EndTime", "end"),
}
_REQUIRED = ("dialogue", "utterance", "speaker", "text")
_TIME = re.compile(r"(\d{1,2}):(\d{2}):(\d{2})[,.](\d{3})")


def read(source: Source) -> Iterator[Record | Broken]:
    """The dialogues of a CSV file; one of which a row cannot be read is Broken as a whole, a lost row is a gap."""
    if source.text.lstrip().startswith(("[", "{")):
        raise UnreadableFile(
            "the JSON files of MESC mix a model's description of the video into what people say",
            where=source.name,
            hint="read MESC.csv",
        )
    table = Delimited(source)
    columns = table.columns(_COLUMNS, _REQUIRED)
    dialogues: dict[str, list[Row]] = {}
    for row in table.rows():
        if isinstance(row, Broken):
            yield row
        else:
            named = {ours: row.values[theirs].strip() for ours, theirs in columns.items()}
            dialogues.setdefault(named["dialogue"], []).append(Row(row.where, row.line, named))
    for name, rows in dialogues.items():
        yield fitted(rows[0].where, partial(_dialogue, name, rows))


def _dialogue(name: str, rows: list[Row]) -> Dialogue:
    if not name:
        raise Unfit("missing_field", "no dialogue id")
    ordered = {_number(row, "utterance"): row for row in rows}
    if len(ordered) < len(rows):
        raise Unfit("wrong_order", "two utterances have the same number")
    first = rows[0].values
    attributes = [(key, first[key]) for key in ("season", "episode") if first.get(key)]
    if missing := [str(number) for number in range(max(ordered)) if number not in ordered]:
        attributes.append(("missing_utterances", ", ".join(missing)))
    said = tuple(_utterance(ordered[number]) for number in sorted(ordered))
    return Dialogue(rows[0].where, said, source_id=name, attributes=tuple(attributes))


def _utterance(row: Row) -> Utterance:
    values = row.values
    if not values["text"]:
        raise Unfit("missing_field", f"line {row.line} says nothing")
    strategy = values.get("strategy", "")
    return Utterance(
        values["speaker"],
        values["text"],
        strategies=(strategy,) if strategy and strategy != "undefined" else (),
        emotion=values.get("emotion") or None,
        media=_clip(row),
    )


def _clip(row: Row) -> tuple[Media, ...]:
    """The passage of the series that the utterance is, by season, episode and time."""
    values = row.values
    if not (values.get("season") and values.get("episode") and values.get("start") and values.get("end")):
        return ()
    uri = f"in-treatment/s{_number(row, 'season'):02}e{_number(row, 'episode'):02}"
    return (Media(uri, "video", None, _milliseconds(row, "start"), _milliseconds(row, "end"), VIDEO_LICENCE),)


def _milliseconds(row: Row, key: str) -> int:
    found = _TIME.fullmatch(row.values[key])
    if found is None:
        raise Unfit("wrong_value", f"line {row.line}: {key} is no time of the form 00:00:00,000")
    hours, minutes, seconds, milliseconds = map(int, found.groups())
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds


def _number(row: Row, key: str) -> int:
    if not row.values[key].isdecimal():
        raise Unfit("wrong_type", f"line {row.line}: {key} is not a whole number")
    return int(row.values[key])
