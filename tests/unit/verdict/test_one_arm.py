"""History mode: one arm against its past, relative to the canary."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from nexmark.verdict import Value
from nexmark.verdict.nightly import judge_night, replay, suspects
from nexmark.verdict.nights import Canary, Measured, Night, Pair, QueryVerdict
from tests.unit.verdict.gate_builder import CPU, QUERIES, rules

HISTORY = rules(mode="history")


def one_arm(name: str, rng: np.random.Generator, host: float = 1.0, **ratios: float) -> Night:
    """A night whose host is so slow, and queries of it too."""
    rows = tuple(
        Measured(query, CPU, tuple(_repetitions(host * ratios.get(query, 1.0), rng)))
        for query in QUERIES
    )
    return Night(name, rows, (Canary("cpu_s", (host,), (host,)),))


def _repetitions(level: float, rng: np.random.Generator) -> list[Pair]:
    return [Pair(i, 10 * level * math.exp(x), None) for i, x in enumerate(rng.normal(0, 0.02, 5))]


def judged(*last: Night, nights: int = 20) -> list[QueryVerdict]:
    rng = np.random.default_rng(8)
    hosts = rng.uniform(0.5, 2.0, nights)
    before = [one_arm(f"night-{i}", rng, float(host)) for i, host in enumerate(hosts)]
    return replay([*before, *last], HISTORY)[-1]


def q5(verdicts: list[QueryVerdict]) -> QueryVerdict:
    (only,) = [x for x in verdicts if x.query == "q5"]
    return only


def test_a_slower_host_is_no_regression_and_a_slower_query_is_one() -> None:
    rng = np.random.default_rng(1)
    found = judged(one_arm("tonight", rng, 3.0, q5=1.2))
    assert q5(found).value is Value.REGRESSION
    assert q5(found).ratio == pytest.approx(1.2, rel=0.03)
    assert {x.value for x in found if x.query != "q5"} == {Value.OK}


def test_a_faster_query_is_seen_too() -> None:
    assert q5(judged(one_arm("x", np.random.default_rng(1), q5=0.8))).value is Value.FASTER


def test_every_verdict_says_that_it_is_of_one_arm() -> None:
    found = q5(judged(one_arm("x", np.random.default_rng(1))))
    assert (found.mode, found.value) == ("history", Value.OK)
    assert None not in (found.lo, found.hi, found.mde)


def test_without_a_canary_the_host_cannot_be_told_from_the_build() -> None:
    found = q5(judged(replace(one_arm("x", np.random.default_rng(1)), canary=())))
    assert (found.value, found.red) == (Value.INVALID, True)
    assert "needs the timings of a canary" in found.reason


def test_few_nights_calibrate() -> None:
    found = q5(judged(one_arm("x", np.random.default_rng(1), q5=1.5), nights=9))
    assert (found.value, found.reason) == (Value.CALIBRATING, "9 of 10 nights to compare with")


def test_nights_with_another_canary_are_not_compared() -> None:
    other = (Canary("cpu_memory_s", (1.0,), (1.0,)),)
    found = q5(judged(replace(one_arm("x", np.random.default_rng(1)), canary=other)))
    assert found.value is Value.CALIBRATING


def test_the_whole_application_is_not_compared_with_the_steady_state() -> None:
    """Start-up alone would make it three times as slow."""
    tonight = one_arm("x", np.random.default_rng(1), q5=3.0)
    other = tuple(
        replace(x, basis="application") if x.query == "q5" else x for x in tonight.measured
    )
    found = judged(replace(tonight, measured=other))
    assert q5(found).value is Value.CALIBRATING
    assert {x.value for x in found if x.query != "q5"} == {Value.OK}


def test_too_few_repetitions_are_missing_and_impossible_ones_invalid() -> None:
    some = one_arm("x", np.random.default_rng(1))
    rows = some.measured
    few = replace(some, measured=tuple(replace(x, pairs=x.pairs[:2]) for x in rows))
    assert q5(judged(few)).value is Value.MISSING
    zero = tuple(replace(x, pairs=(Pair(9, 0.0, None), *x.pairs)) for x in rows)
    assert q5(judged(replace(some, measured=zero))).value is Value.INVALID


def test_there_is_nothing_to_measure_again() -> None:
    assert suspects(one_arm("x", np.random.default_rng(1), q5=2.0), [], HISTORY) == []


def test_verdicts_of_pairs_are_not_taken_for_levels() -> None:
    rng = np.random.default_rng(1)
    pairs = [
        Night(
            f"n{i}",
            tuple(Measured(q, CPU, tuple(Pair(p, 10.0, 10.0) for p in range(5))) for q in QUERIES),
        )
        for i in range(15)
    ]
    before = replay(pairs, rules())
    assert q5(judge_night(one_arm("x", rng), before, HISTORY)).value is Value.CALIBRATING
