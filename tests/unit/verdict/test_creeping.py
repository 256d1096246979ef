"""Builds that are each a little slower, and all accepted: only their product shows it."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from nexmark.model import SUITE, Value
from nexmark.verdict.measured_night import Measured, MeasuredNight, QueryVerdict
from nexmark.verdict.nightly import replay
from tests.unit.verdict.gate_builder import CPU, noisy, rules

QUERIES = tuple(f"q{number}" for number in range(10))


def season(
    nights: int, slower: float, creeping: tuple[str, ...], cv: float = 0.01
) -> list[MeasuredNight]:
    """Nights in which every build is accepted; the candidate is not named."""
    rng = np.random.default_rng(7)
    return [
        MeasuredNight(
            f"n{number}",
            tuple(
                Measured(query, CPU, noisy(ratio, 5, rng, cv), noisy(ratio, 10, rng, cv))
                for query in QUERIES
                for ratio in [1 + slower if query in creeping else 1.0]
            ),
            baseline=dict.fromkeys(QUERIES, f"b{number - 1}"),
        )
        for number in range(1, nights + 1)
    ]


def of(query: str, judged: list[list[QueryVerdict]]) -> list[QueryVerdict]:
    return [x for night in judged for x in night if x.query == query]


@pytest.mark.parametrize(("slower", "nights"), [(0.015, 24), (0.01, 40)])
def test_a_query_that_is_slower_with_each_accepted_build_is_watched(
    slower: float, nights: int
) -> None:
    judged = replay(season(nights, slower, ("q5",)), rules())
    last = of("q5", judged)[-1]
    assert last.value is Value.WATCH
    assert re.search(r"since n1 \(b0\): (4[0-9]|5[0-3]) % slower", last.reason)
    assert f"{nights - 1} accepted builds" in last.reason
    assert not any(x.red for night in judged for x in night)
    others = [x.value for query in QUERIES if query != "q5" for x in of(query, judged)]
    assert Value.WATCH not in others


def test_a_suite_that_is_slower_with_each_accepted_build_is_watched() -> None:
    judged = replay(season(30, 0.003, QUERIES, cv=0.02), rules())
    assert of(SUITE, judged)[-1].value is Value.WATCH
    assert not math.isclose(of(SUITE, judged)[-1].ratio or 0, 1.09, abs_tol=0.05)  # tonight's own
