"""`coe`: the chain L1–L4 from a question to a human answer (E §3.1), in Chinese.

L1 to L3 are read out of the question alone: what only the answer knows would be hindsight. L4 says what the answer
does, by its own words of doing so (asks, affirms, explains, suggests …), and quotes nothing of it.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from pipelines.annotate.coe import CHAIN
from pipelines.annotate.rules.story import Story, story
from pipelines.annotate.rules.wording import listed, phrases, pick
from pipelines.text.finder import Finder, markers

# An answer of this many characters takes its time.
_LONG, _SHORT = 500, 60
_MOST_ACTS = 4
# L2 where neither cause nor belief is read: what the rules saw, and not what the writer means.
_PLAIN = "求助者怎样解释这件事，这里没有读出来，不替他补上。"


def reply(inputs: Mapping[str, Any]) -> str:
    """`<empathy_think>…</empathy_think>` for {question, answer}."""
    told = story(inputs["question"], titled=True)
    steps = {"L1": feelings_and_context(told), "L2": causes_and_beliefs(told), "L3": intent(told)}
    return CHAIN.write({**steps, "L4": strategy(told, inputs["answer"])})


def feelings_and_context(told: Story) -> str:
    """L1."""
    lines = [_felt(told), _context(told)]
    if told.others:
        word, holder = told.others
        lines.append(f"文中的「{word}」说的是「{holder}」，不算作求助者自己的感受。")
    if told.denied:
        lines.append(f"「{told.denied}」在文中是被否定的，不计在内。")
    if told.diagnosis:
        lines.append("文中还说到诊断或治疗，那是背景，不当作感受。")
    if told.bereaved:
        lines.append("文中说到了离世，这是一次失去。")
    lines += [f"{phrases('zh')['danger'][kind]['chain']}。" for kind in told.dangers[:1]]
    return "".join(lines)


def _felt(told: Story) -> str:
    """The feelings that are named, in the clause that shows the first; or the clause alone."""
    quoted = f"求助者写到「{told.anchor}」" if told.anchor else "求助者写下的话很重，这里不重复"
    if not told.words:
        return f"{quoted}，没有用词说出自己的情绪，只能从所讲的事去体会。"
    degree = phrases("zh")["degree"]["chain"][told.intensity - 1]
    first, *more = told.words
    also = f"同时还写到{listed([f'「{word}」' for word in more])}。" if more else ""
    if not told.shown:
        return f"{quoted}；文中说出的情绪是「{first}」，{degree}。{also}"
    how = (
        f"求助者写到「{told.anchor}」，话里最明显的情绪是「{first}」，{degree}。",
        f"「{told.anchor}」，求助者自己用了「{first}」这个词，{degree}。",
        f"从「{told.anchor}」可以看到求助者的情绪：「{first}」，{degree}。",
    )
    return pick(how, told.reading.text) + also


def _context(told: Story) -> str:
    about = phrases("zh")["topic"][told.about]["about"]
    if told.persons:
        return f"困扰落在{about}上，牵涉到{listed(told.persons)}。"
    return f"困扰落在{about}上。"


def causes_and_beliefs(told: Story) -> str:
    """L2."""
    lines = []
    if told.cause and told.cause_kind:
        lines.append(f"{phrases('zh')['cause'][told.cause_kind]['chain'].format(who='求助者', cause=told.cause)}。")
    elif told.event:
        before = (
            f"在这份感受之前，求助者讲到的是「{told.event}」；两者有没有关联，文中没有明说。",
            f"说出感受以前，求助者先讲了「{told.event}」，是不是缘由，要由他自己来说。",
            f"紧挨着这份感受的是「{told.event}」这一句；它是不是缘由，这里不替求助者断定。",
        )
        lines.append(pick(before, told.reading.text))
    if told.belief and told.belief_kind:
        lines.append(f"「{told.belief}」这句话{phrases('zh')['belief'][told.belief_kind]['remark']}。")
    elif not lines and told.titled_event:
        titled = (
            f"求助者把「{told.titled_event}」写进了标题；它和感受怎样相连，文中没有明说。",
            f"标题里的「{told.titled_event}」，是求助者放在最前面的事；怎样看它，求助者说得不多。",
        )
        lines.append(pick(titled, told.reading.text, "belief"))
    elif not lines:
        lines.append(_PLAIN)
    return "".join(lines)


def intent(told: Story) -> str:
    """L3."""
    said, need = phrases("zh")["intent"][told.intent], phrases("zh")["emotion"][told.tone]["need"]
    wants = said["choice"] if told.choosing else said.get("asked", said["l3"]) if told.question else said["l3"]
    if told.question is None:
        return f"求助者没有提出问题，把经历写出来本身就是{wants}。底下的需要，也许是{need}。"
    more = {one.intent for one in told.reading.questions} - {told.intent}
    also = [phrases("zh")["intent"][one]["l3"] for one in ("advice", "understanding", "validation") if one in more]
    lines = [
        pick(
            (
                f"求助者问的是「{told.question}」，以此看，主要{wants}",
                f"「{told.question}」这一问表明，求助者主要{wants}",
                f"落到「{told.question}」上，求助者首先{wants}",
            ),
            told.reading.text,
            "intent",
        )
    ]
    lines.append(f"，其次也{also[0]}。" if also else "。")
    lines.append(f"底下的需要，也许是{need}。")
    return "".join(lines)


def strategy(told: Story, answer: str) -> str:
    """L4: what the answer does, in the order in which it begins to, after what the first three layers ask for."""
    lines = [f"{phrases('zh')['danger'][kind]['chain']}，回应不能绕开。" for kind in told.dangers[:1]]
    if told.bereaved and not told.dangers:
        lines.append("先陪着失去亲近之人的人，不急着出主意。")
    else:
        opening = f"先接住「{told.words[0]}」" if told.words else "先回到求助者所讲的事上"
        lines.append(f"从前三步看，要{opening}；{_plan(told)}。")
    done = acts(answer)
    if not done:
        return "".join([*lines, "回应就这件事谈看法。"])
    named = [phrases("zh")["act"][act] for act, _ in done]
    said = f"回应里看得出的是{named[0]}" if len(named) == 1 else f"回应里有{listed(named)}"
    most, *fewer = sorted(done, key=lambda one: -one[1])
    if fewer and most[1] > 2 * fewer[0][1]:
        said += f"，以{phrases('zh')['act'][most[0]]}为主"
    pace = "，展开来细细地说" if len(answer) >= _LONG else "，话不多" if len(answer) < _SHORT else ""
    return "".join([*lines, f"{said}{pace}。"])


def _plan(told: Story) -> str:
    """What the first three layers ask for, behind the feeling."""
    said: dict[str, str] = phrases("zh")["intent"][told.intent]
    if told.choosing:
        return said["plan_choice"]
    return said.get("plan_asked", said["plan"]) if told.question else said["plan"]


@lru_cache(maxsize=4096)
def acts(answer: str) -> tuple[tuple[str, int], ...]:
    """What an answer does and how often, in the order in which it first does so; the four it does most."""
    counts: dict[str, int] = {}
    places: dict[str, int] = {}
    for hit in _acting().hits(answer):
        counts[hit.name] = counts.get(hit.name, 0) + 1
        places.setdefault(hit.name, hit.start)
    most = sorted(counts, key=lambda act: (-counts[act], places[act]))[:_MOST_ACTS]
    return tuple((act, counts[act]) for act in sorted(most, key=lambda act: places[act]))


@cache
def _acting() -> Finder:
    return Finder([*markers("zh")["acts"].items(), ("asks", r"\?|？")], "zh")
