"""The verdict on the suite as a whole: what is small in every query."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nexmark.verdict import Value
from nexmark.verdict.nightly import judge_night, night_is_red
from nexmark.verdict.nights import SUITE, Measured, Night
from tests.unit.verdict.gate_builder import (
    CPU,
    QUERIES,
    around,
    earlier,
    night,
    rules,
    tonight,
    verdict,
    with_query,
)


def all_queries(ratio: float, fresh: float | None = None) -> Night:
    rng = np.random.default_rng(31)
    again = around(fresh, 10, rng) if fresh is not None else ()
    rows = tuple(Measured(q, CPU, around(ratio, 5, rng), again) for q in QUERIES)
    return Night("tonight", rows)


def test_what_is_small_in_every_query_is_a_regression_of_the_suite() -> None:
    found = judge_night(all_queries(1.012), earlier(), rules())
    by_query = {x.query: x for x in found}
    assert by_query[SUITE].value is Value.REGRESSION
    assert by_query[SUITE].ratio == pytest.approx(1.012)
    assert all(x.value is Value.OK for x in found if x.query != SUITE)
    assert night_is_red(found)


def test_a_faster_suite_is_said_too() -> None:
    assert verdict(all_queries(1 / 1.012), SUITE).value is Value.FASTER


def test_one_query_that_is_a_regression_itself_does_not_alarm_twice() -> None:
    assert verdict(tonight(1.4, 1.4), SUITE).value is Value.OK


def test_some_queries_that_are_regressions_themselves_are_not_the_suite() -> None:
    rng = np.random.default_rng(31)
    some = night()
    for query in QUERIES[:5]:
        some = with_query(some, query, pairs=around(1.4, 5, rng), fresh=around(1.4, 10, rng))
    found = {x.query: x.value for x in judge_night(some, earlier(), rules())}
    assert [found[query] for query in QUERIES[:5]] == [Value.REGRESSION] * 5
    assert found[SUITE] is Value.OK


def test_one_wild_query_is_not_the_suite() -> None:
    assert verdict(tonight(3.0, 1.0), SUITE).value is Value.OK


def test_where_all_are_regressions_the_suite_is_one() -> None:
    found = verdict(all_queries(1.2, 1.2), SUITE)
    assert found.value is Value.REGRESSION
    assert found.ratio == pytest.approx(1.2)


def test_few_queries_are_no_suite() -> None:
    few = replace(night(), measured=night().measured[:5])
    assert [x for x in judge_night(few, earlier(), rules()) if x.query == SUITE] == []
