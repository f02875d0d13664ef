"""Gold for M's judge: pairs of replies to a post that differ in one fault of those that cost points (M §3.2.2).

All of it is invented, by us, and says so in its ids. Nothing is claimed of any judge: one that is held against them
scores both replies of a pair, and the better one should have more points in the pair's dimension.
"""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.errors import UnreadableFile
from schemas.labels import Label
from schemas.reasoning import Lang

PAIRS = Path(__file__).parent / "gold" / "mindchat.jsonl"

# By the dimension in which each costs points; the names are those of the judge's prompts.
FAULTS: dict[str, tuple[Label, ...]] = {
    "fluency_comfort": (Label("rigid", "生硬"), Label("templated", "套话"), Label("list-like", "罗列")),
    "empathic_understanding": (Label("preachy", "说教"), Label("detached", "疏离"), Label("factual", "只讲事实")),
    "support_encouragement": (Label("doubt", "怀疑"), Label("challenge", "反驳"), Label("rhetorical question", "反问")),
}


class FaultPair(BaseModel):
    """Two replies to a post: `worse` has the `fault`, a name of `FAULTS[dimension]`, and `better` has none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    lang: Lang
    dimension: str
    fault: str
    post: str
    better: str
    worse: str


def read_pairs(path: Path = PAIRS) -> list[FaultPair]:
    """The pairs of a file, a line of JSON each. Raises UnreadableFile, which names the line."""
    pairs: list[FaultPair] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            pairs.append(FaultPair.model_validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            raise UnreadableFile(
                f"line {number} is no pair: {'.'.join(map(str, first['loc']))} {first['msg']}",
                where=path,
                hint=f"a JSON object with {', '.join(FaultPair.model_fields)}",
            ) from error
    return pairs
