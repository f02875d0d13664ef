"""Money in whole nano-units, and a worst case that no bill passes."""

import json
import pickle
from datetime import date
from decimal import Decimal
from unicodedata import normalize

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipelines.errors import BudgetSpent, RequestError, UnknownPrice
from pipelines.llm.cost import bound, cost, fewest, owed, worst_case
from pipelines.llm.money import NANO, ReportedUsage, Usage, amount, nano
from pipelines.llm.profiles import Price, Profile, profiles


def priced(price_in, price_out, cached, batch) -> Profile:
    fields = {"input": price_in, "output": price_out, "cached_input": cached, "batch": batch, "currency": "USD"}
    return Profile(alias="m", model="m", price=Price(**fields, date=date(2026, 11, 21), source="invented"))


GPT = profiles()["gpt-4o"]
TEXTS = st.text(max_size=300).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))
ROLES = st.sampled_from(["system", "user", "assistant"])
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.lists(st.fixed_dictionaries({"role": ROLES, "content": TEXTS}), min_size=1, max_size=6)
PAYLOADS = st.fixed_dictionaries(
    {"messages": MESSAGES, "max_tokens": st.integers(1, 10_000)},
    optional={"n": st.integers(1, 4), "response_format": st.dictionaries(TEXTS, JSONS, max_size=3)},
)
PRICES = st.integers(0, 10**6).map(lambda thousandths: Decimal(thousandths) / 1000)


def billed_at_most(payload) -> Usage:
    """A host that makes a token of every byte, in whatever normal form is longest, and says all that it may."""

    def tokens(text: str) -> int:
        return max(len(form.encode()) for form in (text, normalize("NFC", text), normalize("NFKC", text)))

    prompt = sum(tokens(message["content"]) + tokens(message["role"]) + 8 for message in payload["messages"]) + 3
    if "response_format" in payload:
        prompt += tokens(json.dumps(payload["response_format"], ensure_ascii=False)) + 20
    return Usage(prompt, 0, payload["max_tokens"] * payload.get("n", 1))


@given(PAYLOADS, PRICES, PRICES, st.sampled_from([None, Decimal("0.5"), Decimal(1)]), st.floats(0, 1), st.floats(0, 1))
def test_no_bill_passes_the_worst_case(payload, price_in, price_out, batch, cached, said):
    assume(batch is None or all((price * 1000 * batch) % 1 == 0 for price in (price_in, price_out)))
    profile = priced(price_in, price_out, price_in / 2 if price_in % 2 == 0 else None, batch)
    most = billed_at_most(payload)
    told = Usage(most.prompt, int(most.prompt * cached), int(most.completion * said))
    for in_batch in {False, batch is not None}:
        assert 0 <= cost(profile, told, batch=in_batch) <= worst_case(profile, payload, batch=in_batch)


ODD = st.text(
    st.sampled_from("一龥\uff0c。\uff41…①\ufdfa가\u1100\u1161\u11a8가é\u0301\u0323\u093c\u09c7\u09be\u3099が≠a9 "),
    max_size=12,
)


@given(ODD, ODD)
def test_chinese_is_bounded_as_the_longest_of_its_normal_forms_whatever_stands_beside_it(text, more):
    for one in (text, text + "我睡不着" + more):
        longest = max(len(form.encode()) for form in (one, normalize("NFC", one), normalize("NFKC", one)))
        empty, full = ({"messages": [{"content": content}], "max_tokens": 1} for content in ("", one))
        assert bound(full).prompt - bound(empty).prompt == longest


def test_the_dollars_of_a_million_tokens():
    million = 1_000_000
    usages = ((million, 0, 0), (million, million, 0), (0, 0, million), (1, 0, 0))
    assert [amount(cost(GPT, Usage(*usage))) for usage in usages] == [
        Decimal("2.5"),
        Decimal("1.25"),
        10,
        Decimal("0.0000025"),
    ]
    assert amount(cost(GPT, Usage(million, 0, million), batch=True)) == Decimal("6.25")
    assert cost(GPT, Usage(1000, 1000, 0), batch=True) == cost(GPT, Usage(1000, 0, 0), batch=True)


def test_every_part_that_is_read_counts_and_what_grows_when_it_is_normalised_as_grown():
    grows = "\ufdfa"  # three bytes, thirty-three in NFKC
    assert bound({"messages": [{"role": "user", "content": grows * 10}], "max_tokens": 1}).prompt >= 330
    plain = {"messages": [{"role": "user", "content": "你好"}], "max_tokens": 5}
    parts = {"messages": [{"role": "user", "content": [{"type": "text", "text": "你好"}]}], "max_tokens": 5}
    schema = plain | {"response_format": {"type": "json_schema", "json_schema": {"schema": {"title": "长" * 50}}}}
    assert bound(parts).prompt >= bound(plain).prompt
    assert bound(schema).prompt - bound(plain).prompt > 150
    assert bound(plain | {"max_completion_tokens": 9}).completion == 9
    assert bound(plain | {"n": 3}).completion == 15


def test_what_has_no_bound_is_refused():
    image = [{"type": "image_url", "image_url": {"url": "u"}}]
    for content, more in (("x", {}), (image, {"max_tokens": 1})):
        with pytest.raises(UnknownPrice) as caught:
            worst_case(GPT, {"messages": [{"role": "user", "content": content}], **more})
        assert (caught.value.exit_code, bool(caught.value.hint)) == (2, True)


def test_a_picture_takes_as_many_tokens_as_its_profile_says_at_most():
    profile = GPT.model_copy(update={"image_tokens": 1500})
    parts = [{"type": "text", "text": "她怎么了？"}, {"type": "image_url", "image_url": {"url": "sha256:0"}}]
    with_it, without = (
        {"messages": [{"role": "user", "content": content}], "max_tokens": 9} for content in (parts, parts[:1])
    )
    more = bound(with_it, 1500).prompt - bound(without, 1500).prompt
    assert 1500 <= more < 1600
    assert worst_case(profile, with_it) - worst_case(profile, without) == cost(profile, Usage(more, 0, 0))
    believed = owed(profile, ReportedUsage(900, 0, 5), with_it, RESERVE, reply=SAID)
    assert believed == (Usage(900, 0, 5), cost(profile, Usage(900, 0, 5)))


@given(st.integers(0, 10**18))
def test_amounts_are_exact_both_ways(units):
    assert nano(amount(units)) == units
    assert amount(units) * NANO == units


def test_what_is_no_amount_or_more_than_the_ledger_holds_is_refused():
    wrong = dict.fromkeys(("-0.01", "0.0000000001", "NaN", "Infinity"), "no amount of money")
    wrong |= dict.fromkeys(("1e10", "9000000000.000000001", "1e999999"), "more than the ledger can count")
    for written, why in wrong.items():
        with pytest.raises(RequestError, match=why):
            nano(Decimal(written))
    assert nano(Decimal("9e9")) < 2**63


def test_a_spent_budget_says_all_and_survives_a_process():
    amounts = {"spent": Decimal("1.5"), "held": Decimal("0.25"), "wanted": Decimal("0.5"), "cap": Decimal(2)}
    error = BudgetSpent(**amounts, currency="USD").with_waiting(7)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert again.waiting == 7
    for part in ("1.5 USD spent", "0.25", "of 2 USD", "0.5", "7 questions wait", "--budget"):
        assert part in str(error)
    assert error.exit_code == 1


# What is believed of a usage


ASKED = {
    "messages": [{"role": "system", "content": "回答" * 40}, {"role": "user", "content": "问" + "题目" * 39 + "。"}],
    "max_tokens": 50,
}
SAID = "我听见了" * 10
MOST = bound(ASKED)
RESERVE = 10**9


def test_fewer_tokens_than_a_text_can_have_are_not_believed():
    for told, usage in (
        (ReportedUsage(20, 5, 5), Usage(20, 5, 5)),
        (ReportedUsage(19, 5, 5), Usage(MOST.prompt, 0, 5)),
        (ReportedUsage(20, 10**6, 4), Usage(20, 10**6, 50)),
        (ReportedUsage(0, 0, 0, free=True), Usage(0, 0, 0)),
    ):
        assert owed(GPT, told, ASKED, RESERVE, reply=SAID) == (usage, cost(GPT, usage))
    for told in (ReportedUsage(0, 0, 0), ReportedUsage(None, 0, None)):  # where nothing is believed
        assert owed(GPT, told, ASKED, RESERVE, reply=SAID) == (MOST, RESERVE)
    # Of a payload that is not known any more one missing count owes the reserve.
    assert owed(GPT, ReportedUsage(20, 0, 4), None, RESERVE, reply=SAID)[1] == RESERVE
    assert owed(GPT, ReportedUsage(20, 0, 5), None, RESERVE, reply=SAID)[1] == cost(GPT, Usage(20, 0, 5))


def test_no_tokenizer_makes_fewer_tokens_of_a_text():
    """A word of English is a token at least, two Chinese characters are, and a run of blanks of 128."""
    for text in (
        "我最近压力很大，夜里总是醒着，不知道该怎么办才好。",
        "I have been lying awake for weeks now, and nothing that people say to me seems to help at all.",
        " " * 5000 + "\n" * 500 + "-" * 300,
    ):
        words = sum(1 for word in text.split() if word.isascii()) + sum("一" <= one <= "鿿" for one in text) // 2
        assert fewest(text) <= max(words, len(text) // 128)


@given(PAYLOADS)
def test_what_a_host_bills_at_most_is_always_believed(payload):
    most = billed_at_most(payload)
    assert owed(GPT, ReportedUsage(most.prompt, 0, most.completion), payload, RESERVE, reply="")[0] == most
