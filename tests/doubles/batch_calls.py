"""What the tests of batches ask, of whom, and how patiently."""

import hashlib
import json
from collections.abc import Iterable
from datetime import date
from typing import Any

from pipelines.llm.ledger.records import Call
from pipelines.llm.profiles import Price, Profile
from pipelines.llm.providers.batch import Patience

# The prices of the stub, in whole nano-units a token.
PRICE = Price(input=2.5, output=10, batch=0.5, currency="USD", date=date(2026, 11, 21), source="invented")
MODEL = Profile(alias="m", base_url="http://127.0.0.1:1/v1", model="stub", max_tokens=200, price=PRICE)
PATIENCE = Patience(first=0.02, longest=0.2, appears=0.3, again=0.02)


def client_of(base_url: str) -> Any:
    from openai import AsyncOpenAI

    return AsyncOpenAI(base_url=base_url, api_key="invented", max_retries=0, timeout=20)


def payload(number: int) -> dict[str, Any]:
    said = f"编造的第{number}个问题\u2028另起一行\n" * 3  # line breaks of both kinds inside of a text
    return {"model": "stub", "messages": [{"role": "user", "content": said}], "max_tokens": 200}


def calls(numbers: Iterable[int]) -> list[Call]:
    made = []
    for number in numbers:
        body = json.dumps(payload(number), sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
        made.append(Call(hashlib.sha256(body).hexdigest(), "coe", MODEL.alias, MODEL.model, body))
    return made
