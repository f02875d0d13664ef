"""What is evaluated: a file of answers, a model of a profile, or the model or encoder that a run has left."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from pipelines.core.home import Home
from pipelines.errors import UnknownName
from pipelines.llm.profiles import profiles
from pipelines.settings import Llm
from pipelines.train.recipe import load_recipe
from pipelines.train.runs import list_runs, read_note
from pipelines.train.serving import Encode, serve_encoder, serve_model


@dataclass(frozen=True)
class Target:
    """What is evaluated. `alias` is that of the profile to ask, None of a file and of an encoder; `llm` the settings
    that know it.
    """

    name: str
    llm: Llm
    alias: str | None = None
    file: Path | None = None
    encode: Encode | None = None


Kind = Literal["file", "encoder", "run", "profile"]


def kind_of(home: Path, llm: Llm, name: str) -> Kind:
    """What a name is: a path that is there, else a run of the home, else a profile. Raises UnknownName."""
    runs = {run.name: run for run in list_runs(home)}
    if Path(name).is_file():
        return "file"
    if name in runs:
        return "encoder" if load_recipe(read_note(runs[name])["recipe"]).trainer == "contrastive" else "run"
    if name in (known := profiles(llm.profiles)):
        return "profile"
    hint = "name a file of answers, a run of training, or a model profile"
    raise UnknownName("file, run or profile", name, [*runs, *known], hint=f"{hint}: {Home(home).training}")


@contextmanager
def open_target(home: Path, llm: Llm, name: str) -> Iterator[Target]:
    """The target of that name; what a run has left is served until the block ends. Raises as `kind_of` and
    `serve_model`.
    """
    kind, run = kind_of(home, llm, name), Home(home).training / name
    if kind == "file":
        yield Target(Path(name).stem, llm, file=Path(name))
    elif kind == "encoder":
        with serve_encoder(run) as encode:
            yield Target(name, llm, encode=encode)
    elif kind == "run":
        with serve_model(run) as served, TemporaryDirectory() as scratch:
            file = Path(scratch) / "profiles.toml"
            own = llm.profiles.read_text(encoding="utf-8") if llm.profiles is not None else ""
            file.write_text(
                f'{own}\n["{served.model}"]\nbase_url = "{served.base_url}"\nmodel = "{served.model}"\n'
                "temperature = 0.0\n"
                f"max_tokens = {served.max_tokens}\nconcurrency = 8\n"
                'price = { input = "0", output = "0", currency = "USD", date = 2026-01-01, source = "served here" }\n',
                encoding="utf-8",
            )
            yield Target(name, llm.model_copy(update={"profiles": file}), alias=served.model)
    else:
        yield Target(name, llm, alias=name)
