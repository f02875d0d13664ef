"""A model that is none: replies of the right form to whatever is asked, drawn by a hash of the question."""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pipelines.annotate.coe import CHAIN
from pipelines.flow.clients import ClientPool
from pipelines.judge.judging import MINDCHAT, OUTCOME, PROCESS, UNIFIED
from pipelines.judge.turns import CHOICES, write_choice, write_step
from pipelines.llm.interface import Estimate, LLMClient
from pipelines.llm.payload import canonical, key_of
from pipelines.llm.progress import Progress, Tally
from pipelines.llm.questions import Provenance, Question, Reply, read
from schemas.labels import EMOTIONS, RISKS, SENTIMENTS, STAGES, STRATEGIES, TRAITS
from schemas.reasoning import Cer, Ecot
from schemas.taxonomy import TAXONOMY

Inputs = Mapping[str, Any]
WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_RESPECTS = ("fluency_comfort", "empathic_understanding", "support_encouragement")


class Draw:
    """Draws by a hash of a question, and of what is drawn."""

    def __init__(self, inputs: Inputs) -> None:
        self._seed = hashlib.sha256(json.dumps(inputs, ensure_ascii=False).encode()).hexdigest()
        self.lang: Literal["zh", "en"] = inputs.get("lang", "zh")

    def of(self, about: str, options: Sequence[Any]) -> Any:
        return options[int(hashlib.sha256(f"{self._seed}{about}".encode()).hexdigest(), 16) % len(options)]

    def word(self, about: str, kind: str) -> Any:
        return self.of(about, WORDS[self.lang][kind])

    def several(self, kind: str, count: int) -> str:
        return " ".join(sorted(WORDS[self.lang][kind], key=lambda one: self.of(one, range(1 << 30)))[:count])


def _topic(_: Inputs, draw: Draw) -> Inputs:
    topic, subtopic = draw.of("topic", [(topic, one) for topic in TAXONOMY for one in (None, *TAXONOMY[topic])])
    judged = {"relevant": draw.of("relevant", [True] * 7 + [False]), "risk": draw.of("risk", [[]] * 15 + [[RISKS[0]]])}
    return {"topic": topic, "subtopic": subtopic, **judged}


def _letter(inputs: Inputs, draw: Draw) -> str:
    thoughts = {step: draw.word(step, "thought") for step in ("situation", "motivation", "strategy")}
    thoughts["situation"] += _quote(inputs)
    return Ecot(**thoughts, answer=f"您写到{_quote(inputs)}。{draw.several('said', 4)}请您照顾好自己。").render()


def _chain(inputs: Inputs, draw: Draw) -> str:
    thoughts = {step: draw.word(step, "thought") for step in ("L1", "L2", "L3", "L4")}
    return CHAIN.write(thoughts | {"L1": thoughts["L1"] + _quote(inputs)})


def _quote(inputs: Inputs) -> str:
    return "「" + re.findall(r"[^\W_]{2,8}", inputs["question"])[0] + "」"


def _candidate(_: Inputs, draw: Draw) -> str:
    reasons = {f"{step}_reasoning": draw.word(step, "thought") for step in ("history", "emotion", "strategy")}
    labels = {"stage": STAGES.en, "sentiment": SENTIMENTS.en, "intensity": range(1, 6)}
    labels["strategy"] = [*STRATEGIES.en]
    found = {name: draw.of(f"label {name}", options) for name, options in labels.items()}
    said = {"emotion": draw.word("feeling", "feeling"), "response": draw.several("said", 3)}
    return Cer(lang=draw.lang, **found, **reasons, **said).render()


def _profile(inputs: Inputs, draw: Draw) -> Inputs:
    said = [turn["text"] for turn in inputs["turns"] if turn["role"] == inputs["role"]]
    shown = {"evidence": [max(said, key=len)[:40]], "description": draw.several("manner", 3)}
    return {trait: draw.of(trait, range(101)) / 100 for trait in TRAITS} | shown


def _rewritten(inputs: Inputs, draw: Draw) -> Inputs:
    around = {line["n"]: draw.word(str(line["n"]), "around") for line in inputs["lines"]}
    told = [(line["n"], line["who"], line["text"].strip().join(around[line["n"]])) for line in inputs["lines"]]
    return {"lines": [dict(zip(("n", "who", "text"), one, strict=True)) for one in told]}


def _second_look(inputs: Inputs, draw: Draw) -> Inputs:
    labelled = [line["n"] for line in inputs["lines"] if line["strategies"]]
    lost = [draw.of("which", labelled)] if labelled and draw.of("lost", range(8)) == 0 else []
    return {"same_meaning": draw.of("same", [True] * 15 + [False]), "strategies_lost": lost}


def _verdict(inputs: Inputs, draw: Draw) -> str:
    right, choice = draw.of("right", (True, False)), draw.of("choice", CHOICES)
    return write_step(inputs["step"], right, draw.lang) if "step" in inputs else write_choice(choice, draw.lang)


_REPLIES: dict[str, Callable[[Inputs, Draw], Inputs | str]] = {
    "coherence": lambda _, draw: {"verdict": draw.of("verdict", ["keep"] * 15 + ["incoherent"])},
    "emotions": lambda _, draw: {"emotion": draw.of("emotion", EMOTIONS.zh), "intensity": draw.of("how", range(1, 6))},
    MINDCHAT: lambda _, draw: {respect: draw.of(respect, range(1, 6)) for respect in _RESPECTS},
    **{"topics": _topic, "ecot": _letter, "coe": _chain, "cer": _candidate, "disc": _profile},
    **{"rewrite": _rewritten, "rewrite_judge": _second_look, **dict.fromkeys((UNIFIED, PROCESS, OUTCOME), _verdict)},
}


def answer(task: str, inputs: Inputs) -> str:
    """What is replied to a question of a task: a text, or an object, with grounds where they are asked for."""
    said = _REPLIES[task](inputs, draw := Draw(inputs))
    grounds = {} if task in ("disc", "rewrite") else {"why": draw.word("why", "why")}
    return said if isinstance(said, str) else json.dumps({**said, **grounds}, ensure_ascii=False)


ANSWERS: Mapping[str, Callable[[Inputs], str]] = {task: partial(answer, task) for task in _REPLIES}


class FakeClient:
    """Answers every question by ANSWERS, as `openai`. Nothing is sent; a reply that is none raises InvalidReply."""

    provider: Literal["openai"] = "openai"

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress

    def models(self, wanted: Sequence[str]) -> tuple[str, ...]:
        return tuple(wanted)

    def ask(self, stage: str, questions: Sequence[Question[Any]]) -> list[Reply[Any]]:
        tally, replies = Tally(self._progress, stage, len(questions)), [_reply(question) for question in questions]
        for reply in replies:
            tally.reply(reply, cached=True)  # no call is made
        return replies

    def estimate(self, stage: str, questions: Sequence[Question[Any]]) -> Estimate:
        return Estimate()


def _reply(question: Question[Any]) -> Reply[Any]:
    asked = {**question.data, **({"before": list(question.before)} if question.before else {})}
    asked["of"] = [question.model, question.sample]  # another model says something else
    key = key_of(canonical({"prompt": question.prompt.text, "asked": asked}))
    made = Provenance("openai", question.model, question.model, question.prompt.name, key)
    return Reply(question, read(question, ANSWERS[question.task](asked)), made)


class FakePool(ClientPool):
    """A pool in which `FakeClient` answers whatever is asked, and that needs no budget."""

    def provider(self, before: str | None) -> str:
        return "openai"

    def costs(self, provider: str) -> bool:
        return False

    def of(self, provider: str) -> LLMClient:
        return FakeClient(self)
