"""The verdict on the suite as a whole: what is small in every query."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nexmark.model import SUITE, Value
from nexmark.verdict.measured_night import Measured, MeasuredNight
from nexmark.verdict.nightly import judge_night, replay
from tests.unit.verdict.gate_builder import (
    CPU,
    QUERIES,
    around,
    earlier,
    night,
    noisy,
    rules,
    tonight,
    verdict,
    with_query,
)


def all_queries(ratio: float, fresh: float | None = None) -> MeasuredNight:
    rng = np.random.default_rng(31)
    later = (around(fresh, 10, rng),) if fresh is not None else ()
    rows = tuple(Measured(q, CPU, around(ratio, 5, rng), later) for q in QUERIES)
    return MeasuredNight("tonight", rows)


def test_what_is_small_in_every_query_is_a_regression_of_the_suite() -> None:
    found = judge_night(all_queries(1.012), earlier(), rules())
    by_query = {x.query: x for x in found}
    assert by_query[SUITE].value is Value.REGRESSION
    assert by_query[SUITE].ratio == pytest.approx(1.012)
    assert all(x.value is Value.OK for x in found if x.query != SUITE)
    assert by_query[SUITE].red


def test_a_faster_suite_is_said_too() -> None:
    assert verdict(all_queries(1 / 1.012), SUITE).value is Value.FASTER


@pytest.mark.parametrize("ratio", [1.4, 1 / 1.4])
def test_one_query_that_has_changed_by_itself_does_not_alarm_twice(ratio: float) -> None:
    found = verdict(tonight(ratio, ratio), SUITE)
    assert (found.value, found.ratio) == (Value.OK, pytest.approx(1.0))


def test_some_queries_that_are_regressions_themselves_are_not_the_suite() -> None:
    rng = np.random.default_rng(31)
    some = night()
    for query in QUERIES[:5]:
        some = with_query(some, query, pairs=around(1.4, 5, rng), later=(around(1.4, 10, rng),))
    found = {x.query: x.value for x in judge_night(some, earlier(), rules())}
    assert [found[query] for query in QUERIES[:5]] == [Value.REGRESSION] * 5
    assert found[SUITE] is Value.OK


def test_one_wild_query_is_not_the_suite() -> None:
    assert verdict(tonight(3.0, 1.0), SUITE).value is Value.OK


def test_where_all_are_regressions_the_suite_is_one() -> None:
    found = verdict(all_queries(1.2, 1.2), SUITE)
    assert found.value is Value.REGRESSION
    assert found.ratio == pytest.approx(1.2)


def nights_of(
    count: int, ratio: float, baseline: str, rng: np.random.Generator, first: int
) -> list[MeasuredNight]:
    """Nights of 23 queries with a noise of 5 % per run."""
    queries = [f"q{number}" for number in range(23)]
    return [
        MeasuredNight(
            f"night-{first + night}",
            tuple(Measured(q, CPU, noisy(ratio, 5, rng, 0.054)) for q in queries),
            baseline=dict.fromkeys(queries, baseline),
        )
        for night in range(count)
    ]


def test_a_small_change_of_all_queries_is_found_after_the_baseline_has_moved() -> None:
    """A candidate 4 % faster becomes the baseline; later all queries get 2.5 % slower."""
    red = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        before = replay(
            [*nights_of(30, 0.96, "b0", rng, 0), *nights_of(30, 1.0, "b1", rng, 30)], rules()
        )
        (slower,) = nights_of(1, 1.025, "b1", rng, 60)
        red += verdict(slower, SUITE, before=before).value is Value.REGRESSION
    assert red >= 18


def test_a_moved_baseline_leaves_the_noise_of_the_suite() -> None:
    moved, stayed = (
        verdict(
            nights_of(1, 1.0, last, np.random.default_rng(9), 60)[0],
            SUITE,
            before=replay(
                [
                    *nights_of(30, level, "b0", np.random.default_rng(1), 0),
                    *nights_of(30, 1.0, last, np.random.default_rng(2), 30),
                ],
                rules(),
            ),
        ).noise
        for level, last in ((0.96, "b1"), (1.0, "b0"))
    )
    assert moved == pytest.approx(stayed, rel=0.15)


def test_nights_in_which_the_suite_had_changed_are_no_noise_of_it() -> None:
    rng = np.random.default_rng(4)
    quiet = replay(nights_of(30, 1.0, "b0", rng, 0), rules())
    slower = nights_of(1, 1.05, "b0", rng, 30)[0]
    changed = judge_night(slower, quiet, rules())
    assert next(x for x in changed if x.query == SUITE).value is Value.REGRESSION
    after = nights_of(1, 1.0, "b0", rng, 31)[0]
    with_it, without = (
        verdict(after, SUITE, before=before).noise or 0.0 for before in ([*quiet, changed], quiet)
    )
    kept = [replace(x, value=Value.OK) if x.query == SUITE else x for x in changed]
    learned = verdict(after, SUITE, before=[*quiet, kept]).noise
    assert with_it == pytest.approx(without, rel=0.1)
    assert learned is not None
    assert learned > 1.2 * with_it


def test_few_queries_are_no_suite() -> None:
    few = replace(night(), measured=night().measured[:5])
    assert [x for x in judge_night(few, earlier(), rules()) if x.query == SUITE] == []
