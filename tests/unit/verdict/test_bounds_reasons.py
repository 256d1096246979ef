"""What a verdict by bounds says: its reason, and which fact is said where there are several."""

from __future__ import annotations

import pytest

from nexmark.model import Mode, Value
from nexmark.verdict.bounds import BoundsArm, judge
from nexmark.verdict.verdict import Verdict
from tests.unit.verdict.test_comparison import Gate, arm, base

WHY = "repetition 2: the executor died"
SLOW = "the figures may be the source's"


def one(candidate: BoundsArm | None, baseline: BoundsArm | None = None, **facts: object) -> Verdict:
    options = {name: {"q5": said} for name, said in facts.items() if isinstance(said, str)}
    asked = facts.get("repetitions", 1)
    assert isinstance(asked, int)
    (only,) = judge(
        ["q5"],
        {"q5": candidate} if candidate else {},
        {"q5": baseline} if baseline else {},
        options.pop("invalid", {}),
        Gate(),
        workload="nightly",
        repetitions=asked,
        **options,
    )
    return only


def test_a_verdict_by_bounds_is_compared_with_a_run_and_no_build() -> None:
    found = one(arm(), base(10))
    assert (found.baseline_build, found.build) == ("", "")


@pytest.mark.parametrize(
    ("arms", "facts", "value", "reason"),
    [
        ((None, None), {}, Value.MISSING, "not measured"),
        ((None, None), {"missing": WHY}, Value.MISSING, f"not measured: {WHY}"),
        ((arm(), base(10)), {}, Value.MISSING, "not measured"),
        ((arm(), base(10)), {"repetitions": 0}, Value.MISSING, "not measured"),
        ((arm(9), base(9)), {"repetitions": 0}, Value.OK, None),
        (
            (arm(10), base(10)),
            {"repetitions": 2, "missing": WHY},
            Value.MISSING,
            f"1 of 2 repetitions measured: {WHY}",
        ),
        ((arm(10, 10), base(10)), {"repetitions": 2, "missing": WHY}, Value.OK, None),
        ((arm(10, 10, 10), base(10)), {"repetitions": 2}, Value.OK, None),
        ((arm(30), base(10)), {"source_bound": SLOW}, Value.SOURCE_BOUND, SLOW),
        ((arm(10), None), {"source_bound": SLOW}, Value.SOURCE_BOUND, SLOW),
        ((None, base(10)), {"source_bound": SLOW}, Value.MISSING, "not measured"),
        ((arm(10), base(10)), {"invalid": "wrong", "source_bound": SLOW}, Value.INVALID, "wrong"),
        ((arm(10), base()), {}, Value.NO_BASELINE, "no accepted baseline"),
        (
            (arm(10.0, 0.0), base(10)),
            {},
            Value.INVALID,
            "repetition 2 of tonight: 0.0 CPU-s per million events is not a measurement",
        ),
        (
            (arm(9.0), base(10.0)),
            {},
            Value.FASTER,
            "10 -> 9 CPU-s per million events (steady): 0.900, below 1/1.1",
        ),
        (
            (arm(10.5), base(10.0)),
            {},
            Value.OK,
            "10 -> 10.5 CPU-s per million events (steady): 1.050, within 1.1",
        ),
    ],
)
def test_the_first_fact_that_stands_against_a_comparison_is_the_reason(
    arms: tuple[BoundsArm | None, BoundsArm | None],
    facts: dict[str, object],
    value: Value,
    reason: str | None,
) -> None:
    found = one(*arms, **facts)
    assert found.value is value
    assert reason is None or found.reason == reason


def test_a_verdict_says_its_query_metric_mode_and_the_arms_it_had() -> None:
    found = one(arm(10, 10), base(10))
    assert (found.night, found.query, found.metric) == ("", "q5", "cpu_s_per_mevent")
    assert (found.mode, found.decides, found.red) == (Mode.BOUNDS, True, False)


@pytest.mark.parametrize(
    ("candidate", "baseline", "run", "repetitions"),
    [
        (None, base(10), "accepted", 0),
        (arm(10, 10), None, None, 2),
        (arm(10, 10), base(1, shape="other"), None, 2),  # it is not what was compared
        (arm(10), base(), None, 1),
        (arm(10), base(10), "accepted", 1),
    ],
)
def test_the_figures_name_the_baseline_that_was_compared(
    candidate: BoundsArm | None, baseline: BoundsArm | None, run: str | None, repetitions: int
) -> None:
    figures = one(candidate, baseline)
    assert figures is not None
    assert (figures.baseline_run, figures.repetitions, figures.bound) == (run, repetitions, 1.1)


def test_exactly_the_inverse_of_the_bound_is_not_faster() -> None:
    assert one(arm(1.0), base(1.1)).value is Value.OK
