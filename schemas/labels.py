"""Closed label sets: roles, splits, emotional-support strategies, stages, sentiments, emotions."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

ROLES = ("seeker", "supporter")
# Of DISC: dominance, influence, steadiness, compliance (C).
TRAITS = ("D", "I", "S", "C")
ORIGINS = ("human", "model", "unknown")
AUTHOR_ROLES = ("professional", "member", "unknown")
LANGUAGES = ("zh", "en")
MODALITIES = ("text", "text+audio", "text+video", "text+image")
SPLITS = ("train", "validation", "test")
PRECISIONS = ("second", "minute", "hour", "day", "month", "year")
SCRIPTS = ("simplified", "traditional", "mixed", "neutral")
RISKS = ("self_harm", "harm_to_others", "abuse")
# C: of two responses the first is the reference, the second a candidate, which matches or beats it by MATCHING.
Preference = Literal["first", "second", "both", "neither"]
PREFERENCES: tuple[Preference, ...] = get_args(Preference)
MATCHING: tuple[Preference, ...] = ("second", "both")
NEGATIVES = ("mismatched_emotion", "generic", "other_answer")
# In the order of `pipelines.text.pii.placeholders`.
PII_KINDS = (
    *("phone", "qq", "wechat", "email", "id_card", "bank_card", "licence_plate", "url", "account"),
    *("name", "school", "employer", "hospital", "address"),
)
EDITS = ("signature", "credential")
DOUBTS = ("advertisement", "contact_harvesting", "recruitment", "not_psychological", "not_user_content")
# What `gongqing calibrate` measures: of each stage the kinds, as its rows name them and as a card calls them.
CALIBRATED: dict[str, dict[str, str]] = {
    "personal_data": {
        **{"name": "names", "others": "schools, employers, hospitals, addresses", "contact": "contact data"},
        "any": "all kinds",
    },
    "risk": {**{kind: kind.replace("_", " ") for kind in RISKS}, "any": "any sign"},
    "minors": {"under_14": "writers under 14", "under_18": "writers under 18"},
    "relevance": {
        **{doubt: doubt.replace("_", " ") for doubt in DOUBTS},
        **{"any": "posts to drop", "emotional": "emotional posts that stay"},
    },
}
# From so great a share of people whom it beats on, a model may stand in for one (the alternative-annotator test).
OMEGA = 0.5
# The figures for which `[release] floors` may demand a least value.
FLOORS = (
    *(
        f"{stage}.{kind}.{figure}"
        for stage, kinds in CALIBRATED.items()
        for kind in kinds
        for figure in ("precision", "recall", "kappa")
    ),
    "relevance.emotional.auc",
)
# What a model may be held against people on, and a release may demand of it.
JUDGED = ("coe.verdict", "cer.step1", "cer.step2", "cer.step3", "cer.preference", "compare.better")
CONSENTS = ("given", "public_licence", "agreement", "not_asked", "synthetic", "invented")
VARIANTS = ("none", "D", "R", "P")


@dataclass(frozen=True, slots=True)
class Label:
    """One label of a closed set, in both languages, with the other names that sources use for it, and what it means, in
    a clause, where prompts say so.
    """

    en: str
    zh: str
    aliases: tuple[str, ...] = ()
    means_en: str = ""
    means_zh: str = ""


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

    def explained(self, lang: str) -> str:
        """The names in a language, each with what it means, as prompts show them."""
        if lang == "zh":
            return "；".join(f"{label.zh}（{label.means_zh}）" for label in self.labels)
        return "; ".join(f"{label.en} ({label.means_en})" for label in self.labels)


def _folded(name: str) -> str:
    return " ".join(name.replace("_", " ").replace("-", " ").split()).casefold()


# C, step 1: the three stages of ESConv's procedure. C and ESConv name them; the clauses are ours.
STAGES = LabelSet(
    Label(
        "exploration",
        "探索",
        ("explore",),
        means_en="the trouble is still being told and understood",
        means_zh="还在讲清楚、弄明白发生了什么",
    ),
    Label(
        "comforting",
        "安慰",
        ("comfort", "抚慰"),
        means_en="the trouble is known, and the feelings need company",
        means_zh="事情已经清楚，心里的感受需要有人陪",
    ),
    Label(
        "action",
        "行动",
        means_en="the seeker is ready to look for what can be done",
        means_zh="求助者愿意想想接下来怎么办",
    ),
)

# C, step 2.
SENTIMENTS = LabelSet(
    Label("positive", "积极", ("正面", "正向")),
    Label("negative", "消极", ("负面", "负向")),
    Label("neutral", "中性", ("中立",)),
)

# Ours: no paper lists its emotions. Wide enough for the labels of ESConv, and for what an answer conveys (care,
# encouragement), which E's negatives of mismatched emotion need. A post that names none is calm, or asks: confused.
EMOTIONS = LabelSet(
    Label("anxiety", "焦虑", ("anxious", "nervousness", "nervous", "worry", "担心", "担忧", "紧张", "不安")),
    Label("fear", "恐惧", ("afraid", "scared", "害怕", "恐慌")),
    Label("sadness", "悲伤", ("sad", "grief", "longing", "难过", "伤心", "思念")),
    Label("pain", "痛苦", ("distress", "难受", "煎熬", "崩溃")),
    Label("depression", "抑郁", ("depressed", "low spirits", "emptiness", "低落", "沮丧", "郁闷", "空虚", "麻木")),
    Label("despair", "绝望", ("hopelessness", "hopeless", "无望")),
    Label("loneliness", "孤独", ("lonely", "孤单", "寂寞")),
    Label("anger", "愤怒", ("angry", "生气", "气愤")),
    Label("annoyance", "烦躁", ("irritation", "annoyed", "烦恼", "心烦")),
    Label("disgust", "厌恶", ("aversion", "讨厌", "反感", "恶心")),
    Label("hurt", "委屈", ("grievance", "feeling wronged", "心寒")),
    Label("guilt", "内疚", ("regret", "remorse", "愧疚", "自责", "后悔")),
    Label("shame", "羞耻", ("embarrassment", "ashamed", "羞愧", "尴尬")),
    Label("inferiority", "自卑", ("low self-esteem", "insecurity", "自我否定")),
    Label("envy", "嫉妒", ("jealousy", "jealous", "羡慕")),
    Label("disappointment", "失望", ("disappointed", "失落")),
    Label("helplessness", "无助", ("helpless", "powerlessness", "无力", "无奈")),
    Label("exhaustion", "疲惫", ("tiredness", "fatigue", "疲倦", "心累")),
    Label("stress", "压力", ("pressure", "overwhelm", "压抑")),
    Label("confusion", "困惑", ("puzzlement", "lost", "迷茫", "纠结", "矛盾")),
    Label("surprise", "惊讶", ("shock", "astonishment", "震惊", "意外")),
    Label("calm", "平静", ("neutral", "no emotion", "中性", "淡定")),
    Label("joy", "喜悦", ("happiness", "happy", "开心", "快乐", "高兴", "幸福")),
    Label("gratitude", "感激", ("thankfulness", "grateful", "感动", "感谢")),
    Label("hope", "希望", ("hopeful", "期待")),
    Label("fondness", "喜爱", ("love", "affection", "喜欢", "心动")),
    Label("relief", "释然", ("relieved", "轻松")),
    Label("care", "关怀", ("caring", "compassion", "心疼", "关心")),
    Label("encouragement", "鼓励", ("encouraging", "支持与鼓励", "打气")),
)
# The sentiment of each emotion, by their English names. Confusion and surprise go either way.
_POSITIVE_EMOTIONS = ("joy", "gratitude", "hope", "fondness", "relief", "care", "encouragement")
_NEUTRAL_EMOTIONS = ("confusion", "surprise", "calm")
SENTIMENT_OF: dict[str, str] = {
    **dict.fromkeys(EMOTIONS.en, "negative"),
    **dict.fromkeys(_NEUTRAL_EMOTIONS, "neutral"),
    **dict.fromkeys(_POSITIVE_EMOTIONS, "positive"),
}

# C, step 3: eight types after Hill's helping skills, of which C names two: aliases here. They are ESConv's eight,
# with a clause each of ours. `Others` is what opens and closes a talk. Self-disclosure is of the moment, so a model,
# which has no past, can do it truly. The cross-walk is lossy: PsyQA's "Interpretation", for one, has no place in it.
# Sources keep their own names beside ours, in `source_strategies`.
CROSSWALK_VERSION = 2  # 2: C's names
STRATEGIES = LabelSet(
    Label(
        "Question",
        "提问",
        ("Questions", "询问", "开放式提问", "Open question", "Open questions", "Progressive questioning", "递进式提问"),
        means_en="asking, so that the seeker can tell more",
        means_zh="问一句，请对方多说一些",
    ),
    Label(
        "Restatement or Paraphrasing",
        "复述或释义",
        ("Restatement", "Paraphrasing", "复述", "释义", "重述"),
        means_en="giving back in other words what was told",
        means_zh="换个说法，把听到的事讲回去",
    ),
    Label(
        "Reflection of feelings",
        "情感反映",
        ("Reflection of Feeling", "情感反应", "反映情感", "Emotional mapping", "情绪映射"),
        means_en="putting into words what the seeker feels",
        means_zh="说出对方此刻的感受",
    ),
    Label(
        "Self-disclosure",
        "自我暴露",
        ("自我表露", "自我披露"),
        means_en="telling how it is for you to hear this, with no past made up",
        means_zh="说说自己听到这些时的感受，不编造经历",
    ),
    Label(
        "Affirmation and Reassurance",
        "肯定与安慰",
        ("Approval and Reassurance", "Approval", "Affirmation", "Reassurance", "肯定", "肯定与鼓励", "认可与安慰"),
        means_en="acknowledging what the seeker does and is, and giving courage",
        means_zh="看见对方做到的，给对方底气",
    ),
    Label(
        "Providing Suggestions",
        "提供建议",
        ("Suggestions", "Direct Guidance", "Advisement", "Suggestion", "建议", "直接指导"),
        means_en="offering something to try, and leaving the choice",
        means_zh="提一个可以试试的做法，由对方决定",
    ),
    Label(
        "Information",
        "提供信息",
        ("Providing Information", "信息"),
        means_en="giving facts or places of help",
        means_zh="告诉对方有用的知识或求助的地方",
    ),
    Label(
        "Others",
        "其他",
        ("Other",),
        means_en="greeting, thanks or farewell, where none of the above fits",
        means_zh="问候、致谢、道别，以上都不合适时才选",
    ),
)


class NormalisedStrategies(NamedTuple):
    """Names inside the cross-walk as our labels, and names outside it as they were."""

    known: list[str]
    unknown: list[str]


def normalise_strategies(names: list[str]) -> NormalisedStrategies:
    """`names` as our English labels, each once and in order; names outside the cross-walk apart."""
    labels = {name: STRATEGIES.find(name) for name in names}
    known = dict.fromkeys(label.en for label in labels.values() if label)
    return NormalisedStrategies(list(known), [name for name, label in labels.items() if label is None])
