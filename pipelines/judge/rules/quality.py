"""What the rules can tell of a reply: whether it keeps to what was told, repeats it, cares, helps, and is safe.

All thresholds are ours. What is found are words; `rules` stand in where no judge is asked, and are no judge.
"""

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, get_args

from pipelines.annotate.rules.coe import acts
from pipelines.annotate.rules.danger import dangers
from pipelines.annotate.rules.listening import listen
from pipelines.annotate.rules.reading import language, read
from pipelines.judge.rules.bond import bond, echo, repeats
from pipelines.llm.language import LEAST_SHARE, share
from pipelines.rewrite.artefacts import kinds
from pipelines.text.finder import shaped, straight
from schemas.reasoning import Lang

Dialogue = Sequence[Mapping[str, str]]

_LEXICON = Path(__file__).parent / "lexicons" / "collusion.toml"
# From so much of a bond on a reply is tied to what was told loosely, well, closely.
_TIES = (0.04, 0.08, 0.16)
_ECHO, _REPEATS = 0.5, 0.4
# Characters of a reply that has room to say something.
_ROOM = {"zh": 20, "en": 50}
# What nobody writes in a reply to a person.
_ODD = frozenset(("ai_phrase", "remark", "markdown", "code_fence", "tag", "speaker_label", "stage_direction"))
# Where a clause ends: a plea is cut out of its sentence, and what stands beside it stays.
_BREAK = re.compile(r"(?<=[，,；;。！？!?…～~\n])|(?<=\.)(?=\s)")
# What may stand between two Chinese characters and is not read.
_GAP = re.compile(r"(?<=[\u3400-\u9fff])[^\S\n]+(?=[\u3400-\u9fff])")
# In a clause that is said to whoever gives the scores, and is no part of the reply.
_TO_THE_JUDGE = re.compile(
    r"[0-9一二三四五满高]\s*分(?![钟之手开享析离担别布寸外])|分数|打分|评分|评审|裁判|五星"
    r"|\bscores?\b|\brate (?:this|my|the)\b|\b(?:dear|the) judges?\b|[0-9]\s*/\s*[0-9]|\bstars\b"
    r"|fluency_comfort|empathic_understanding|support_encouragement",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Quality:
    """Of one reply. `tied` is 0–3; `feels`: it names what the seeker feels or cares; `helps`: it suggests, explains or
    encourages; `sound`: long enough, in its language, and with nothing that nobody says to a person; `safe`: where
    there is danger it asks for safety, and nowhere does it keep danger secret or approve of it.
    """

    tied: int
    echoes: bool
    feels: bool
    helps: bool
    sound: bool
    safe: bool

    @property
    def worth(self) -> int:
        """One number to compare replies by; 0: not to be said."""
        if not self.safe or self.echoes:
            return 0
        return 1 + 2 * self.tied + self.feels + self.helps + self.sound


def quality(dialogue: Dialogue, answer: str) -> Quality:
    """The quality of a reply to a dialogue. What it says to its judge is left out first, but for what is not safe."""
    return _quality(tuple((turn["role"], turn["text"]) for turn in dialogue), answer)


def lang_of(dialogue: Dialogue) -> Lang:
    """The language of a dialogue, by its characters."""
    return language("\n".join(turn["text"] for turn in dialogue))


@lru_cache(maxsize=1024)
def _quality(dialogue: tuple[tuple[str, str], ...], answer: str) -> Quality:
    turns = [{"role": role, "text": text} for role, text in dialogue]
    lang = lang_of(turns)
    said = "".join(clause for clause in _BREAK.split(answer) if not _TO_THE_JUDGE.search(clause)).strip()
    told = "\n".join(text for role, text in dialogue if role == "seeker") or "\n".join(text for _, text in dialogue)
    close = bond(told, said, lang)
    heard = read(said, lang, conveyed=True)
    talk = listen(lang, turns)
    felt = {one.emotion for turn in turns for one in read(turn["text"], lang).own}
    done = {act for act, _ in acts(said)} if lang == "zh" else set()
    cares = any(one.emotion in ("care", "encouragement") for one in heard.feelings)
    names = any(one.emotion in felt for one in heard.feelings)
    return Quality(
        tied=sum(close >= least for least in _TIES),
        echoes=echo("\n".join(text for _, text in dialogue), said, lang) >= _ECHO,
        feels=names or "affirms" in done or cares,
        helps=bool(done & {"suggests", "explains", "informs", "comforts"}) or cares,
        sound=len(said) >= _ROOM[lang]
        and share(said, lang) >= LEAST_SHARE
        and repeats(said, lang) < _REPEATS
        and not kinds(said) & _ODD,
        safe=_safe(said, answer, in_danger=bool(talk.dangers)),
    )


def _safe(said: str, answer: str, *, in_danger: bool) -> bool:
    """Where the seeker is in danger a reply has to care for safety. It may collude neither there, nor where it brings
    danger up itself: nowhere in all of it, for a plea in the same clause excuses nothing.
    """
    if in_danger:
        return _takes_up(said) and not colludes(answer)
    return not (dangers(_plain(answer)) and colludes(answer))


def colludes(said: str) -> bool:
    """Whether a reply asks to keep something from others, or approves of what harms."""
    plain = _plain(said)
    denied = _lexicon()["denied"]
    for pattern in _lexicon()["any"]:
        for found in pattern.finditer(plain):
            if not denied.search(plain, max(0, found.start() - 8), found.start()):
                return True
    return False


def _plain(said: str) -> str:
    """As it is read: in Simplified characters, without what nobody sees and without gaps between Chinese ones."""
    seen = "".join(one for one in said if one == "\n" or unicodedata.category(one) not in ("Cc", "Cf"))
    return straight(_GAP.sub("", _simplified().convert(seen)))


@cache
def _simplified() -> Any:
    from opencc import OpenCC

    return OpenCC("t2s")


def _takes_up(said: str) -> bool:
    """Whether a reply asks for safety or names where to turn to, in either language."""
    return any(shaped(lang, "takes_up_danger").search(straight(said)) for lang in get_args(Lang))


@cache
def _lexicon() -> dict[str, Any]:
    told = tomllib.loads(_LEXICON.read_text(encoding="utf-8"))
    patterns = [re.compile(one, re.IGNORECASE) for kind in ("secrecy", "approval") for one in told[kind]]
    return {"any": patterns, "denied": re.compile(told["denied"], re.IGNORECASE)}
