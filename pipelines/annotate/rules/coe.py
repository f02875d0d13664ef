"""`coe`: the chain L1–L4 from a question to a human answer (E §3.1), in Chinese.

L1 to L3 are read out of the question alone: what only the answer knows would be hindsight. L4 says what the answer
does, by its own words of doing so (asks, affirms, explains, suggests …), and quotes nothing of it.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from pipelines.annotate.rules.lexicon import Finder, markers
from pipelines.annotate.rules.story import Story, story
from pipelines.annotate.rules.wording import listed, phrases, pick
from schemas.reasoning import Grammar

_CHAIN = Grammar(("empathy_think", ("L1", "L2", "L3", "L4")))
# An answer of this many characters takes its time.
_LONG, _SHORT = 500, 180
_MOST_ACTS = 4


def reply(inputs: Mapping[str, Any]) -> str:
    """`<empathy_think>…</empathy_think>` for {question, answer}."""
    told = story(inputs["question"], titled=True)
    steps = {"L1": feelings_and_context(told), "L2": causes_and_beliefs(told), "L3": intent(told)}
    return _CHAIN.write({**steps, "L4": strategy(told, inputs["answer"])})


def feelings_and_context(told: Story) -> str:
    """L1."""
    if told.words:
        degree = phrases("zh")["degree"]["chain"][told.intensity - 1]
        first, *more = told.words
        lines = [
            pick(
                (
                    f"求助者写到「{told.anchor}」，话里最明显的情绪是「{first}」，{degree}。",
                    f"「{told.anchor}」，求助者自己用了「{first}」这个词，{degree}。",
                    f"从「{told.anchor}」可以看到求助者的情绪：「{first}」，{degree}。",
                ),
                told.reading.text,
            )
        ]
        if more:
            lines.append(f"同时还写到{listed([f'「{word}」' for word in more])}。")
    else:
        lines = [f"求助者写到「{told.anchor}」，没有用词说出自己的情绪，只能从所讲的事去体会。"]
    lines.append(_context(told))
    if told.others:
        word, holder = told.others
        lines.append(f"文中的「{word}」说的是「{holder}」，不算作求助者自己的感受。")
    if told.denied:
        lines.append(f"「{told.denied}」在文中是被否定的，不计在内。")
    lines += [f"{phrases('zh')['danger'][kind]['chain']}。" for kind in told.dangers[:1]]
    return "".join(lines)


def _context(told: Story) -> str:
    about = phrases("zh")["topic"][told.topic]["about"]
    if told.persons:
        return f"困扰落在{about}上，牵涉到{listed(told.persons)}。"
    return f"困扰落在{about}上。"


def causes_and_beliefs(told: Story) -> str:
    """L2."""
    lines = []
    if told.cause and told.cause_kind:
        lines.append(f"{phrases('zh')['cause'][told.cause_kind]['chain'].format(cause=told.cause)}。")
    else:
        lines.append(
            pick(
                (
                    "文中没有用“因为”“让我”这样的话点明缘由，原因只能先存疑。",
                    "求助者没有直接说缘由，这里不替他补上。",
                    "情绪从何而来，文中没有明说，先不下判断。",
                ),
                told.reading.text,
            )
        )
    if told.belief and told.belief_kind:
        lines.append(f"「{told.belief}」这句话{phrases('zh')['belief'][told.belief_kind]['remark']}。")
    else:
        lines.append(
            pick(
                (
                    "从措辞里看不出明显的偏差，大体是在平实地讲事情。",
                    "文中没有特别绝对或归罪于己的说法。",
                ),
                told.reading.text,
                "belief",
            )
        )
    return "".join(lines)


def intent(told: Story) -> str:
    """L3."""
    wants, need = phrases("zh")["intent"][told.intent]["l3"], phrases("zh")["emotion"][told.tone]["need"]
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
    opening = f"先接住「{told.words[0]}」" if told.words else "先回到求助者所讲的事上"
    lines.append(f"{opening}；{phrases('zh')['intent'][told.intent]['plan']}。")
    done = acts(answer)
    if not done:
        return "".join([*lines, "回应就事论事地谈看法，不另作铺陈。"])
    named = [phrases("zh")["act"][act] for act, _ in done]
    main = phrases("zh")["act"][max(done, key=lambda one: one[1])[0]]
    if len(named) == 1:
        lines.append(f"回应只做一件事：{named[0]}，")
    elif len(named) == 2:
        lines.append(f"回应先{named[0]}，再{named[1]}，以{main}为主，")
    else:
        lines.append(f"回应先{'，再'.join(named[:-1])}，最后{named[-1]}，以{main}为主，")
    pace = "展开来细细地说" if len(answer) >= _LONG else "话不多，点到为止" if len(answer) < _SHORT else "篇幅适中"
    return "".join([*lines, f"{pace}。"])


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
