"""Builds that are each a little slower, and all accepted: only their product shows it."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from nexmark.model import SUITE, Value
from nexmark.verdict.measured_night import Measured, MeasuredNight
from nexmark.verdict.nightly import replay
from nexmark.verdict.verdict import Verdict
from tests.unit.verdict.gate_builder import CPU, noisy, pairs, rules

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
                Measured(query, CPU, noisy(ratio, 5, rng, cv), (noisy(ratio, 10, rng, cv),))
                for query in QUERIES
                for ratio in [1 + slower if query in creeping else 1.0]
            ),
            baseline=dict.fromkeys(QUERIES, f"b{number - 1}"),
        )
        for number in range(1, nights + 1)
    ]


def of(query: str, judged: list[list[Verdict]]) -> list[Verdict]:
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
    assert not any(x.red for night in judged for x in night if x.query != SUITE)
    others = [x.value for query in QUERIES if query != "q5" for x in of(query, judged)]
    assert Value.WATCH not in others


def test_a_suite_that_is_slower_with_each_accepted_build_is_watched() -> None:
    judged = replay(season(30, 0.003, QUERIES, cv=0.02), rules())
    assert of(SUITE, judged)[-1].value is Value.WATCH
    assert not math.isclose(of(SUITE, judged)[-1].ratio or 0, 1.09, abs_tol=0.05)  # tonight's own


STEP = 0.019
"""Just below what would make each build a suspect by itself."""


def of_eight(name: str, log: float, baseline: str, candidate: str) -> MeasuredNight:
    """A night of as many queries as a suite needs; all pairs are alike: the noise is the floor."""
    queries = QUERIES[:8]
    rows = tuple(Measured(query, CPU, pairs([math.exp(log)] * 5)) for query in queries)
    accepted = dict.fromkeys(queries, baseline)
    return MeasuredNight(name, rows, baseline=accepted, candidate=candidate)


def three_steps() -> list[MeasuredNight]:
    """Ten nights in which the suite moves by 0.4 % up and down, then three accepted builds."""
    turns = [of_eight(f"n{i}", 0.004 * (-1) ** i, "b0", f"c{i}") for i in range(10)]
    return [*turns, *(of_eight(f"m{i}", STEP, f"b{i - 1}", f"b{i}") for i in (1, 2, 3))]


def test_a_creep_says_since_when_and_how_much_for_each_query_and_for_the_suite() -> None:
    """Four links of a deviation of 0.004: 0.057 +- 1.96 * 0.008.

    The suite moves from night to night by 0.0039 * sqrt(1.1), 2.9 times what eight independent
    queries would: 0.057 +- 1.96 * 2.9 * 0.008 / sqrt(8).
    """
    found = replay([*three_steps(), of_eight("tonight", 0.0, "b3", "b4")], rules())
    assert of("q5", found)[-1].reason == (
        "accepted builds add up: since n0 (b0): 5.9 % slower (4.2 % to 7.5 %), 3 accepted builds; "
        "tonight ratio 1.000 (0.992 to 1.008) in 5 pairs; a slowdown of 10 % is excluded"
    )
    assert of(SUITE, found)[-1].reason == (
        "accepted builds add up: since n0 (b0): 5.9 % slower (4.2 % to 7.6 %), 3 accepted builds; "
        "tonight the geometric mean of 8 queries: ratio 1.000 (0.992 to 1.008)"
    )
    assert {x.value for x in found[-1]} == {Value.WATCH}
    # The night before was slower by itself, which is more than a creep.
    assert of("q5", found)[-2].reason.startswith(
        "accepted builds add up: since n0 (b0): 5.9 % slower ("
    )
    assert of(SUITE, found)[-2].value is Value.REGRESSION


def test_a_night_that_teaches_nothing_links_builds_and_accepts_none() -> None:
    """It measured b3 against b0: 0.087, three times as sure as the three steps of 0.057 in all.

    (0.087 + 0.057 / 3) / (1 + 1 / 3) = 0.0795, and tonight's 0.
    """
    chosen = replace(of_eight("chosen", 0.087, "b0", "b3"), teaches=False)
    nights = [*three_steps(), chosen, of_eight("tonight", 0.0, "b3", "b4")]
    found = replay(nights, rules())
    assert of("q5", found)[-1].reason == (
        "accepted builds add up: since n0 (b0): 8.3 % slower (7.2 % to 9.4 %), 3 accepted builds; "
        "tonight ratio 1.000 (0.992 to 1.008) in 5 pairs; a slowdown of 10 % is excluded"
    )
    assert "creeping" not in of("q5", found)[-2].reason
