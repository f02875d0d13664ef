"""What prompts demand of the words of a reply, held: quotations that are none, 你 for 您, lists, a model's I."""

import re
from collections.abc import Collection

from pipelines.llm.questions import InvalidReply
from pipelines.text.artefacts import kinds
from pipelines.text.quotations import LEAST_QUOTED, in_corners, n_letters, stands_in, unquoted

# Where 你 is no address of one reader: of several, for 您 has no plural, and in words and sayings. Ours.
_NO_ADDRESS = re.compile("你们|迷你|你我|你死我活|你追我赶|你来我往|你情我愿|你争我夺|你侬我侬|你一[言句]我一[语句]")
_NOT_SAID = {
    **dict.fromkeys(("list", "enumeration"), ("form:list", "answer must be said as people talk, without a list")),
    "ai": ("artefact:ai", "answer must not speak of an AI, a model or a program as the one who talks"),
}


def require_quotations(source: str, among: Collection[str], **sections: str) -> None:
    """Raises InvalidReply where a section quotes in 「」 what `source` does not say, or none of the sections `among`
    quotes it. Other marks are not looked at: they stand around words that are meant in another sense as well.
    """
    quoted = {name: in_corners(text) for name, text in sections.items()}
    for name, quotes in quoted.items():
        for one in quotes:
            if not stands_in(one, [source]):
                raise InvalidReply(
                    "quote:not_in_text",
                    f"「{one}」 in {name} does not stand in question: 「」 are for its own words alone, copied exactly",
                )
    if not any(n_letters(one) >= LEAST_QUOTED for name in among for one in quoted[name]):
        raise InvalidReply("quote:missing", f"{' or '.join(among)} must quote words of question, in 「」")


def require_polite(**sections: str) -> None:
    """Raises InvalidReply for the first section that says 你 to its reader, outside of quotations."""
    for name, text in sections.items():
        if re.search("[你妳]", _NO_ADDRESS.sub("", unquoted(text))):
            raise InvalidReply(f"address:{name}", f"{name} says 你 to its reader; it must say 您")


def require_speech(answer: str) -> None:
    """Raises InvalidReply for an answer that lists, by numbers, bullets or words (首先 … 其次), or speaks as an AI."""
    for kind in sorted(kinds(answer) & _NOT_SAID.keys()):
        raise InvalidReply(*_NOT_SAID[kind])
