"""Rows that annotations are made from, and replies that their questions accept, written short."""

import re
from functools import partial
from typing import Any

import polars as pl
import unique_rows
from table_rows import dialogue_of, frame, row_of
from unique_rows import RISK, posts, rounds

from pipelines.llm.questions import Provenance, Question
from schemas.annotations import Topics
from schemas.dialogues import UniqueDialogues
from schemas.reasoning import Cer, Ecot

STORY = "最近我和室友吵架了，晚上睡不着觉，是不是我太敏感了？"
LONG = "抱抱你。和室友闹翻以后还要每天见面，确实很累。你可以先找一个彼此都平静的时候，说说自己的感受，再听听她怎么想。"
__all__ = ["RISK", "posts", "rounds"]

dialogue, dialogues = partial(dialogue_of, UniqueDialogues), partial(frame, UniqueDialogues)

SPLITS = {"g1": "train", "g2": "validation", "g3": "test"}


def answer(answer_id: str, text: str = LONG, role: str = "unknown", **more: Any) -> dict[str, Any]:
    return unique_rows.answer(answer_id, text, role) | more


def post(source_id: int | str, text: str = STORY, *answers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return unique_rows.post(source_id, text, *answers, **more)


def topics(*rows: dict[str, Any]) -> pl.DataFrame:
    made = {"topic": "人际", "relevant": True, "why": "理由", **PROVENANCE.columns()}
    return frame(Topics, *(row_of(Topics, **made | row) for row in rows))


def sampled_round(source_id: int | str, number: int, *history: str, **more: Any) -> dict[str, Any]:
    """One sampled round; turns of the history are written "seeker: …" or "supporter: …"."""
    said = list(history) or [f"seeker: 我和室友吵架了，睡不着。这是第{source_id}回了"]
    return unique_rows.sampled_round(source_id, number, said, "这是原来的回应", **more)


def splits(**split_of: str) -> pl.DataFrame:
    return unique_rows.splits(**(split_of or SPLITS))


# --- replies

PROVENANCE = Provenance("openai", "scripted", None, "p@1", "key")

ECOT = Ecot(
    situation="您和室友吵架了，夜里「睡不着」。",
    motivation="您想被理解，也想在宿舍里安心。",
    strategy="先确认您的感受，再一起看看能做的一小步。",
    answer="您辛苦了。和每天见面的人闹翻，夜里睡不着是很自然的。您愿意说说，最让您难受的是哪一句话吗？",
)
CHAIN = (
    "<empathy_think><L1>他难受，「睡不着」。</L1><L2>他怕是自己的错。</L2><L3>他想被理解。</L3><L4>先接住感受。</L4>"
    "</empathy_think>"
)


def cer(lang: str = "zh", response: str | None = None) -> Cer:
    zh = lang == "zh"
    reason = "他反复说起这件事" if zh else "they come back to it again and again"
    known = {"lang": lang, "stage": "exploration", "sentiment": "negative", "intensity": 3, "strategy": "Question"}
    reasons = dict.fromkeys(("history_reasoning", "emotion_reasoning", "strategy_reasoning"), reason)
    response = response or ("那天发生了什么？" if zh else "What happened that day?")
    return Cer(**known, **reasons, emotion="委屈" if zh else "hurt", response=response)


def good(question: Question[Any]) -> str:
    said = question.inputs.get("question", "")
    quoted = "睡不着" if "睡不着" in said else "".join(re.findall(r"[^\W_]{2,8}", said)[:1])
    lang = question.inputs.get("lang", "zh")
    return {
        "coherence": f'{{"verdict": "keep", "why": "{"接得上" if lang == "zh" else "it hangs together"}"}}',
        "topics": '{"topic": "人际", "subtopic": "舍友同学", "relevant": true, "risk": [], "why": "说的是室友"}',
        "emotions": '{"emotion": "委屈", "intensity": 3, "why": "说了吵架"}',
        "coe": CHAIN.replace("睡不着", quoted),
        "ecot": ECOT.render().replace("睡不着", quoted, 1),
        "cer": cer(lang).render(),
    }[question.task]
