"""A question in the midst of a conversation: what came before is sent and in the key, and else nothing changes."""

import json

from asking_tools import PROMPT, asking, llm_for, question, vendor_as
from test_payload import PROFILE, key

from pipelines.llm.payload import payload
from pipelines.llm.questions import Exchange

BEFORE = (Exchange({"step": 1, "text": "他睡不好"}, "第一步正确。"), Exchange({"step": 2}, "第二步不正确。"))


def test_what_came_before_stands_between_the_prompt_and_the_question():
    sent = payload(question(1, schema=None, before=BEFORE), PROFILE)["messages"]
    assert [one["role"] for one in sent] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert sent[0]["content"] == PROMPT.text
    assert [json.loads(one["content"]) for one in sent[1:-1:2]] == [one.inputs for one in BEFORE]
    assert [one["content"] for one in sent[2::2]] == [one.reply for one in BEFORE]
    assert sent[-1] == payload(question(1), PROFILE)["messages"][-1]


def test_it_is_in_the_key_and_nothing_before_changes_none():
    keys = {
        key(question(1, before=before))
        for before in ((), BEFORE[:1], BEFORE, BEFORE[::-1], (BEFORE[0]._replace(reply="第一步不正确。"),))
    }
    assert len(keys) == 5
    assert key(question(1, before=())) == key(question(1))


def test_a_host_gets_the_conversation_and_its_answer_is_kept(tmp_path):
    asked = question(1, before=BEFORE)
    with vendor_as() as vendor:
        llm = llm_for(tmp_path, vendor.base_url)
        with asking(tmp_path, llm) as ask:
            [first] = ask.ask("emotions", [asked])
            assert ask.ask("emotions", [asked]) == [first]
        assert vendor.stats()["requests"] == 1
    assert first.value is not None
