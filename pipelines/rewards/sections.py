"""What stands inside the tags of an output that need not be well formed: a judge is shown nothing else.

It is read as strictly as one element can be: a second one of its name, or a tag of the format inside it, and there is
no telling what the seeker would see. The cost is linear in the length of the text, whatever stands in it.
"""

from schemas.reasoning import Tag, blank, each_tag


def section(text: str, name: str, names: tuple[str, ...]) -> str | None:
    """The stripped text of the only element `name`; None where there is none, a second, a tag in it, or no text to see.

    Args:
        text: An output.
        name: Of the element.
        names: Those of the format's elements.
    """
    opening: Tag | None = None
    closing: Tag | None = None
    for tag in each_tag(text, names):
        if opening is not None and closing is None:
            if tag.name != name or not tag.closing:
                return None
            closing = tag
        elif tag.name == name:
            if closing is not None or tag.closing:
                return None
            opening = tag
    if opening is None or closing is None:
        return None
    held = text[opening.end : closing.start].strip()
    return None if blank(held) else held
