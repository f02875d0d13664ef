"""A model that is none: replies of the right form, drawn by a hash of the question, to whatever a stage or judge asks.

What it says means nothing. Questions differ, so tables hold different values; the same question has the same reply.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from pipelines.annotate.coe import CHAIN
from pipelines.flow.clients import ClientPool
from pipelines.judge.mindchat import TASK
from pipelines.judge.unified import OUTCOME, PROCESS, UNIFIED
from pipelines.judge.verdicts import CHOICES, write_choice, write_step
from pipelines.llm.interface import Estimate, LLMClient
from pipelines.llm.payload import canonical, key_of
from pipelines.llm.progress import Progress, Told
from pipelines.llm.questions import Provenance, Question, Reply, read
from schemas.labels import ANSWERABLE_STRATEGIES, EMOTIONS, RISKS, SENTIMENTS, STAGES, TRAITS
from schemas.reasoning import Cer, Ecot
from schemas.taxonomy import TAXONOMY

Inputs = Mapping[str, Any]
T = TypeVar("T")

WHY = {"zh": ("说的话接得上。", "写到了心里难过。", "讲的是自己的事。"), "en": ("It hangs together.", "They say so.")}
FEELING = {"zh": ("难过", "委屈", "着急"), "en": ("sad", "hurt", "worried")}
THOUGHT = {
    "zh": ("心里不好受，想有人听", "这件事一直放不下", "一个人扛了很久，很累", "想弄明白自己怎么了"),
    "en": ("they want to be heard", "they keep coming back to it", "it has been heavy", "they look for a way"),
}
SAID = {
    "zh": ("我在听，你慢慢说。", "能说出来很不容易。", "这样的感受很自然。", "那时候你怎么想？", "谢谢你愿意告诉我。"),
    "en": ("I am here with you.", "That sounds hard.", "It is fine to feel so.", "What went on in you?", "Take it slow."),
}
MANNER = {
    "zh": ("说话直接，很少绕弯子。", "愿意先听别人怎么说。", "讲话慢，想得仔细。", "爱说笑，语气轻快。"),
    "en": ("Speaks plainly and fast.", "Listens before speaking.", "Weighs words with care.", "Jokes a lot, lightly."),
}
AROUND = {
    "zh": (("嗯，", "我想说的就是这些。"), ("其实呢，", "大概是这个意思。"), ("怎么说呢，", "就是这么回事。")),
    "en": (("Well, ", " That is how it stands."), ("You see, ", " So it is with that."), ("Right, ", " So it goes.")),
}
_HAN = re.compile("[\u4e00-\u9fff]")


class Draw:
    """Draws by a hash of a question, and of what is drawn."""

    def __init__(self, inputs: Inputs) -> None:
        self._seed = hashlib.sha256(_json(**inputs).encode()).hexdigest()

    def __call__(self, about: str, options: Sequence[T]) -> T:
        return options[int(hashlib.sha256(f"{self._seed}{about}".encode()).hexdigest(), 16) % len(options)]

    def several(self, sentences: Sequence[str], count: int) -> list[str]:
        """So many of the sentences, each once, in an order that is drawn."""
        return sorted(sentences, key=lambda one: self(one, range(1 << 30)))[:count]


def answer(inputs: Inputs, task: str) -> str:
    """What is replied to a question of a task."""
    draw, lang = Draw(inputs), inputs.get("lang", "zh")
    if task in _TEXTS:
        return _TEXTS[task](inputs, draw, lang)
    return _json(**_OBJECTS[task](inputs, draw, lang))


def _topic(_: Inputs, draw: Draw, lang: str) -> dict[str, Any]:
    topic, subtopic = draw("topic", [(topic, one) for topic, several in TAXONOMY.items() for one in (None, *several)])
    judged = {"relevant": draw("relevant", [True] * 7 + [False]), "risk": draw("risk", [[]] * 15 + [[RISKS[0]]])}
    return {"topic": topic, "subtopic": subtopic, **judged, "why": draw("why", WHY[lang])}


def _chain(inputs: Inputs, draw: Draw, lang: str) -> str:
    thoughts = {part: f"您{draw(part, THOUGHT[lang])}。" for part in ("situation", "motivation", "strategy")}
    quoted = re.sub("[<>]", "", inputs["question"])[:8]
    letter = f"您写到「{quoted}」。{''.join(draw.several(SAID[lang], 4))}请您照顾好自己。"
    return Ecot(**thoughts, answer=letter).render()


def _candidate(_: Inputs, draw: Draw, lang: str) -> str:
    reasons = {f"{step}_reasoning": draw(step, THOUGHT[lang]) for step in ("history", "emotion", "strategy")}
    of = {"stage": STAGES.en, "sentiment": SENTIMENTS.en, "emotion": FEELING[lang], "intensity": range(1, 6)}
    labels = {name: draw(f"label {name}", options) for name, options in of.items()}
    strategy = draw("chosen", ANSWERABLE_STRATEGIES).en
    return Cer(lang=lang, **labels, strategy=strategy, **reasons, response=" ".join(draw.several(SAID[lang], 3))).render()


def _profile(inputs: Inputs, draw: Draw, lang: str) -> dict[str, Any]:
    said = [turn["text"] for turn in inputs["turns"] if turn["role"] == inputs["role"]]
    shown = {"evidence": [max(said, key=len)[:40]], "description": " ".join(draw.several(MANNER[lang], 3))}
    return {trait: draw(trait, range(101)) / 100 for trait in TRAITS} | shown


def _rewritten(inputs: Inputs, draw: Draw, lang: str) -> dict[str, Any]:
    lines = []
    for n, who, text in [(line["n"], line["who"], line["text"].strip()) for line in inputs["lines"]]:
        opening, closing = draw(str(n), AROUND[lang])
        lines.append({"n": n, "who": who, "text": f"{opening}{text}{closing}"})
    return {"lines": lines}


def _second_look(inputs: Inputs, draw: Draw, lang: str) -> dict[str, Any]:
    labelled = [line["n"] for line in inputs["lines"] if line["strategies"]]
    lost = [draw("which", labelled)] if labelled and draw("lost", range(8)) == 0 else []
    same = draw("same", [True] * 15 + [False])
    return {"same_meaning": same, "strategies_lost": lost, "why": draw("why", WHY[lang])}


def _verdict(inputs: Inputs, draw: Draw, _: str) -> str:
    lang: Literal["zh", "en"] = "zh" if _HAN.search(_json(**inputs)) else "en"
    right, choice = draw("right", (True, False)), draw("choice", CHOICES)
    return write_step(inputs["step"], right, lang) if "step" in inputs else write_choice(choice, lang)


def _json(**said: Any) -> str:
    return json.dumps(said, ensure_ascii=False)


_RESPECTS = ("fluency_comfort", "empathic_understanding", "support_encouragement")
_OBJECTS: dict[str, Callable[[Inputs, Draw, str], dict[str, Any]]] = {
    "coherence": lambda _, draw, lang: {
        "verdict": draw("verdict", ["keep"] * 15 + ["incoherent"]),
        "why": draw("why", WHY[lang]),
    },
    "topics": _topic,
    "emotions": lambda _, draw, lang: {"emotion": draw("emotion", EMOTIONS.zh), "why": draw("why", WHY[lang])},
    **{"disc": _profile, "rewrite": _rewritten, "rewrite_judge": _second_look},
    TASK: lambda _, draw, lang: {"why": draw("why", WHY[lang])} | {one: draw(one, range(1, 6)) for one in _RESPECTS},
}
_TEXTS: dict[str, Callable[[Inputs, Draw, str], str]] = {
    "coe": lambda _, draw, lang: CHAIN.write({f"L{n}": f"{draw(str(n), THOUGHT[lang])}。" for n in range(1, 5)}),
    **{"ecot": _chain, "cer": _candidate, **dict.fromkeys((UNIFIED, PROCESS, OUTCOME), _verdict)},
}
ANSWERS: Mapping[str, Callable[[Inputs], str]] = {
    task: lambda inputs, task=task: answer(inputs, task)  # type: ignore[misc]
    for task in (*_OBJECTS, *_TEXTS)
}


class FakeClient:
    """Answers every question by ANSWERS, as `openai`. Nothing is sent; a reply that is none raises InvalidReply."""

    provider: Literal["openai"] = "openai"

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress

    def models(self, wanted: Sequence[str]) -> tuple[str, ...]:
        return tuple(wanted)

    def ask(self, stage: str, questions: Sequence[Question[Any]]) -> list[Reply[Any]]:
        told = Told(self._progress, stage, len(questions))
        replies = []
        for question in questions:
            replies.append(_reply(question))
            told.reply(replies[-1], cached=True)  # no call is made
        return replies

    def estimate(self, stage: str, questions: Sequence[Question[Any]]) -> Estimate:  # noqa: ARG002 - as every client
        return Estimate()


def _reply(question: Question[Any]) -> Reply[Any]:
    before = {"before": list(question.before)} if question.before else {}
    asked = {**question.inputs, **before, "of": [question.model, question.sample]}  # another model says something else
    key = key_of(canonical({"prompt": question.prompt.text, "asked": asked}))
    made = Provenance("openai", question.model, question.model, question.prompt.name, key)
    return Reply(question, read(question, ANSWERS[question.task](asked)), made)


class FakePool(ClientPool):
    """A pool in which `FakeClient` answers whatever is asked, and that needs no budget."""

    def provider(self, standing: str | None) -> str:  # noqa: ARG002 - as every pool
        return "openai"

    def costs(self, provider: str) -> bool:  # noqa: ARG002 - as every pool
        return False

    def of(self, provider: str) -> LLMClient:  # noqa: ARG002 - as every pool
        return FakeClient(self)
