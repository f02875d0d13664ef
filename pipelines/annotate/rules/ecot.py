"""`ecot`: situation, motivation, strategy and a letter in answer to a post (M §3.1), written to 您."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.annotate.rules.story import Story, story
from pipelines.annotate.rules.wording import inside, listed, phrases, pick
from schemas.reasoning import Ecot

_YOU = "您"


def reply(inputs: Mapping[str, Any]) -> str:
    """M's grammar whole for {question}."""
    told = story(inputs["question"], titled=True)
    return Ecot(
        situation=situation(told), motivation=motivation(told), strategy=strategy(told), answer=letter(told)
    ).render()


def situation(told: Story) -> str:
    """The seeker's emotional and social context."""
    said = phrases("zh")
    about = said["topic"][told.topic]["about"]
    if told.words:
        first, *more = told.words
        degree = said["degree"]["letter"][told.intensity - 1]
        lines = [
            pick(
                (
                    f"您写到「{told.anchor}」，心里的「{first}」{degree}",
                    f"「{told.anchor}」，您把「{first}」{degree}",
                    f"您把「{first}」{degree}，写在「{told.anchor}」这一句里",
                ),
                told.reading.text,
                "situation",
            )
        ]
        lines.append(f"，一起涌上来的还有{listed([f'「{word}」' for word in more])}。" if more else "。")
    else:
        lines = [f"您写到「{told.anchor}」，没有直接说心情，可这件事您是放在心上的。"]
    lines.append(f"这份困扰落在{about}上")
    lines.append(f"，牵着{listed(told.persons)}。" if told.persons else "。")
    if told.cause and told.cause_kind:
        lines.append(f"{_cause(told)}。")
    lines += [f"{said['danger'][kind]['seen']}。" for kind in told.dangers[:1]]
    return "".join(lines)


def _cause(told: Story) -> str:
    """The cause in words to the writer."""
    chain: str = phrases("zh")["cause"][told.cause_kind]["chain"]
    return chain.format(cause=told.cause).replace("求助者说是", "您说是")


def motivation(told: Story) -> str:
    """The need beneath it."""
    said = phrases("zh")
    need = said["emotion"][told.tone]["need"]
    under = f"在「{told.words[0]}」底下" if told.words else "在这些话底下"
    lines = [
        pick(
            (
                f"{under}，您需要的也许是{need}。",
                f"{under}，有一份更深的需要：{need}。",
                f"{under}，您想要的也许很简单，就是{need}。",
            ),
            told.reading.text,
            "motivation",
        )
    ]
    if told.question:
        lines.append(f"您问「{told.question}」，{said['intent'][told.intent]['motive'].format(you=_YOU)}。")
    else:
        lines.append("您没有提问，愿意把它写下来，是想有人听一听。")
    if told.belief and told.belief_kind:
        remark = said["belief"][told.belief_kind]["remark"]
        lines.append(f"「{told.belief}」这句话，{remark}，这也让那份需要更急。")
    return "".join(lines)


def strategy(told: Story) -> str:
    """How to support, and why so."""
    steps = ["先确认您的安全，把求助的去处说清楚"] if told.dangers else []
    first = "接着" if steps else "先"
    steps.append(f"{first}让「{told.words[0]}」被听见" if told.words else f"{first}把您讲的事听完整")
    if told.belief:
        steps.append(f"再轻轻地换一个角度看「{told.belief}」这句话")
    last = "最后" if len(steps) > 1 else "然后"
    steps.append(
        {
            "advice": f"{last}鼓励您试一小步，只挑您自己就能做的事",
            "understanding": f"{last}说一说这样的感受通常从哪里来",
            "validation": f"{last}只是陪着，不催您好起来",
        }[told.intent]
    )
    why = pick(phrases("zh")["intent"][told.intent]["why"], told.reading.text, "why")
    return f"{'，'.join(steps)}。这样做，是因为{why}。"


def letter(told: Story) -> str:
    """The reply: the feeling is met first, then a view, then what was asked for."""
    said = phrases("zh")
    emotion, topic = said["emotion"][told.tone], said["topic"][told.topic]
    text = told.reading.text
    sentences = said["letter"]
    soothe = pick(emotion["soothe"], text, "soothe")
    lines = [_put(sentences["open"], told, quote=inside(told.anchor), soothe=soothe)]
    lines += [said["danger"][kind]["letter"] for kind in told.dangers[:1]]
    if told.cause and told.cause_kind:
        cause = said["cause"][told.cause_kind]["told"].format(cause=inside(told.cause))
        lines.append(_put(sentences["cause"], told, cause=cause))
    if told.belief and told.belief_kind:
        reframe = pick(said["belief"][told.belief_kind]["reframe"], text, "reframe")
        lines.append(_put(sentences["belief"], told, quote=inside(told.belief), reframe=reframe))
    step, explain = pick((*emotion["step"], *topic["step"]), text, "step"), pick(emotion["explain"], text, "explain")
    intent = told.intent if told.question else "validation"
    lines.append(_put(sentences[intent], told, question=inside(told.question or ""), step=step, explain=explain))
    lines += [pick(emotion["ask"], text, "ask"), pick(sentences["closing"], text, "closing")]
    return "".join(lines).replace("{you}", _YOU)


def _put(sentences: Sequence[str], told: Story, **parts: str) -> str:
    """One of `sentences`, filled."""
    return pick(sentences, told.reading.text, *parts).format(**parts)
