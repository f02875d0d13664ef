"""Closed label sets: roles, splits, emotional-support strategies, stages, sentiments, DISC."""

from dataclasses import dataclass
from typing import NamedTuple

ROLES = ("seeker", "supporter")
ORIGINS = ("human", "model", "unknown")
AUTHOR_ROLES = ("professional", "member", "unknown")
LANGUAGES = ("zh", "en")
MODALITIES = ("text", "text+audio", "text+video", "text+image")
SPLITS = ("train", "validation", "test")
PRECISIONS = ("second", "minute", "hour", "day", "month", "year")
SCRIPTS = ("simplified", "traditional", "mixed", "neutral")
RISKS = ("self_harm", "harm_to_others", "abuse")
PREFERENCES = ("first", "second", "both", "neither")
PII_KINDS = (
    *("phone", "qq", "wechat", "email", "id_card", "bank_card", "licence_plate", "url", "account"),
    *("name", "school", "employer", "hospital", "address"),
)
EDITS = ("signature", "credential")
DOUBTS = ("advertisement", "contact_harvesting", "recruitment", "not_psychological", "not_user_content")
CONSENTS = ("given", "public_licence", "agreement", "not_asked", "synthetic", "invented")
VARIANTS = ("none", "D", "R", "P")


@dataclass(frozen=True, slots=True)
class Label:
    """One label of a closed set, in both languages, with the other names that sources use for it."""

    en: str
    zh: str
    aliases: tuple[str, ...] = ()


class LabelSet:
    """A closed set of labels that can be asked for by any of their names, whatever the case or the white space."""

    def __init__(self, *labels: Label) -> None:
        self.labels = labels
        self._by_name: dict[str, Label] = {}
        for label in labels:
            for name in (label.en, label.zh, *label.aliases):
                if self._by_name.setdefault(_folded(name), label) is not label:
                    raise ValueError(f"the name {name!r} stands for two labels")

    def find(self, name: str) -> Label | None:
        """The label that `name` stands for, or None: the caller decides what becomes of an unknown name."""
        return self._by_name.get(_folded(name))

    @property
    def en(self) -> tuple[str, ...]:
        """The English names."""
        return tuple(label.en for label in self.labels)

    @property
    def zh(self) -> tuple[str, ...]:
        """The Chinese names."""
        return tuple(label.zh for label in self.labels)


def _folded(name: str) -> str:
    return " ".join(name.replace("_", " ").replace("-", " ").split()).casefold()


# C, step 1: the three stages of ESConv's procedure.
STAGES = LabelSet(
    Label("exploration", "探索", ("explore",)),
    Label("comforting", "安慰", ("comfort", "抚慰")),
    Label("action", "行动"),
)

# C, step 2.
SENTIMENTS = LabelSet(
    Label("positive", "积极", ("正面", "正向")),
    Label("negative", "消极", ("负面", "负向")),
    Label("neutral", "中性", ("中立",)),
)

# C, step 3: ESConv's eight (Hill's helping skills). The cross-walk is lossy: PsyQA's "Interpretation", for one,
# has no place in it. Sources keep their own names beside ours, in `source_strategies`.
CROSSWALK_VERSION = 1
STRATEGIES = LabelSet(
    Label("Question", "提问", ("Questions", "询问", "开放式提问", "Open question", "Open questions")),
    Label("Restatement or Paraphrasing", "复述或释义", ("Restatement", "Paraphrasing", "复述", "释义", "重述")),
    Label("Reflection of feelings", "情感反映", ("Reflection of Feeling", "情感反应", "反映情感")),
    Label("Self-disclosure", "自我暴露", ("自我表露", "自我披露")),
    Label(
        "Affirmation and Reassurance",
        "肯定与安慰",
        ("Approval and Reassurance", "Approval", "Affirmation", "Reassurance", "肯定", "肯定与鼓励", "认可与安慰"),
    ),
    Label(
        "Providing Suggestions",
        "提供建议",
        ("Suggestions", "Direct Guidance", "Advisement", "Suggestion", "建议", "直接指导"),
    ),
    Label("Information", "提供信息", ("Providing Information", "信息")),
    Label("Others", "其他", ("Other",)),
)
# C: a generator never answers "Others"; people may have labelled a turn so.
ANSWERABLE_STRATEGIES = tuple(label for label in STRATEGIES.labels if label.en != "Others")

# Marston's four, as C uses them.
DISC = LabelSet(
    Label("Dominance", "支配", ("D",)),
    Label("Influence", "影响", ("I",)),
    Label("Steadiness", "稳健", ("S",)),
    Label("Compliance", "谨慎", ("C", "Conscientiousness", "服从")),
)


class NormalisedStrategies(NamedTuple):
    """Names inside the cross-walk as our labels, and names outside it as they were."""

    known: list[str]
    unknown: list[str]


def normalise_strategies(names: list[str]) -> NormalisedStrategies:
    """`names` as our English labels, each once and in order; names outside the cross-walk apart."""
    known: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for name in names:
        label = STRATEGIES.find(name)
        if label is None:
            unknown[name] = None
        else:
            known[label.en] = None
    return NormalisedStrategies(list(known), list(unknown))
