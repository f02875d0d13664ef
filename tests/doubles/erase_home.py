"""A small home in which a post, a dialogue and all that was made from them stand beside others."""

import asyncio
import datetime as dt
import json
import sqlite3
from pathlib import Path
from typing import Any

import polars as pl
from release_rows import made

from pipelines.dedup.group_keys import post_keys
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Answer, Attempt, Call
from pipelines.llm.money import Usage
from pipelines.llm.payload import canonical, key_of
from pipelines.store.release_manifest import Finding
from pipelines.store.releases import note_publication
from pipelines.store.store import Store
from pipelines.trainsets.prompt_sets import cer_prompts
from schemas.table import Dropped
from schemas.tables import TABLES

MADE_BY = {"provider": "openai", "model_asked": "m", "model_served": "m", "prompt_version": "p@1"}


def frame(table: str, *rows: dict[str, Any]) -> pl.DataFrame:
    """Rows of a table; what is not said is empty: null, 0, or an empty list."""
    schema = TABLES[table].polars_schema()
    told = [{name: _filled(kind, row.get(name)) for name, kind in schema.items()} for row in rows]
    return pl.DataFrame(told, schema=schema, orient="row")


def _filled(kind: Any, value: Any) -> Any:
    if isinstance(kind, pl.List):
        return [_filled(kind.inner, one) for one in value or []]
    if isinstance(kind, pl.Struct):
        return {field.name: _filled(field.dtype, (value or {}).get(field.name)) for field in kind.fields}
    if value is None and (kind == pl.Boolean or kind.is_numeric()):
        return kind.to_python()()
    return value


def answer(answer_id: str, text: str, **more: Any) -> dict[str, Any]:
    return {"answer_id": answer_id, "author": None, "author_role": "member", "text": text, **more}


def post(name: str, text: str, *answers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "post_id": f"s:{name}", "source": "s", "source_id": name, "title": "", "description": text, "lang": "zh",
        "origin": "human", "licence": "invented", "consent": "invented", "answers": list(answers), **more,
    }  # fmt: skip


def clean_post(name: str, text: str, *answers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return post(name, text, *answers, **more) | {"text": text, "script": "simplified"}


def unique_post(name: str, text: str, *answers: dict[str, Any], **more: Any) -> dict[str, Any]:
    clusters = {"cluster_id": f"s:{name}", "cluster_size": 1, "group_id": "g0"}
    return clean_post(name, text, *answers, **more) | clusters


def drop(table: str, unit: str, row_id: str, reason: str, detail: str | None = None) -> pl.DataFrame:
    row = {"stage": table, "unit": unit, "row_id": row_id, "reason": reason, "detail": detail}
    return pl.DataFrame([row], schema=Dropped.polars_schema())


def question(said: str, stage: str = "ecot_chains") -> Call:
    """A call of the ledger."""
    content = json.dumps({"text": said}, ensure_ascii=False)
    payload = canonical({"model": "m", "messages": [{"role": "user", "content": content}]})
    return Call(key_of(payload), stage, "m", "m", payload, 0, "USD")


async def _ask(ledger: Ledger, said: str, reply: str) -> str:
    call = question(said)
    attempt = await ledger.begin(call, reserve=1, budget=None)
    assert isinstance(attempt, Attempt)
    body = json.dumps({"choices": [{"message": {"content": json.dumps({"why": reply})}}]}).encode()  # escaped twice
    await ledger.answered(attempt, Answer(body, "m", "stop", Usage(1, 0, 1), 1))
    return call.key


HERS = "昨天夜里我又一次站在阳台上数对面楼的灯一直数到天亮"  # what s:a says
TO_HER = "你愿意把数灯的那些夜晚写下来已经是在照顾自己了请慢慢来不必着急"  # what s:a is answered
HIS = "期末考试越来越近我坐在图书馆里一个字也看不进去"  # what s:b says
TO_HIM = "先把书合上走到窗边喝一杯温水再回来看第一页就好其他的明天再说"
MADE = "来访者在独处时反复清点灯火以求安定背后是对失控的深深恐惧"  # what a model made of s:a
TALK = ("我和室友三个月没有说过一句话了她把我的杯子摔碎在走廊", "听起来那只杯子对你来说不只是一只杯子而已对吗")
PERSONA = "说话简短克制先讲事情后讲感受遇到追问会沉默片刻"  # of the seeker of s:x
OTHER_TALK = ("老板昨天当着大家的面否定了我做了半年的方案", "被当众否定的那一刻你心里最先冒出来的是什么")
REWRITTEN = ("半年的方案昨天被否了当着所有人就这样", "那一刻你最先想到的是什么可以慢慢告诉我")
QUOTED = f"有人说过{HERS[2:20]}这与他的处境相似"  # in what a model made of s:b
OF_ERASED = (HERS, TO_HER, MADE, *TALK, PERSONA, *REWRITTEN)


def make_home(home: Path) -> Store:
    """A post, a dialogue, and all that was made from them, beside another post and another dialogue."""
    store = Store(home / "data")
    hers = post("a", HERS, answer("s:a/1", TO_HER), author="u_00000000000000aa")
    his = post("b", HIS, answer("s:b/1", TO_HIM, author="u_00000000000000aa"))
    store.write("imported_posts", frame("imported_posts", hers, his), partition="s", note={"file": "s.json"})
    talks = [_dialogue(name, said) for name, said in (("x", TALK), ("y", OTHER_TALK))]
    store.write("imported_dialogues", frame("imported_dialogues", *talks), partition="s")
    clean = [clean_post("a", HERS, answer("s:a/1", TO_HER)), clean_post("b", HIS, answer("s:b/1", TO_HIM))]
    store.write("clean_posts", frame("clean_posts", *clean), drop("clean_posts", "answer", "s:a/2", "too_short"))
    store.write("clean_posts", frame("clean_posts", clean[0]), drop("clean_posts", "post", "s:b", "too_short"))
    store.write("clean_posts", frame("clean_posts", *clean))
    duplicate = drop("unique_posts", "post", "s:c", "near_duplicate", "0.93 like s:a")
    store.write("unique_posts", frame("unique_posts", *map(_unique, clean)), duplicate)
    keys = [post_keys(frame("clean_posts", one))["keys"][0].to_list() for one in clean]
    groups = {f"g{n}": its for n, its in enumerate(keys)} | {"g6": []}  # g6: of the rewriting below
    given = {"split": "train", "given_at": "v"}
    splits = frame("splits", *(given | {"group_id": group, "members": its} for group, its in groups.items()))
    store.write("splits", splits)
    exchanges = (HERS, MADE), (HIS, QUOTED), (OTHER_TALK[0], REWRITTEN[0]), (HIS + "？", TO_HIM)
    with Ledger(home / "ledger.sqlite") as ledger:
        keys = [asyncio.run(_ask(ledger, said, reply)) for said, reply in exchanges]
    store.write("ecot_chains", frame("ecot_chains", _chain("a", MADE, keys[0]), _chain("b", QUOTED, keys[1])))
    hers = {"role": "seeker", "description": PERSONA, "lang": "zh", "group_id": "g5"}
    profile = MADE_BY | hers | {"dialogue_id": "s:x", "request_key": "k"}
    store.write("disc_profiles", frame("disc_profiles", profile))
    store.write("personas", frame("personas", hers | {"persona_id": "s:x/seeker", "cluster_name": "D"}))
    fit = {"role": "seeker", "k": 1, "pool": ["s:x/seeker", "s:y/seeker"], "names": ["D"], "fitted_by": "{}"}
    store.write("persona_fits", frame("persona_fits", fit))
    of_y = MADE_BY | {"request_key": keys[2], "variant": "P", "dialogue_id": "s:y", "persona_id": "s:x/seeker"}
    of_y |= {"lang": "zh", "group_id": "g6"}
    lines = [{"who": one["role"], "text": one["text"]} for one in _turns(REWRITTEN)]
    draft = of_y | {"unit": "dialogue", "row_id": "s:y", "source": "h", "lines": lines}
    store.write("rewrite_drafts", frame("rewrite_drafts", draft))
    judged = {"judged": "h", "same_meaning": True, "why": "意思一样", "request_key": "j"}
    store.write("rewrite_judgements", frame("rewrite_judgements", draft | judged))
    rewritten = of_y | {"dialogue_id": "s:y~P", "source_dialogue_id": "s:y", "turns": _turns(REWRITTEN)}
    store.write("rewritten_dialogues", frame("rewritten_dialogues", rewritten))
    again = {name: rewritten[name] for name in ("dialogue_id", "source_dialogue_id", "variant", "lang", "group_id")}
    again |= {"round": 1, "n_rounds": 1, "source": "s", "reference": REWRITTEN[1], "reference_origin": "model"}
    rewrites = frame("sampled_rewrites", again | {"history": _turns(REWRITTEN)[:1]})
    store.write("sampled_rewrites", rewrites)
    store.write("grpo_cer", cer_prompts(frame("sampled_turns"), splits, rewrites=rewrites)[0])
    asked_by_him = {
        "made_from": "s:b", "group_id": "g:b", "query": HIS, "positive": TO_HIM, "positive_id": "s:b/1",
        "positive_role": "member", "split": "train", "variant": "none", "providers": ["openai"],
    }  # fmt: skip
    triplets = [
        asked_by_him | {"row_id": "s:b/other", "negative": TO_HER, "negative_ids": ["s:a/1"], "kind": "other_answer"},
        asked_by_him | {"row_id": "s:b/generic", "negative": "慢慢来", "negative_ids": ["s:b/1"], "kind": "generic"},
    ]
    store.write("rm_triplets", frame("rm_triplets", *triplets))
    evaluated = [
        {"model": "tested", "lang": "zh", "output": "慢慢来。", "row_id": f"s:{name}", "references": references}
        | {"dialogue": [{"role": "seeker", "text": text}]}
        for name, text, references in (("a", HERS, [TO_HER]), ("b", HIS, [TO_HIM]))
    ]
    store.write("model_answers", frame("model_answers", *evaluated), partition="tested")
    _judged_by_people(home, store)
    finding = Finding(check="c", severity="warn", count=1, what="w", hint="r", examples=["s:a"])
    pins = {"rm_triplets": store.version("rm_triplets").version}
    made(home, "v1", {"rm_triplets": store.read("rm_triplets").collect()}, pins=pins, findings=[finding])
    note_publication(home, "team/set", "v1", "c0ffee")
    _state_of_dagster(home / ".dagster")
    (home / "report-zh.html").write_text(f"<p>s:a {HERS}</p>", encoding="utf-8")
    (home / "index").mkdir()
    (home / "index" / "members-0").write_text("s:a", encoding="utf-8")
    return store


def _judged_by_people(home: Path, store: Store) -> None:
    """Tasks about both posts and both dialogues, what was said of them, and the files that went out."""
    person = {"annotator": "u_00000000000000ff", "labelled": "h"}
    made_at = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
    more = {"role": "annotator", "shown": "h", "item": "h", "batch": "coe-1", "made": made_at}
    tasks = [("s:a", "coe"), ("s:b", "coe"), ("s:x#1/1", "cer"), ("s:y#1/1", "cer")]
    kept = [{"task_id": f"t{at}", "item_id": one, "kind": kind} for at, (one, kind) in enumerate(tasks)]
    store.write("review_tasks", frame("review_tasks", *(one | person | more for one in kept)))
    votes = [{"task_id": f"t{at}", "dialogue_id": f"s:{name}"} for at, name in ((2, "x"), (3, "y"))]
    vote = person | {"role": "annotator", "round": 1, "candidate": 1, "preference": "both"}
    store.write("cer_votes", frame("cer_votes", *(one | vote for one in votes)))
    review = person | {"role": "annotator", "verdict": "mend", "L1": "改过的"}
    reviews = [{"task_id": f"t{at}", "post_id": f"s:{one}", "answer_id": f"s:{one}/1"} for at, one in enumerate("ab")]
    store.write("coe_reviews", frame("coe_reviews", *(one | review for one in reviews)))
    ranking = person | {"role": "annotator", "kind": "rank", "models": ["m1", "m2"], "places": [1, 2]}
    ranked = [ranking | {"task_id": f"r{one}", "item_id": f"s:{one}"} for one in "ab"]
    store.write("rankings", frame("rankings", *ranked))
    figure = {"kind": "coe", "question": "verdict", "annotator": "all", "measure": "raw", "n_items": 2}
    store.write("agreements", frame("agreements", figure))
    tested = {"kind": "rank", "question": "empathy", "model": "m", "people": "skilled", "answers": "answers.csv"}
    tested |= {"answers_sha256": "0" * 64, "measured_at": made_at}
    store.write("judge_tests", frame("judge_tests", tested))
    folder = home / "review" / "coe-1"
    folder.mkdir(parents=True)
    texts = (("s:a", HERS), ("s:b", HIS))
    lines = [json.dumps({"item_id": one, "content": {"question": text}}, ensure_ascii=False) for one, text in texts]
    (folder / "tasks-u_00000000000000ff.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "sheet.html").write_text(f"<p>{HERS}</p><p>{HIS}</p>", encoding="utf-8")
    (folder / "other.html").write_text(f"<p>{HIS}</p>", encoding="utf-8")


def _dialogue(name: str, said: tuple[str, str]) -> dict[str, Any]:
    return {
        "dialogue_id": f"s:{name}", "source": "s", "source_id": name, "lang": "zh", "turns": _turns(said),
        "n_rounds": 1, "modality": "text", "licence": "invented", "consent": "invented",
    }  # fmt: skip


def _turns(said: tuple[str, str]) -> list[dict[str, Any]]:
    roles = zip(("seeker", "supporter"), said, strict=True)
    return [{"role": role, "text": text, "origin": "human"} for role, text in roles]


def _unique(row: dict[str, Any]) -> dict[str, Any]:
    answers = [one | {"cluster_id": "s:a/1", "n_questions": 2} for one in row["answers"]]  # his is nearly hers
    return unique_post(row["source_id"], row["text"]) | {"answers": answers}


def _chain(name: str, text: str, key: str) -> dict[str, Any]:
    said = {"situation": text, "motivation": "想被听见", "strategy": "先接住", "answer": "我在听"}
    return {**MADE_BY, **said, "post_id": f"s:{name}", "group_id": "g0", "request_key": key}


def _state_of_dagster(folder: Path) -> None:
    (folder / "compute").mkdir(parents=True)
    (folder / "compute" / "run.out").write_text(f"reading\n{HERS}\ndone with s:a\n", encoding="utf-8")
    database = sqlite3.connect(folder / "index.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE event_logs (id INTEGER PRIMARY KEY, event TEXT)")
    sample = {"sample": [{"post_id": "s:a", "text": HERS}, {"post_id": "s:b", "text": HIS}]}
    for _ in range(3):
        database.execute("INSERT INTO event_logs (event) VALUES (?)", (json.dumps({"metadata": json.dumps(sample)}),))
    database.execute("DELETE FROM event_logs WHERE id = 2")  # it stays in a free page
    database.close()
