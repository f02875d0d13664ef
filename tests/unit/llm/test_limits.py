"""How fast a model is asked: never more at once than allowed, less after a storm, more again after good answers."""

import asyncio
import time
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pipelines.llm import limits
from pipelines.llm.limits import GROWS_AFTER, Limits, Window


def test_one_storm_halves_once_and_the_next_again_and_good_answers_let_it_grow():
    limits, storms = Limits(16, None, None), []
    for _ in range(2):
        before = limits.storm
        for _ in range(16):  # sixteen 429 to requests that were all sent before the first of them came
            limits.flooded(before)
        storms.append(limits.limit)
    assert storms == [8, 4]
    grown = []
    for _ in range(20 * GROWS_AFTER):
        limits.answered()
        grown.append(limits.limit)
    assert (grown[GROWS_AFTER - 2], grown[GROWS_AFTER - 1], grown[-1]) == (4, 5, 16)


def test_a_few_429_among_good_answers_are_no_storm():
    """One in ten, at random: a host with several queues. It stays fast; one in two is a storm."""

    def after(share):
        random, limits, seen = Random(7), Limits(48, None, None), []
        for _ in range(3000):
            limits.flooded(limits.storm) if random.random() < share else limits.answered()
            seen.append(limits.limit)
        return sum(seen) / len(seen)

    assert after(0.1) > 24
    assert after(0.5) < 4


def test_no_more_are_in_flight_than_the_limit_of_the_moment():
    async def run():
        limits, inside, most = Limits(4, None, None), 0, []

        async def one():
            nonlocal inside
            async with limits.place(1) as place:
                inside += 1
                most.append((inside, limits.limit))
                await asyncio.sleep(0.001)
                limits.flooded(place.storm) if len(most) < 8 else limits.answered()
                inside -= 1

        await asyncio.gather(*(one() for _ in range(10 * GROWS_AFTER)))
        return most

    most = asyncio.run(run())
    assert max(inside for inside, _ in most) == 4
    assert min(limit for _, limit in most) == 2
    assert all(inside <= limit for inside, limit in most[8:])


@given(
    st.none() | st.integers(1, 6),
    st.none() | st.integers(1, 50),
    st.lists(st.tuples(st.floats(0, 40), st.integers(0, 60)), min_size=1, max_size=40),
)
def test_the_law_of_a_window_on_a_clock_of_its_own(requests, tokens, coming):
    """In no 60 s is there more than the limits, and nobody waits who has room."""
    now = 1000.0

    async def sleep(seconds):
        nonlocal now
        now += seconds

    async def run():
        nonlocal now
        window = Window(requests, tokens, period=60.0, clock=lambda: now, sleep=sleep)
        passed = []
        for gap, wanted in coming:
            now += gap
            came = now
            size = wanted if tokens is None else min(wanted, tokens)
            await window.enter(wanted)
            passed.append((now, size))
            if now > came:  # a moment before there was no room
                before = [one for at, one in passed[:-1] if now - 0.001 - at < 60.0]
                full = requests is not None and len(before) >= requests
                assert full or (tokens is not None and sum(before) + size > tokens)
        return passed

    passed = asyncio.run(run())
    for start, _ in passed:
        inside = [size for at, size in passed if 0 <= at - start < 60.0]
        assert requests is None or len(inside) <= requests
        assert tokens is None or sum(inside) <= tokens


def test_a_place_from_which_nothing_left_takes_nothing_of_the_minute(monkeypatch):
    """Who only looks whether somebody else has the answer by now asks the host nothing."""
    monkeypatch.setattr(limits, "_MINUTE", 60.0)

    async def run():
        line = Limits(4, requests_per_minute=2, tokens_per_minute=100)
        for _ in range(20):
            async with line.place(100) as place:
                place.used = False
        async with line.place(100):
            pass

    since = time.monotonic()
    asyncio.run(run())
    assert time.monotonic() - since < 30
