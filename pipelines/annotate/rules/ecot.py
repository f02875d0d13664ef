"""`ecot`: situation, motivation, strategy and a letter in answer to a post (M §3.1), written to 您."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.annotate.rules.advice import Need, fitting
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
    about = said["topic"][told.about]["about"]
    lines = [_felt(told)]
    lines.append(f"这份困扰落在{about}上")
    lines.append(f"，牵着{listed(told.persons)}。" if told.persons else "。")
    if told.cause and told.cause_kind:
        lines.append(f"{_cause(told)}。")
    if told.diagnosis:
        lines.append("您还说到诊断或治疗，那是背景，不是心情。")
    if told.bereaved:
        lines.append("您说到了离世，这是一次失去。")
    seen = "seen_other" if told.for_another else "seen"
    lines += [f"{said['danger'][kind].get(seen, said['danger'][kind]['seen'])}。" for kind in told.dangers[:1]]
    return "".join(lines)


def _felt(told: Story) -> str:
    """The feelings that are named, in the clause that shows the first; or the clause alone."""
    quoted = f"您写到「{told.anchor}」" if told.anchor else "您写下的话很重，这里不重复"
    if not told.words:
        return f"{quoted}，没有直接说心情，可这件事您是放在心上的。"
    degree = phrases("zh")["degree"]["letter"][told.intensity - 1]
    first, *more = told.words
    rest = f"，一起涌上来的还有{listed([f'「{word}」' for word in more])}。" if more else "。"
    if not told.shown:
        return f"{quoted}；您说出的心情是「{first}」，{degree}{rest}"
    how = (
        f"您写到「{told.anchor}」，心里的「{first}」{degree}",
        f"「{told.anchor}」，您把「{first}」{degree}",
        f"您把「{first}」{degree}，写在「{told.anchor}」这一句里",
    )
    return pick(how, told.reading.text, "situation") + rest


def _cause(told: Story) -> str:
    """The cause in words to the writer."""
    chain: str = phrases("zh")["cause"][told.cause_kind]["chain"]
    return chain.format(who=_YOU, cause=told.cause)


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
        motive = said["intent"][told.intent]["motive_choice" if told.choosing else "motive"]
        lines.append(f"您问「{told.question}」，{motive.format(you=_YOU)}。")
    else:
        lines.append("您没有提问，愿意把它写下来，是想有人听一听。")
    if told.belief and told.belief_kind:
        remark = said["belief"][told.belief_kind]["remark"]
        lines.append(f"「{told.belief}」这句话，{remark}，这也让那份需要更急。")
    return "".join(lines)


def strategy(told: Story) -> str:
    """How to support, and why so."""
    if told.dangers:
        whom = "那个人" if told.for_another else "您"
        return (
            f"先确认{whom}的安全，把求助的去处说清楚，再让您知道有人在听，别的都往后放。"
            "这样做，是因为安全没有着落的时候，讲道理和出主意都帮不上您。"
        )
    if told.bereaved:
        return "先陪着您，不劝、不催、也不讲道理，您想说多少都可以。这样做，是因为失去没有办法可想，能有的只是陪伴。"
    steps = [f"先让「{told.words[0]}」被听见" if told.words else "先把您讲的事听完整"]
    if told.belief:
        steps.append(f"再轻轻地换一个角度看「{told.belief}」这句话")
    last = "最后" if len(steps) > 1 else "然后"
    advice = "鼓励您试一小步，只挑您自己就能做的事" if suggestions(told) else "再问清楚一些，不急着给主意"
    steps.append(
        {
            "advice": f"{last}{advice}",
            "understanding": f"{last}{'说一说这样的感受通常从哪里来' if told.words else '和您一起想一想这个问题'}",
            "validation": f"{last}接住您的这一问，不替您下结论" if told.question else f"{last}只是陪着，不催您好起来",
        }[told.intent]
    )
    why = pick(phrases("zh")["intent"][told.intent]["why"], told.reading.text, "why")
    return f"{'，'.join(steps)}。这样做，是因为{why}。"


def suggestions(told: Story) -> tuple[str, ...]:
    """What the letter may suggest: nothing where there is danger or grief."""
    if told.dangers or told.bereaved:
        return ()
    named = told.emotion if told.words else None
    intent = told.intent if told.question else "validation"
    return fitting(
        Need("zh", intent, named, told.topic, told.focus, told.reading.text, told.question or "", told.title)
    )


def letter(told: Story) -> str:
    """The reply: the feeling is met first, then a view, then what was asked for. Where there is danger it is about
    safety alone, and where somebody has died, about being there."""
    said = phrases("zh")
    emotion, text, sentences = said["emotion"][told.tone], told.reading.text, said["letter"]
    if told.dangers:
        lines = [_opened(told, "open_grave"), _urgent(told), _put(sentences["stay"], told)]
    elif told.bereaved:
        lines = [
            _opened(told, "open_grave"),
            _put(said["loss"]["letter"], told),
            pick(said["loss"]["ask"], text, "ask"),
        ]
        lines.append(_put(sentences["stay"], told))
    else:
        lines = [_opened(told, "open", soothe=pick(emotion["soothe"], text, "soothe"))]
        if told.cause and told.cause_kind:
            cause = said["cause"][told.cause_kind]["told"].format(cause=inside(told.cause))
            lines.append(_put(sentences["cause"], told, cause=cause))
        if told.belief and told.belief_kind:
            reframe = pick(said["belief"][told.belief_kind]["reframe"], text, "reframe")
            lines.append(_put(sentences["belief"], told, quote=inside(told.belief), reframe=reframe))
        lines.append(_answered(told))
        lines += [pick(emotion["ask"], text, "ask"), pick(sentences["closing"], text, "closing")]
    return "".join(lines).replace("{you}", _YOU)


def _urgent(told: Story) -> str:
    """What the letter says of the danger: to whom it threatens, or to whoever is beside them."""
    said: dict[str, str] = phrases("zh")["danger"][told.dangers[0]]
    return said.get("letter_other", said["letter"]) if told.for_another else said["letter"]


def _opened(told: Story, kind: str, **parts: str) -> str:
    """The first sentence, with the anchor where there is one that may be quoted."""
    sentences = phrases("zh")["letter"]
    if not told.anchor:
        return _put(sentences["open_unquoted"], told)
    return _put(sentences[kind], told, quote=inside(told.anchor), **parts)


def _answered(told: Story) -> str:
    """What was asked for: a step that fits, or an explanation, or that it takes no reason to feel so."""
    said, text = phrases("zh"), told.reading.text
    sentences, emotion = said["letter"], said["emotion"][told.tone]
    if not told.question:
        return _put(sentences["validation"], told)
    options, question = suggestions(told), inside(told.question)
    step = pick(options, text, "step") if options else ""
    if told.intent == "advice":
        return _put(sentences["advice" if step else "no_advice"], told, question=question, step=step)
    if told.intent == "understanding":
        explain = pick(said["cer"]["others_mind"] if told.others_mind else emotion["explain"], text, "explain")
        kind = "understanding" if step else "explained"
        return _put(sentences[kind], told, question=question, explain=explain, step=step)
    return _put(sentences["validation_asked"], told, question=question)


def _put(sentences: Sequence[str], told: Story, **parts: str) -> str:
    """One of `sentences`, filled."""
    return pick(sentences, told.reading.text, *parts).format(**parts)
