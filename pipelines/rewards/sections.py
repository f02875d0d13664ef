"""What stands inside the tags of an output that need not be well formed: a judge is shown nothing else.

It is read as strictly as one element can be: a second one of its name, or a tag of the format inside it, and there is
no telling what the seeker would see. The cost is linear in the length of the text, whatever stands in it.
"""

from schemas.reasoning import tags


def section(text: str, name: str, names: tuple[str, ...]) -> str | None:
    """The stripped text of the only element `name`; None where there is none, a second, a tag in it, or no text.

    Args:
        text: An output.
        name: Of the element.
        names: Those of the format's elements.
    """
    found = tags(text, names)
    mine = [place for place, tag in enumerate(found) if tag.name == name]
    if len(mine) != 2 or mine[1] != mine[0] + 1:
        return None
    opening, closing = (found[place] for place in mine)
    if opening.closing or not closing.closing:
        return None
    return text[opening.end : closing.start].strip() or None
