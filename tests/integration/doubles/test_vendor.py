"""The vendor on loopback: it bills what it answers, and nothing else; its faults follow from a seed."""

import http.client
import json
import urllib.error
import urllib.request

from tests.doubles.vendor import Vendor


def post(vendor, n):
    payload = {"model": "m1", "messages": [{"role": "user", "content": f"第{n}个"}], "max_tokens": 500}
    request = urllib.request.Request(f"{vendor.base_url}/chat/completions", json.dumps(payload).encode())
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            (choice,) = (told := json.load(answer))["choices"]
            return choice["finish_reason"], told["usage"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, None
    except (OSError, http.client.HTTPException):
        return "broken", None


def test_what_it_answers_is_billed_however_bad_and_what_it_does_not_is_not():
    ends = {"429": 429, "500": 500, "refused": 400, "timeout": "broken", "cut": "broken"}
    ends |= {"length": "length", "malformed": "stop", "filter": "content_filter"}
    with Vendor() as vendor:
        for fault, end in ends.items():
            vendor.anew(faults={fault: 1.0}, hang=0.1)
            found, usage = post(vendor, 0)
            stats = vendor.stats()
            assert (found, stats["faults"]) == (end, {fault: 1})
            owed = usage["prompt_tokens"] * 2_500 + usage["completion_tokens"] * 10_000 if usage else 0
            assert (stats["nano"], stats["billed"]) == (owed, int(usage is not None))

        def drawn(seed):
            vendor.anew(faults={"500": 0.5}, seed=seed)
            return [post(vendor, n)[0] for n in range(40)]

        one = drawn(1)
        assert one == drawn(1) != drawn(2)
        assert 8 <= one.count(500) <= 32
