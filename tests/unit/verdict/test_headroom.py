"""A query whose source is hardly faster than itself has no verdict: neither green proof nor red."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nexmark.config import Gate
from nexmark.model import READ_RATE, SOURCE_RATE, Value
from nexmark.verdict.bounds import BoundsArm, BoundsRepetition, judge
from nexmark.verdict.eligibility import source_bound
from nexmark.verdict.measured_night import Measured, MeasuredNight, Pair
from nexmark.verdict.nightly import going_on, judge_night
from nexmark.verdict.stored_nights import read_nights
from tests.unit.verdict.gate_builder import (
    CPU,
    earlier,
    night,
    rules,
    tonight,
    verdict,
    with_query,
)

SAID = (
    "a consumer alone reads 210,000 records per second, the query 100,000: 2.1 times, less than 3; "
    "the figures may be the source's"
)


def rates(alone: float, candidate: float, baseline: float | None = None) -> tuple[Measured, ...]:
    def five(ours: float, theirs: float | None) -> tuple[Pair, ...]:
        return tuple(Pair(number, ours, theirs) for number in range(1, 6))

    return (
        Measured("q5", SOURCE_RATE, five(alone, alone)),
        Measured("q5", READ_RATE, five(candidate, baseline)),
    )


def with_rates(base: MeasuredNight, *measured: Measured) -> MeasuredNight:
    return replace(base, measured=(*base.measured, *measured))


@pytest.mark.parametrize("ratio", [1.0, 1.5, 0.7])
def test_without_headroom_a_query_is_neither_right_nor_wrong(ratio: float) -> None:
    bound = with_rates(tonight(ratio, fresh=ratio), *rates(210_000, 50_000, 100_000))
    found = verdict(bound)
    assert (found.value, found.reason, found.red) == (Value.SOURCE_BOUND, SAID, False)
    assert found.shift is None  # later nights learn nothing from it
    assert going_on(bound, earlier(), rules(), 2) == []


def test_with_headroom_the_verdict_is_of_the_pairs() -> None:
    free = with_rates(tonight(1.5, fresh=1.5), *rates(310_000, 50_000, 100_000))
    assert verdict(free).value is Value.REGRESSION
    assert verdict(with_rates(night(), *rates(210_000, 100_000)), source_headroom=0).value is (
        Value.OK
    )


def test_a_wrong_result_stays_invalid_and_rates_have_no_verdict_of_their_own() -> None:
    bound = with_rates(night(invalid={"q5": "wrong"}), *rates(210_000, 100_000))
    assert verdict(bound).value is Value.INVALID
    few = with_query(night(), "q5", pairs=tonight(1.0).measured[5].pairs[:2])
    assert verdict(with_rates(few, *rates(210_000, 100_000))).value is Value.MISSING
    judged = judge_night(bound, earlier(), rules())
    assert {one.metric for one in judged} == {CPU}


def test_just_the_headroom_asked_for_is_enough() -> None:
    assert source_bound(rates(300_000, 100_000), rules()) == {}
    assert source_bound(rates(299_999, 100_000), rules()).keys() == {"q5"}


def test_repetitions_without_a_partner_read_as_fast_as_others() -> None:
    """Of the candidate four repetitions have none: together with the first their median counts."""
    alone, _ = rates(210_000, 100_000)
    pairs = (Pair(1, 50_000, 50_000), *(Pair(number, 100_000, None) for number in range(2, 6)))
    read = Measured("q5", READ_RATE, pairs)
    assert source_bound([alone, read], rules()) == {"q5": SAID}


def test_by_bounds_too() -> None:
    arm = BoundsArm("n", "s", tuple(BoundsRepetition(n, 1.0, 1.0) for n in (1, 2)))
    bound = source_bound(rates(210_000, 100_000), rules())
    gate: Gate = rules()

    def of(**given: BoundsArm) -> Value:
        (found,) = judge(
            ["q5"], given, {"q5": arm}, {}, gate, workload="w", repetitions=2, source_bound=bound
        )
        return found.value

    assert of(q5=arm) is Value.SOURCE_BOUND
    assert of() is Value.MISSING


def test_the_replay_csv_says_it_with_rows_of_its_usual_columns() -> None:
    lines = ["night,query,stage,pair,arm,order,metric,value"]
    for pair in range(1, 6):
        for arm in ("candidate", "baseline"):
            for metric, value in ((CPU, 10), (SOURCE_RATE, 210_000), (READ_RATE, 100_000)):
                lines.append(f"n,q5,1,{pair},{arm},{pair},{metric},{value}")
    (read,) = read_nights(lines)
    (found,) = judge_night(read, [], rules())
    assert (found.value, found.reason) == (Value.SOURCE_BOUND, SAID)
