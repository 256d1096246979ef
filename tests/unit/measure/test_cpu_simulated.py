"""Every CPU tick is booked exactly once, whatever processes do while they are being read."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexmark.measure.cpu import tree_cpu
from tests.unit.measure.simulated_host import EXECUTOR, SimulatedHost

seeds = st.integers(0, 2**32)


def booked(host: SimulatedHost) -> int:
    return sum(tree.main[-1] + tree.python[-1] for tree in tree_cpu(host.samples()))


def live(host: SimulatedHost, ticks: int, busy: int) -> None:
    for _ in range(ticks):
        for _ in range(host.random.randrange(busy)):
            host.step()
        host.sample()


@settings(max_examples=300, deadline=None, derandomize=True)
@given(seed=seeds, disorder=st.integers(0, 3), busy=st.integers(1, 40), ticks=st.integers(1, 15))
def test_a_tree_that_waits_for_its_children_is_booked_to_the_tick(
    seed: int, disorder: int, busy: int, ticks: int
) -> None:
    host = SimulatedHost(Random(seed), disorder=disorder)
    with pytest.MonkeyPatch.context() as patch:
        host.install(patch)
        host.sample()
        live(host, ticks, busy)
        host.disorder = 0
        host.finish()
        host.sample()
        host.sample()
    assert booked(host) == host.burnt


@settings(max_examples=300, deadline=None, derandomize=True)
@given(seed=seeds, disorder=st.integers(0, 3), busy=st.integers(1, 40), ticks=st.integers(1, 15))
def test_orphans_are_never_booked_twice(seed: int, disorder: int, busy: int, ticks: int) -> None:
    host = SimulatedHost(Random(seed), disorder=disorder, orphans=True)
    with pytest.MonkeyPatch.context() as patch:
        host.install(patch)
        host.sample()
        live(host, ticks, busy)
    assert booked(host) <= host.burnt


@settings(max_examples=200, deadline=None, derandomize=True)
@given(seed=seeds, disorder=st.integers(0, 2), busy=st.integers(1, 40), ticks=st.integers(1, 15))
def test_cumulative_cpu_never_falls(seed: int, disorder: int, busy: int, ticks: int) -> None:
    host = SimulatedHost(Random(seed), disorder=disorder, orphans=True)
    with pytest.MonkeyPatch.context() as patch:
        host.install(patch)
        live(host, ticks, busy)
    for tree in tree_cpu(host.samples()):
        for series in (tree.main, tree.python):
            assert len(series) == ticks
            assert series == sorted(series)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seed=seeds, busy=st.integers(0, 30))
def test_what_an_executor_used_after_its_last_reading_is_reported_by_the_worker(
    seed: int, busy: int
) -> None:
    host = SimulatedHost(Random(seed), disorder=0)
    with pytest.MonkeyPatch.context() as patch:
        host.install(patch)
        live(host, 3, busy + 1)
        host.burn(host.processes[EXECUTOR], 77)
        host.finish()
        host.sample()
        host.sample()
    assert booked(host) == host.burnt
