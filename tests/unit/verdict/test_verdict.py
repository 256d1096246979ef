"""The verdict that the gate gives is whole: what it is of, and the medians behind its ratio."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nexmark.model import SUITE, Basis, Mode, Value
from nexmark.verdict.measured_night import Measured, Pair
from nexmark.verdict.nightly import judge_night
from nexmark.verdict.verdict import Verdict
from tests.unit.verdict.gate_builder import CPU, earlier, night, rules, tonight, verdict, with_query

OK = Verdict("n", "q5", CPU, Value.OK, "", Mode.PAIRED, 1)


def of(measured: Measured) -> tuple[float | None, float | None, Basis | None]:
    """The medians, and the basis, of the verdict on a query without noise that was learned."""
    said = verdict(with_query(night(), "q5", pairs=measured.pairs, basis=measured.basis))
    return said.candidate, said.baseline, said.basis


@pytest.mark.parametrize(
    ("pairs", "basis", "expected"),
    [
        ([(12, 9), (13, 10), (14, 11)], Basis.STEADY, (13, 10, Basis.STEADY)),
        ([(12, 9), (13, 10), (14, 11)], None, (13, 10, None)),
        ([(12, 9), (13, 10), (14, 11), (99, None)], None, (13, 10, None)),  # it is no pair
        ([(12, None)], Basis.STEADY, (12, None, Basis.STEADY)),
        ([(None, None)], Basis.STEADY, (None, None, None)),
    ],
)
def test_medians_are_of_complete_pairs(
    pairs: list[tuple[float | None, float | None]],
    basis: Basis | None,
    expected: tuple[float | None, float | None, Basis | None],
) -> None:
    made = tuple(Pair(number, *figures) for number, figures in enumerate(pairs, 1))
    assert of(Measured("q5", CPU, made, basis=basis)) == expected


def test_medians_are_of_the_pairs_of_all_rounds_that_were_read() -> None:
    some = tonight(1.3, fresh=1.2)
    said = verdict(some)
    (measured,) = (x for x in some.measured if x.query == "q5")
    assert (said.value, said.fresh_pairs) == (Value.REGRESSION, 10)
    assert (said.candidate, said.baseline) == measured.medians(2)
    assert (said.candidate, said.baseline) != measured.medians(1)


def test_a_verdict_counts_its_repetitions_and_the_suite_has_no_medians() -> None:
    by_query = {x.query: x for x in judge_night(tonight(1.0), earlier(), rules())}
    assert (by_query["q5"].pairs, by_query["q5"].repetitions) == (5, 5)
    suite = by_query[SUITE]
    assert (suite.candidate, suite.baseline, suite.basis) == (None, None, None)


@pytest.mark.parametrize(
    ("changes", "against"),
    [({}, ""), ({"baseline_build": "b"}, "b"), ({"baseline_run": "dag/run"}, "dag/run")],
)
def test_it_says_what_the_candidate_was_compared_with(
    changes: dict[str, str], against: str
) -> None:
    assert replace(OK, **changes).against == against  # type: ignore[arg-type]
