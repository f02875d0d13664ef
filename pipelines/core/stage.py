"""What a stage is: a function that makes tables from others, with a record of what decides its result.

    @stage("sampled_turns", group="sample", reads=(…), units={…})
    def make_sampled_turns(coherent_dialogues: pl.DataFrame, settings: Settings) -> Result:

Its parameters are its parents, by name. One that is named as a table of its own is what stands of that table: the stage
builds upon it. Those of `HANDED_IN` are no tables. A stage that makes one table returns `(kept, dropped)`, one that
makes several a dict of these. One that asks models returns a plan (`llm.tasks.Plan`) in its place.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from inspect import signature
from operator import getitem
from types import MappingProxyType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
Units = Mapping[str, Mapping[str, tuple[str, ...]]]

# All settings; the aliases of the models to ask; the versions of the parents, by table; a folder for what is not to be
# in memory (`core.spill`), or None for the system's.
HANDED_IN = frozenset({"settings", "models", "versions", "scratch"})


@dataclass(frozen=True)
class Stage:
    """One step of the pipeline.

    `asks` names the setting that holds the models to ask. `reads` names the settings that decide the result. `units`
    says in which units the rows of a table are accounted for, each with the parents that they come from.
    `optional_parents` may never have been made: people fill them, or a model that nobody has named yet. `structural`:
    without a model the function is handed none, and returns its tables; any other stage that asks waits for one.
    `by_row`: each row of its one table follows from one row of one parent and the settings, so that it is made chunk by
    chunk, and only of what is new. Of the parents in `looks_up` a row also takes those rows whose second column there
    is as its first, with the columns named behind these: {"splits": ("group_id", "group_id", "split")}. Of a parent in
    `whole` all rows are one piece, for some of them follow from each other.
    """

    name: str
    function: Callable[..., Any]
    group: str
    tables: tuple[str, ...]
    asks: str | None
    reads: tuple[str, ...]
    units: Units
    optional_parents: tuple[str, ...]
    structural: bool
    by_row: bool
    looks_up: Mapping[str, tuple[str, ...]]
    whole: tuple[str, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """What the function takes, by name."""
        return tuple(signature(self.function).parameters)

    @property
    def parents(self) -> tuple[str, ...]:
        """The tables that it is made from."""
        return tuple(name for name in self.parameters if name not in HANDED_IN and name not in self.tables)

    @property
    def builds_upon(self) -> tuple[str, ...]:
        """Its own tables whose rows stay, and are added to (`schemas.tables.STANDING`)."""
        return tuple(name for name in self.parameters if name in self.tables)

    def settings(self, settings: Any) -> dict[str, Any]:
        """The part of the settings (`pipelines.settings.Settings`) that decides the result."""
        dumped = settings.model_dump(mode="json")
        decisive = {name: reduce(getitem, name.split("."), dumped) for name in self.reads}
        sizes = self.sizes(settings)
        decisive |= sizes | {"seed": dumped["seed"]} if sizes else {}  # the seed draws them
        return decisive | ({"models": self.models(settings)} if self.asks else {})

    def sizes(self, settings: Any) -> dict[str, int]:
        """How many things it asks about at most, by the arguments `size` and `held_out` of `llm.tasks.sampled`: what
        the settings say of it (`sizes` beside its models). One that is not there: about all, or it asks nothing.
        """
        if not self.asks:
            return {}
        sizes = getattr(settings, self.asks.partition(".")[0]).sizes
        wanted = {"size": getattr(sizes, self.name), "held_out": getattr(sizes, f"{self.name}_held_out", None)}
        return {name: size for name, size in wanted.items() if size is not None}

    def models(self, settings: Any) -> tuple[str, ...]:
        """The aliases of the models that the settings name for the stage; none for one that asks none."""
        if not self.asks:
            return ()
        named: Any = reduce(getattr, self.asks.split("."), settings)
        return (named,) if isinstance(named, str) else tuple(named)


def stage(
    name: str,
    *,
    group: str,
    tables: tuple[str, ...] = (),
    asks: str | None = None,
    reads: tuple[str, ...] = (),
    units: Units = MappingProxyType({}),
    optional_parents: tuple[str, ...] = (),
    structural: bool = False,
    by_row: bool = False,
    looks_up: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    whole: tuple[str, ...] = (),
) -> Callable[[F], F]:
    """Attaches the record of a stage to its function, as `function.stage`; the function stays as it is.

    The arguments are the fields of `Stage`; without `tables` the stage makes one, of its own name.
    """

    def attach(function: F) -> F:
        record = Stage(
            name,
            function,
            group,
            tables or (name,),
            asks,
            reads,
            units,
            optional_parents,
            structural,
            by_row,
            looks_up,
            whole,
        )
        function.stage = record  # type: ignore[attr-defined]
        return function

    return attach
