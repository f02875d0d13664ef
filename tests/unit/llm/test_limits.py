"""How fast a model is asked: never more at once than allowed, less after a storm, more again after good answers."""

import asyncio
import time
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pipelines.llm import limits
from pipelines.llm.limits import GROWS_AFTER, STORM_AT_LEAST, Concurrency, Limits, Window


async def storm(places):
    for _ in range(STORM_AT_LEAST):
        places.flooded(await places.enter())
        places.leave()


def test_one_storm_halves_once_and_the_next_again():
    async def run():
        places = Concurrency(16)
        storms = [await places.enter() for _ in range(16)]
        for storm in storms:  # sixteen 429 to requests that were all sent before the first of them came
            places.flooded(storm)
        after_one = places.limit
        for _ in range(12):
            places.leave()
        for _ in range(STORM_AT_LEAST):
            places.flooded(await places.enter())
        return after_one, places.limit

    assert asyncio.run(run()) == (8, 4)


def test_a_few_429_among_good_answers_are_no_storm():
    """One in ten, at random: a host with several queues. It stays fast; one in two is a storm."""

    def after(share):
        random = Random(7)
        places = Concurrency(48)
        limits = []
        for _ in range(3000):
            if random.random() < share:
                places.flooded(places._storm)
            else:
                places.answered()
            limits.append(places.limit)
        return sum(limits) / len(limits)

    assert after(0.1) > 24
    assert after(0.5) < 4


def test_it_grows_with_good_answers_up_to_where_it_was():
    async def run():
        places = Concurrency(4)
        await storm(places)
        grown = []
        for _ in range(4 * GROWS_AFTER):
            places.answered()
            grown.append(places.limit)
        return grown[GROWS_AFTER - 2], grown[GROWS_AFTER - 1], grown[2 * GROWS_AFTER - 1], grown[-1]

    assert asyncio.run(run()) == (2, 3, 4, 4)


@given(st.lists(st.sampled_from(["enter", "cancel", "leave", "flood", "good"]), max_size=60), st.integers(1, 4))
def test_places_are_neither_lost_nor_made(steps, most):
    """Whatever happens in whatever order, cancellations included: who waits gets a place once there is one."""

    async def run():
        places = Concurrency(most)
        inside, waiting = 0, []
        for step in steps:
            if step == "enter":
                waiting.append(asyncio.create_task(places.enter()))
            elif step == "cancel" and waiting:
                waiting.pop().cancel()
            elif step == "leave" and inside:
                inside -= 1
                places.leave()
            elif step == "flood":
                places.flooded(places._storm)
            elif step == "good":
                places.answered()
            for _ in range(3):
                await asyncio.sleep(0)
            inside += sum(task.done() for task in waiting)
            waiting = [task for task in waiting if not task.done()]
            assert places.in_flight == inside
            assert inside <= most
            assert not waiting or inside >= places.limit
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(run())


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
