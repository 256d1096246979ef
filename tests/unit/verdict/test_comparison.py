"""The gate: red on a regression, a wrong result or a missing query; green only with grounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexmark.model import Value
from nexmark.verdict.bounds import BoundsArm, BoundsRepetition, judge
from nexmark.verdict.verdict import Verdict
from tests.unit.store.store_builder import by_bounds


@dataclass(frozen=True)
class Gate:
    version: int = 3
    metric: str = "cpu_s_per_mevent"
    queries: Mapping[str, float] = field(default_factory=dict)

    def bound(self, query: str, workload: str) -> float:
        return self.queries.get(query, {"smoke": 1.5}.get(workload, 1.1))


def arm(*figures: float | None, run: str = "tonight", shape: str = "s") -> BoundsArm:
    """Repetitions with these steady-state figures; the application figure is always 100."""
    repetitions = (BoundsRepetition(i, figure, 100.0) for i, figure in enumerate(figures, 1))
    return BoundsArm(run, shape, tuple(repetitions))


def base(*figures: float | None, shape: str = "s") -> BoundsArm:
    return arm(*figures, run="accepted", shape=shape)


def verdict(
    candidate: BoundsArm | None = None,
    baseline: BoundsArm | None = None,
    invalid: str | None = None,
    *,
    gate: Gate | None = None,
    workload: str = "nightly",
    repetitions: int = 1,
) -> Verdict:
    (only,) = judge(
        ["q5"],
        {"q5": candidate} if candidate else {},
        {"q5": baseline} if baseline else {},
        {"q5": invalid} if invalid else {},
        gate or Gate(),
        workload=workload,
        repetitions=repetitions,
    )
    return only


def figures_of(found: Verdict, *names: str) -> tuple[object, ...]:
    return tuple(getattr(found, name) for name in names)


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        (10.0, Value.OK),
        (11.0, Value.OK),
        (11.001, Value.REGRESSION),
        (9.1, Value.OK),
        (9.09, Value.FASTER),
        (500.0, Value.REGRESSION),
    ],
)
def test_the_bound_works_both_ways(figure: float, value: Value) -> None:
    assert verdict(arm(figure), base(10.0)).value is value


def test_medians_are_compared() -> None:
    found = verdict(arm(10, 10.2, 99), base(1, 10, 10.1))
    assert figures_of(found, "candidate", "baseline") == (10.2, 10)
    assert found.ratio == pytest.approx(1.02)
    assert found.value is Value.OK


def test_a_query_may_have_its_own_bound() -> None:
    gate = Gate(queries={"q5": 1.5})
    assert verdict(arm(14), base(10), gate=gate).value is Value.OK
    assert verdict(arm(14), base(10)).value is Value.REGRESSION


def test_a_workload_may_have_its_own_bound() -> None:
    assert verdict(arm(14), base(10), workload="smoke").value is Value.OK


def test_a_verdict_says_what_it_is_founded_on() -> None:
    found = verdict(arm(13, 13, 13), base(10))
    assert (
        found.reason == "10 -> 13 CPU-s per million events (steady): 1.300, above the bound of 1.1"
    )
    names = ("basis", "baseline_run", "bound", "repetitions")
    assert figures_of(found, *names) == ("steady", "accepted", 1.1, 3)
    assert (found.gate_version, found.metric) == (3, "cpu_s_per_mevent")


class TestBases:
    @pytest.mark.parametrize(
        ("candidate", "baseline"),
        [(arm(5, None), base(10)), (arm(5), base(10, None)), (arm(None), base(10))],
    )
    def test_a_repetition_without_steady_state_moves_both_to_the_application(
        self, candidate: BoundsArm, baseline: BoundsArm
    ) -> None:
        found = verdict(candidate, baseline)
        assert figures_of(found, "basis") == ("application",)
        assert (found.ratio, found.value) == (1.0, Value.OK)

    def test_without_a_common_basis_there_is_no_comparison(self) -> None:
        only_steady = BoundsArm("tonight", "s", (BoundsRepetition(1, 5.0, None),))
        only_application = BoundsArm("accepted", "s", (BoundsRepetition(1, None, 5.0),))
        found = verdict(only_steady, only_application)
        assert (found.value, found.ratio) == (Value.INVALID, None)
        assert "no basis in common" in found.reason


class TestNoGroundForGreen:
    def test_a_wrong_result_is_never_faster(self) -> None:
        found = verdict(arm(1), base(10), "q5: 3 rows are missing")
        assert (found.value, found.reason) == (Value.INVALID, "q5: 3 rows are missing")
        assert found.ratio is None

    def test_a_query_that_was_not_measured_is_missing(self) -> None:
        assert verdict(None, base(10)).value is Value.MISSING
        assert verdict(arm(), base(10)).value is Value.MISSING

    def test_fewer_repetitions_than_asked_are_missing(self) -> None:
        found = verdict(arm(10, 10), base(10), repetitions=3)
        assert (found.value, found.reason) == (Value.MISSING, "2 of 3 repetitions measured")

    @pytest.mark.parametrize("figure", [0.0, -1.0, float("nan"), float("inf")])
    def test_impossible_numbers_are_invalid_on_either_side(self, figure: float) -> None:
        assert verdict(arm(10, figure), base(10)).value is Value.INVALID
        found = verdict(arm(10), base(figure))
        assert found.value is Value.INVALID
        assert "repetition 1 of accepted" in found.reason

    def test_a_query_nobody_expected_is_judged_too(self) -> None:
        verdicts = judge(
            ["q1"], {"q1": arm(1), "q7": arm(1)}, {}, {"q3": "x"}, Gate(), workload="w"
        )
        assert [x.query for x in verdicts] == ["q1", "q3", "q7"]


class TestNothingToCompareWith:
    def test_without_a_baseline_the_query_is_calibrating(self) -> None:
        found = verdict(arm(10))
        assert (found.value, found.reason) == (Value.NO_BASELINE, "no accepted baseline")

    def test_a_baseline_of_another_shape_is_not_compared(self) -> None:
        found = verdict(arm(10), base(1, shape="other"))
        assert (found.value, found.ratio) == (Value.NO_BASELINE, None)
        assert "accepted was measured on another workload or cluster" in found.reason


class TestNight:
    @pytest.mark.parametrize(
        ("value", "red"),
        [
            (Value.OK, False),
            (Value.FASTER, False),
            (Value.NO_BASELINE, False),
            (Value.REGRESSION, True),
            (Value.INVALID, True),
            (Value.MISSING, True),
        ],
    )
    def test_one_query_decides(self, value: Value, red: bool) -> None:
        good = verdict(arm(10), base(10))
        assert (good.red, by_bounds("q7", value).red) == (False, red)


figures = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=5)


@settings(deadline=None, derandomize=True)
@given(candidate=figures, baseline=figures, factor=st.floats(1.21, 50))
def test_slowing_every_repetition_beyond_the_bound_squared_is_never_green(
    candidate: list[float], baseline: list[float], factor: float
) -> None:
    """From whatever was not yet FASTER, a slowdown by more than bound * bound is a REGRESSION."""
    before = verdict(arm(*candidate), base(*baseline))
    after = verdict(arm(*(x * factor for x in candidate)), base(*baseline))
    if before.value is not Value.FASTER:
        assert after.value is Value.REGRESSION
    assert after.ratio == pytest.approx((before.ratio or 0) * factor)


@settings(deadline=None, derandomize=True)
@given(candidate=figures, baseline=figures)
def test_swapping_the_arms_mirrors_the_verdict(
    candidate: list[float], baseline: list[float]
) -> None:
    mirror = {Value.REGRESSION: Value.FASTER, Value.FASTER: Value.REGRESSION, Value.OK: Value.OK}
    there = verdict(arm(*candidate), base(*baseline))
    back = verdict(arm(*baseline), base(*candidate))
    if abs((there.ratio or 0) - 1.1) > 1e-9 and abs((back.ratio or 0) - 1.1) > 1e-9:
        assert back.value is mirror[there.value]
