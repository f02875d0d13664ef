"""What the site of the documentation has beside its pages: `python -m tools.docs_site` writes the notebooks as pages,
run over the home where it has tables. As a hook of mkdocs (mkdocs.yml) it takes away links to what the site lacks.
"""

import re
from pathlib import Path
from typing import Any

from pipelines.core.home import Home
from pipelines.errors import NoVersion
from pipelines.settings import ROOT, home

# Links from a page to a file that is none of the pages.
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./[^)]+\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page without links to what the site does not have."""
    return _OUTSIDE.sub(r"\1", markdown)


def write_notebooks(folder: Path, *, run: bool) -> None:
    """Writes each notebook as a page, and its pictures; `run` over the home first. One whose tables the home lacks is
    shown without output.
    """
    import nbformat
    from nbconvert import MarkdownExporter
    from nbconvert.preprocessors import CellExecutionError, ExecutePreprocessor

    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        if run:
            where = {"metadata": {"path": str(ROOT)}}
            try:
                ExecutePreprocessor(timeout=600, kernel_name="python3").preprocess(notebook, where)
            except CellExecutionError as error:
                if error.ename != NoVersion.__name__:
                    raise
                print(f"{path.name} is shown without output: {error.evalue}")  # noqa: T201
                notebook = nbformat.read(path, as_version=4)
        resources = {"output_files_dir": ".", "unique_key": path.stem}
        page, made = MarkdownExporter().from_notebook_node(notebook, resources=resources)
        (folder / f"{path.stem}.md").write_text(page, encoding="utf-8")
        for name, content in made["outputs"].items():
            (folder / Path(name).name).write_bytes(content)


if __name__ == "__main__":
    write_notebooks(ROOT / "docs" / "notebooks", run=Home(home()).data.is_dir())
