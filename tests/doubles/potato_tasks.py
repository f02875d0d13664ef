"""Tasks for people, of invented texts, and what they answer."""

from typing import Any

from pipelines.review.contract import Kind, Label, Task, hash_of

# Invented. The markup, and what a template would take for its own, are to be seen as they are.
HISTORY = (
    ("seeker", "模拟考没考好以后，我总是睡不着，<b>一想到</b>考试就心慌。{{ 7*7 }}"),
    ("supporter", "听起来这段时间压力很大，是从什么时候开始的呢？"),
    ("seeker", "大概两周前。我觉得自己特别没用。"),
)
STEPS = (
    "核心问题：考试失利后失眠。阶段：探索。",
    "情感：消极。情绪：焦虑。强度：4。",
    "策略：情感反映。先说出他的自责。",
)
REPLIES = ("这两周一定很难熬，换了谁都会心慌。", "别多想，早点睡就好了。")
CONTENTS: dict[Kind, dict[str, Any]] = {
    "cer": {
        "history": [{"role": role, "text": text} for role, text in HISTORY],
        "steps": list(STEPS),
        "replies": list(REPLIES),
    },
    "coe": {
        **{"question": "我考试没考好，不敢回家。", "answer": "先抱抱你，一次考试说明不了什么。"},
        **{"L1": "他又急又怕。", "L2": "他把一次失利看成自己没用。", "L3": "他想被理解。", "L4": "先接住自责。"},
    },
    "rank": {"question": "睡不着怎么办？", "answers": ["辛苦了。", "早点睡。", "睡前别看手机。"]},
    "compare": {"question": "睡不着怎么办？", "answers": ["辛苦了。", "早点睡。"]},
}
GOOD: dict[Kind, dict[str, Any]] = {
    "cer": {"step1": True, "step2": False, "step3": True, "preference": "second", "comment": ""},
    "coe": {"verdict": "mend", "edits": {"L2": "他怕让父母失望。"}, "comment": "第二层太重"},
    "rank": {"places": [2, 1, 3], "comment": ""},
    "compare": {"preference": "both", "comment": "都好"},
}


def task(kind: Kind, number: int = 1, who: str = "p1", order: list[int] | None = None, **content: Any) -> Task:
    """A task of a kind: the item of a number, for one person, its texts shuffled as `order` says."""
    shown = CONTENTS[kind] | content
    key = {"cer": "replies", "rank": "answers", "compare": "answers"}.get(kind)
    if key and order:
        shown = {**shown, key: [shown[key][n] for n in order]}
    item = f"invented:{number}#2/1"
    return Task(
        kind=kind,
        task_id=f"{kind}/{item}@{who}",
        item_id=item,
        annotator=who,
        order=order or [],
        shown=hash_of(kind, shown),
        content=shown,
    )


def label(of: Task, answers: dict[str, Any] | None = None) -> Label:
    """What the person whose task it is says of it."""
    named = {"kind": of.kind, "task_id": of.task_id, "annotator": of.annotator, "shown": of.shown}
    return Label(**named, answers=answers or GOOD[of.kind])
