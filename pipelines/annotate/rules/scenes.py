"""A clause with what stands around it: what is said there is read with its neighbours and the feelings beside it."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.annotate.rules.clauses import Clause
from pipelines.annotate.rules.feelings import Feeling
from schemas.labels import SENTIMENT_OF
from schemas.reasoning import Lang


@dataclass(frozen=True, slots=True)
class Scene:
    """The clause `parts[place]` of `text`, its neighbours, and what the writer feels."""

    text: str
    parts: Sequence[Clause]
    place: int
    own: Sequence[Feeling]  # of the whole text: the writer's, and not denied
    lang: Lang

    @property
    def part(self) -> Clause:
        """The clause itself."""
        return self.parts[self.place]

    @property
    def before(self) -> Clause | None:
        """The clause before, in the same sentence."""
        return self._beside(self.place - 1)

    @property
    def after(self) -> Clause | None:
        """The clause behind, in the same sentence."""
        return self._beside(self.place + 1)

    def _beside(self, place: int) -> Clause | None:
        near = 0 <= place < len(self.parts) and self.parts[place].sentence == self.part.sentence
        return self.parts[place] if near else None

    def here(self, *places: int) -> list[Feeling]:
        """The writer's feelings in the clauses so far from this one, in its sentence."""
        wanted = {self.place + n for n in places if self._beside(self.place + n)}
        return [one for one in self.own if one.clause in wanted]

    @property
    def troubled(self) -> bool:
        """Whether a feeling that is no pleasant one is named here or right behind."""
        return any(SENTIMENT_OF[one.emotion] != "positive" for one in self.here(0, 1))
