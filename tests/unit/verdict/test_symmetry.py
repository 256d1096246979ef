"""What must not matter: which arm is which, the unit of a metric, the order of pairs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nexmark.model import SUITE, Value
from nexmark.verdict.measured_night import MeasuredNight, Pair
from tests.unit.verdict.gate_builder import (
    earlier,
    night,
    pairs,
    tonight,
    verdict,
    with_query,
)


def swapped(some: MeasuredNight) -> MeasuredNight:
    """The night with the arms exchanged."""

    def swap(found: tuple[Pair, ...]) -> tuple[Pair, ...]:
        return tuple(Pair(x.number, x.baseline, x.candidate) for x in found)

    rows = tuple(
        replace(x, pairs=swap(x.pairs), later=tuple(map(swap, x.later))) for x in some.measured
    )
    return replace(some, measured=rows)


EVEN = {"pursue_faster_z": 1.4, "matters": 1.0}
"""Both ways alike, but that only a slowdown is to be excluded: 100 % is, mostly."""
MIRROR = {Value.REGRESSION: Value.FASTER, Value.FASTER: Value.REGRESSION}

ratios_of_a_night = st.tuples(
    st.lists(st.floats(0.6, 1.6), min_size=5, max_size=5),
    st.lists(st.floats(0.6, 1.6), min_size=10, max_size=10),
)


@settings(deadline=None, derandomize=True, max_examples=25)
@given(ratios_of_a_night)
def test_exchanging_the_arms_mirrors_the_verdict(
    ratios: tuple[list[float], list[float]],
) -> None:
    some = with_query(night(), "q5", pairs=pairs(ratios[0]), later=(pairs(ratios[1]),))
    before = [[x for x in found if x.query != SUITE] for found in earlier()]
    before = [[replace(x, drift_slower=0.0, drift_faster=0.0) for x in found] for found in before]
    one = verdict(some, before=before, **EVEN)
    other = verdict(swapped(some), before=before, **EVEN)
    assume(Value.UNDECIDED not in (one.value, other.value))
    assume(one.fresh_pairs == other.fresh_pairs)  # a small slowdown alone is not measured on
    assert other.value is MIRROR.get(one.value, one.value)
    assert other.ratio == pytest.approx(1 / (one.ratio or 0))
    assert other.lo == pytest.approx(1 / (one.hi or 0))
    assert other.mde == pytest.approx(one.mde)


@settings(deadline=None, derandomize=True, max_examples=25)
@given(ratios_of_a_night, st.floats(1e-6, 1e6))
def test_the_unit_of_the_measurements_does_not_matter(
    ratios: tuple[list[float], list[float]], unit: float
) -> None:
    """Milliseconds or hours, a small query or a large one."""
    found = [
        verdict(
            with_query(
                night(), "q5", pairs=pairs(ratios[0], level), later=(pairs(ratios[1], level),)
            )
        )
        for level in (1.0, unit)
    ]
    assert found[0].value is found[1].value
    assert found[0].ratio == pytest.approx(found[1].ratio)


@settings(deadline=None, derandomize=True, max_examples=25)
@given(st.permutations(range(5)))
def test_the_order_of_pairs_does_not_matter(order: list[int]) -> None:
    some = tonight(1.12, 1.10)
    (q5,) = [x for x in some.measured if x.query == "q5"]
    mixed = with_query(some, "q5", pairs=tuple(q5.pairs[i] for i in order))
    assert verdict(mixed).ratio == verdict(some).ratio
