"""Pages that need no network: one HTML file, which runs no script and fetches nothing, whatever it shows.

A template extends `page`, `page.html.j2` beside this module, whose blocks are `style` and `content`.
"""

from pathlib import Path
from typing import Any


def render_page(template: Path, title: str, *, lang: str = "en", **values: Any) -> bytes:
    """The page of a template; a value that it lacks is an error, and every text is escaped."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    templates = {"page": Path(__file__).with_name("page.html.j2"), "own": template}
    loader = DictLoader({name: path.read_text(encoding="utf-8") for name, path in templates.items()})
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, loader=loader
    )
    return environment.get_template("own").render(title=title, lang=lang, **values).encode()
