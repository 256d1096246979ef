"""Pairs of the same two builds add up while a query is undecided; a decision ends it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from nexmark.model import CPU, Value
from nexmark.store import Store
from nexmark.verdict.left_open import ADDED_UP, still_open
from tests.unit.store.night_builder import OK, cpu, paired, record_pair, validate
from tests.unit.store.store_builder import STARTED

ASKED = 3


def compared(store: Store, number: int, value: Value | None, **changes: Any) -> str:
    """Record a night of q5 with its pairs, and with a verdict if there is one."""
    given: dict[str, Any] = {"run_id": f"n{number}", "queries": ("q5",)}
    given |= {"started": STARTED + timedelta(days=number), **changes}
    made = paired(number, repetitions=ASKED, **given)
    store.record_night(made)
    validate(store, made.run, ["q5"])
    for pair in range(1, ASKED + 1):
        record_pair(store, made.run, "q5", pair, candidate=10.0 + number, baseline=10.0)
    if value is not None:
        store.record_verdicts(made.run, [replace(OK, night=made.run, value=value)])
    return made.run


def added(store: Store, run: str) -> list[float]:
    """The candidate's figures of earlier nights that count for a night, by their nights."""
    night = store.paired_night(run)
    (one,) = (each for each in night.measured if each.metric == CPU)
    assert len(one.pairs) == ASKED
    return sorted({float(pair.candidate or 0) for pair in one.before})


def test_what_is_undecided_goes_on_with_the_pairs_of_earlier_nights(store: Store) -> None:
    compared(store, 1, Value.UNDECIDED)
    compared(store, 2, Value.UNDECIDED)
    assert added(store, compared(store, 3, None)) == [11.0, 12.0]


def test_the_error_stays_shared_by_the_queries_among_which_one_was_left_open(store: Store) -> None:
    """Else it is tested as if nobody had chosen it: once more with the error of a whole night."""
    every = ("q0", "q5", "q8", "q10")
    runs = [compared(store, 1, Value.UNDECIDED, queries=every)]
    runs += [compared(store, number, Value.UNDECIDED) for number in (2, 3)]
    runs.append(compared(store, 4, Value.OK, queries=every[:2]))
    runs.append(compared(store, 5, None))
    assert [store.paired_night(run).family for run in runs] == [0, 8, 12, 16, 0]


@pytest.mark.parametrize("between", [Value.OK, Value.REGRESSION, Value.INVALID])
def test_a_decision_ends_what_adds_up(store: Store, between: Value) -> None:
    compared(store, 1, Value.UNDECIDED)
    compared(store, 2, between)
    compared(store, 3, Value.UNDECIDED)
    assert added(store, compared(store, 4, None)) == [13.0]


@pytest.mark.parametrize("between", [Value.MISSING, None])
def test_a_night_that_decided_nothing_is_passed_over(store: Store, between: Value | None) -> None:
    """Its query was not measured, or the night was killed before it was judged."""
    compared(store, 1, Value.UNDECIDED)
    compared(store, 2, between)
    compared(store, 3, Value.UNDECIDED)
    assert added(store, compared(store, 4, None)) == [11.0, 13.0]


@pytest.mark.parametrize(
    "other",
    [{"baselines": {"q5": "sha-428"}}, {"candidate_conf": {"spark.sql.shuffle.partitions": "9"}}],
)
def test_nights_of_other_builds_or_confs_between_change_nothing(
    store: Store, other: dict[str, Any]
) -> None:
    compared(store, 1, Value.UNDECIDED)
    compared(store, 2, Value.OK, **other)
    assert added(store, compared(store, 3, None)) == [11.0]


def test_pairs_of_soaks_add_up_in_the_order_of_the_nights(store: Store) -> None:
    for number, value in ((1, Value.SUSPECT), (2, None)):
        run = compared(store, number, value)
        samples = ({"batch": number, "processes": []},)
        aged = {"measurement": cpu(10.0, ageing=samples)}
        record_pair(store, run, "q5", ASKED + 1, candidate=aged, baseline=aged)
    pairs = store.paired_night(run).aged["q5"]
    seen = [[arm[0]["batch"] for arm in (pair.candidate, pair.baseline) if arm] for pair in pairs]
    assert seen == [[1, 1], [2, 2]]


def test_the_newest_ten_nights_add_up_at_the_most() -> None:
    nights = [(Value.UNDECIDED, number) for number in range(ADDED_UP + 5)]
    assert still_open(nights) == list(range(ADDED_UP))
    assert still_open([(Value.UNDECIDED, 1), (None, 2), (Value.UNDECIDED, 3)]) == [1, 3]
