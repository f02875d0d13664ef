"""What the stub replies: invented, short, and of the form that was asked for. It understands nothing.

Which task a request is of shows in the keys of its inputs, the JSON of the user message. Everything else that comes
with a JSON schema gets a value of that schema.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from schemas.ids import stable_int
from schemas.labels import ANSWERABLE_STRATEGIES, EMOTIONS, SENTIMENTS, STAGES
from schemas.reasoning import Cer, Ecot
from schemas.taxonomy import TAXONOMY

Inputs = Mapping[str, Any]

_CLAUSE = re.compile(r"[^，。！？；：、,.!?;:\s<>「」]{2,20}")


def reply(payload: Mapping[str, Any]) -> str:
    """The reply to a request."""
    inputs = _inputs(payload)
    if isinstance(inputs, dict) and (own := _OWN.get(frozenset(inputs))) is not None:
        return own(inputs)
    form = payload.get("response_format") or {}
    if form.get("type") == "json_schema":
        schema = form["json_schema"]["schema"]
        return _dumped(_value(schema, schema.get("$defs", {}), json.dumps(inputs, sort_keys=True)))
    quoted = _quote(json.dumps(inputs, ensure_ascii=False))
    return _dumped({"reply": quoted}) if form.get("type") == "json_object" else f"（编造的回复）{quoted}"


def _inputs(payload: Mapping[str, Any]) -> Any:
    """The inputs of the first user message: what follows it is a repair."""
    said = next((one["content"] for one in payload.get("messages", ()) if one.get("role") == "user"), "")
    try:
        return json.loads(said)
    except ValueError:
        return said


def _quote(text: str) -> str:
    """A clause of the text, drawn by the text."""
    clauses = _CLAUSE.findall(text)
    return clauses[stable_int(text) % len(clauses)] if clauses else "这些话"


def _drawn(text: str, choices: tuple[Any, ...] | list[Any]) -> Any:
    return choices[stable_int(text) % len(choices)]


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _topics(inputs: Inputs) -> str:
    text = f"{inputs['title']} {inputs['description']}"
    topic = _drawn(text, list(TAXONOMY))
    subtopic = _drawn(text, TAXONOMY[topic])
    return _dumped({"topic": topic, "subtopic": subtopic, "relevant": True, "risk": [], "why": "编造的判断"})


def _emotions(inputs: Inputs) -> str:
    return _dumped({"emotion": _drawn(inputs["text"], EMOTIONS.zh), "why": "编造的判断"})


def _coe(inputs: Inputs) -> str:
    quoted = _quote(inputs["question"])
    emotion = _drawn(inputs["question"], EMOTIONS.zh)
    return (
        f"<empathy_think><L1>从「{quoted}」里听得出{emotion}，处境让人难以放下。</L1>"
        "<L2>一直这样看待自己，心里便越来越紧。</L2><L3>想先被理解，也想知道往下怎么走。</L3>"
        "<L4>先接住感受，再说支持的话，最后一起看看下一步。</L4></empathy_think>"
    )


def _ecot(inputs: Inputs) -> str:
    quoted = _quote(inputs["question"])
    return Ecot(
        situation=f"您说到「{quoted}」，心里承受着不少。",
        motivation="您想被人看见，也想重新拿回对生活的把握。",
        strategy="先确认您的感受，再轻轻地往前走一小步，因为您已经撑了很久。",
        answer=f"谢谢您愿意讲出来。您说的「{quoted}」，听着就让人心疼。这不是您一个人的错，我们可以慢慢来。",
    ).render()


def _cer(inputs: Inputs) -> str:
    zh = inputs["lang"] == "zh"
    text = json.dumps(inputs["history"], ensure_ascii=False)
    said = inputs["history"][-1]["text"] if inputs["history"] else ""
    quoted = _quote(said)
    strategy = _drawn(text, ANSWERABLE_STRATEGIES)
    emotion = _drawn(text, EMOTIONS.labels)
    words = (
        "The trouble is becoming clear.",
        f"It shows in “{quoted}”.",
        "It meets them here.",
        f"You said “{quoted}”.",
    )
    if zh:
        words = (
            "困扰渐渐清楚了。",
            f"从「{quoted}」听得出来。",
            "此刻这样做，离对方最近。",
            f"你说到「{quoted}」，我在听。",
        )
    return Cer(
        lang=inputs["lang"],
        stage=_drawn(text, STAGES.en),
        history_reasoning=words[0],
        sentiment=_drawn(text, SENTIMENTS.en),
        emotion=emotion.zh if zh else emotion.en,
        intensity=1 + stable_int(text) % 5,
        emotion_reasoning=words[1],
        strategy=strategy.en,
        strategy_reasoning=words[2],
        response=words[3],
    ).render()


def _value(schema: Mapping[str, Any], defs: Mapping[str, Any], seed: str) -> Any:
    """A value of a JSON schema as strict mode has it."""
    if "$ref" in schema:
        return _value(defs[schema["$ref"].rsplit("/", 1)[-1]], defs, seed)
    if "anyOf" in schema:
        return _value(schema["anyOf"][0], defs, seed)
    if "const" in schema or "enum" in schema:
        return _drawn(seed, schema.get("enum") or [schema["const"]])
    made: dict[str, Callable[[], Any]] = {
        "object": lambda: {
            name: _value(one, defs, f"{seed}/{name}") for name, one in schema.get("properties", {}).items()
        },
        "array": lambda: [_value(schema["items"], defs, seed)] * max(1, schema.get("minItems", 1)),
        "integer": lambda: schema.get("minimum", 0),
        "number": lambda: schema.get("minimum", 0),
        "boolean": lambda: stable_int(seed) % 2 == 0,
        "null": lambda: None,
        "string": lambda: f"编造的{_quote(seed)}",
    }
    return made[schema["type"]]()


# By the inputs, which tell the tasks apart.
_OWN: Mapping[frozenset[str], Callable[[Inputs], str]] = {
    frozenset({"lang", "turns"}): lambda _: _dumped({"verdict": "keep", "why": "编造的判断：前后相接"}),
    frozenset({"title", "description"}): _topics,
    frozenset({"unit", "text"}): _emotions,
    frozenset({"question", "answer"}): _coe,
    frozenset({"question"}): _ecot,
    frozenset({"lang", "history"}): _cer,
}
