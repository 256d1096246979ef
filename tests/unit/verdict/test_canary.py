"""The canary: a host that cannot be trusted gives no verdict, or none by the clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from nexmark.model import Value
from nexmark.verdict.eligibility import Steadiness, grade
from nexmark.verdict.measured_night import Canary, MeasuredNight
from nexmark.verdict.nightly import going_on, judge_night, replay
from nexmark.verdict.verdict import Verdict
from tests.unit.verdict.gate_builder import (
    CPU,
    around,
    earlier,
    night,
    quiet_nights,
    rules,
    tonight,
    verdict,
    with_query,
)

WALL = "wall_s"


def timing(after: float, **where: str) -> Canary:
    return Canary("cpu_s", (1.0,), (after,), **where)


@pytest.mark.parametrize(
    ("canaries", "expected"),
    [
        ([], Steadiness.STEADY),
        ([timing(1.0)], Steadiness.STEADY),
        ([timing(1.049)], Steadiness.STEADY),
        ([timing(1.06)], Steadiness.UNSTEADY),
        ([timing(1 / 1.06)], Steadiness.UNSTEADY),
        ([timing(1.49)], Steadiness.UNSTEADY),
        ([timing(1.51)], Steadiness.BROKEN),
        ([timing(1 / 1.51)], Steadiness.BROKEN),
        ([timing(1.0), timing(1.6, host="nexmark02")], Steadiness.BROKEN),
        ([Canary("cpu_s", (1.0,), ())], Steadiness.STEADY),
        ([Canary("cpu_s", (1.0, 1.0, 9.0), (1.0, 9.0, 1.0))], Steadiness.STEADY),
        ([timing(math.nan)], Steadiness.BROKEN),
        ([timing(0.0)], Steadiness.BROKEN),
        ([Canary("steal_percent", (0.0,), (4.0,))], Steadiness.STEADY),
        ([Canary("steal_percent", (0.0,), (6.0,))], Steadiness.UNSTEADY),
        ([Canary("load_1m", (0.0,), (40.0,))], Steadiness.STEADY),
        ([Canary("psi_cpu", (math.nan,), (0.0,))], Steadiness.BROKEN),
    ],
)
def test_the_worst_reading_grades_the_night(canaries: list[Canary], expected: Steadiness) -> None:
    found = grade(canaries, rules())
    assert found.steadiness is expected
    assert bool(found.reason) == (expected is not Steadiness.STEADY)


def test_levels_of_the_host_may_be_nothing_and_timings_may_not() -> None:
    """Of a timing 0 is no measurement."""
    for level in ("steal_percent", "psi_cpu", "load_1m", "throttled_ms", "mhz_min", "freq_max"):
        assert grade([Canary(level, (0.0,), (0.0,))], rules()).steadiness is Steadiness.STEADY
    for timing_of in ("cpu_s", "wall_s", "fsync_ms", "memory_s"):
        found = grade([Canary(timing_of, (0.0,), (0.0,))], rules())
        assert found.steadiness is Steadiness.BROKEN


def test_what_waits_for_a_disk_or_a_turn_breaks_no_host() -> None:
    for waiting in ("wall_spin_s", "fsync_ms"):
        found = grade([Canary(waiting, (1.0,), (9.0,))], rules())
        assert found.steadiness is Steadiness.UNSTEADY


def test_a_broken_host_makes_a_night_invalid() -> None:
    slow = with_query(night(), "q5", pairs=around(1.5, 5, np.random.default_rng(1)))
    broken = replace(slow, canary=(timing(1.7, host="nexmark02"),))
    found = judge_night(broken, earlier(), rules())
    assert {x.value for x in found} == {Value.INVALID}
    assert found[0].reason == (
        "canary cpu_s on nexmark02: before and after are 70.0% apart, more than 50%"
    )
    assert going_on(broken, earlier(), rules(), 2) == []


def test_the_canary_of_the_night_counts_for_queries_with_one_of_their_own() -> None:
    canaries = (timing(1.7, host="nexmark02"), timing(1.0, host="nexmark02", group="first"))
    broken = replace(night(), canary=canaries, groups={"q5": "first"})
    assert verdict(broken).value is Value.INVALID
    assert verdict(replace(broken, canary=canaries[1:])).value is Value.OK


def test_an_unsteady_host_widens_the_noise_by_what_the_canary_saw() -> None:
    usual = verdict(night())
    found = verdict(replace(night(), canary=(timing(1.2, host="nexmark02"),)))
    added = 0.33 * (math.log(1.2) - math.log(1.05))
    assert (found.value, found.red) == (Value.OK, False)
    assert usual.noise is not None
    assert found.noise == pytest.approx(math.hypot(usual.noise, added))
    assert found.mde is not None
    assert found.mde > 2 * (usual.mde or 0)
    assert found.reason.endswith(
        f"noise {usual.noise:.1%} widened to {found.noise:.1%}: canary cpu_s on nexmark02: "
        "before and after are 20.0% apart, more than 5%"
    )


def test_a_change_that_an_unsteady_host_could_have_made_is_no_regression() -> None:
    slower = tonight(1.07, 1.07)
    assert verdict(slower).value is Value.REGRESSION
    found = verdict(replace(slower, canary=(timing(1.3),)))
    assert found.value is not Value.REGRESSION
    assert not found.red


def test_a_change_beyond_an_unsteady_host_is_a_regression() -> None:
    unsteady = replace(tonight(1.5, 1.5), canary=(timing(1.2),))
    assert verdict(unsteady).value is Value.REGRESSION


def test_the_numbers_of_an_invalid_night_are_shown_but_not_learned_from() -> None:
    found = verdict(replace(night(), canary=(timing(1.6),)))
    assert found.ratio == pytest.approx(1.0)
    assert found.shift is None


@pytest.mark.parametrize(
    ("after", "expected"),
    [(1.09, Steadiness.STEADY), (1.11, Steadiness.UNSTEADY), (9.0, Steadiness.UNSTEADY)],
)
def test_a_disk_that_others_use_leaves_cpu_time_its_verdict(
    after: float, expected: Steadiness
) -> None:
    disk = Canary("fsync_s", (1.0,), (after,))
    assert grade([disk], rules()).steadiness is expected
    assert verdict(replace(night(), canary=(disk,))).value is Value.OK


@pytest.mark.parametrize(
    ("metric", "after", "expected"),
    [
        ("cpu_s", 1.51, Steadiness.BROKEN),
        ("cpu_memory_s", 1.49, Steadiness.STEADY),
        ("cpu_memory_s", 1.51, Steadiness.UNSTEADY),
        ("cpu_memory_s", 3.99, Steadiness.UNSTEADY),
        ("cpu_memory_s", 4.01, Steadiness.BROKEN),
        ("cpu_memory_s", 1 / 4.01, Steadiness.BROKEN),
    ],
)
def test_memory_that_neighbours_use_too_has_a_bound_of_its_own(
    metric: str, after: float, expected: Steadiness
) -> None:
    assert grade([Canary(metric, (1.0,), (after,))], rules()).steadiness is expected


def wall_too(some: MeasuredNight) -> MeasuredNight:
    walls = tuple(replace(x, metric=WALL) for x in some.measured)
    return replace(some, measured=(*some.measured, *walls))


def test_an_unsteady_host_withholds_the_clock_and_leaves_cpu_time() -> None:
    before = earlier(15, (CPU, WALL))
    unsteady = replace(wall_too(night()), canary=(timing(1.07),))
    assert verdict(unsteady, before=before).value is Value.OK
    wall = verdict(unsteady, metric=WALL, before=before)
    assert (wall.value, wall.red) == (Value.INVALID, False)
    assert "7.0% apart" in wall.reason


@pytest.mark.parametrize(
    ("metric", "canary", "expected"),
    [
        ("restore_s", "fsync_s", Value.OK),
        ("commit_ms_p50", "fsync_s", Value.INVALID),
        ("restore_s", "wall_spin_s", Value.INVALID),
        ("restore_s", "cpu_s", Value.INVALID),
    ],
)
def test_a_disk_that_others_use_leaves_the_restore_its_verdict_and_not_the_commit(
    metric: str, canary: str, expected: Value
) -> None:
    some = night()
    recovered = tuple(replace(x, metric=metric) for x in some.measured)
    unsteady = Canary(canary, (1.0,), (1.3,))
    some = replace(some, measured=(*some.measured, *recovered), canary=(unsteady,))
    assert verdict(some, metric=metric, before=earlier(15, (CPU, metric))).value is expected


def test_an_unsteady_fsync_widens_the_noise_of_a_restore_and_not_of_cpu_time() -> None:
    disk = Canary("fsync_s", (1.0,), (1.3,))
    nights = quiet_nights(15, (CPU, "restore_s"))
    before = list(replay(nights, rules(metric="restore_s")))
    some = night(metric="restore_s")
    usual = judged_by_restore(some, before)
    found = judged_by_restore(replace(some, canary=(disk,)), before)
    added = 0.33 * (math.log(1.3) - math.log(1.1))
    assert usual.noise is not None
    assert found.noise == pytest.approx(math.hypot(usual.noise, added))
    assert found.reason.endswith("canary fsync_s: before and after are 30.0% apart, more than 10%")
    assert verdict(replace(night(), canary=(disk,))).noise == verdict(night()).noise


def judged_by_restore(some: MeasuredNight, before: Sequence[Sequence[Verdict]]) -> Verdict:
    found = judge_night(some, before, rules(metric="restore_s"))
    (only,) = [x for x in found if (x.query, x.metric) == ("q5", "restore_s")]
    return only


def test_an_unsteady_host_leaves_the_size_of_the_state() -> None:
    metrics = (CPU, "state_bytes_max")
    some = night()
    states = tuple(replace(x, metric="state_bytes_max") for x in some.measured)
    unsteady = replace(some, measured=(*some.measured, *states), canary=(timing(1.07),))
    found = verdict(unsteady, metric="state_bytes_max", before=earlier(15, metrics))
    assert found.value is Value.OK


def test_a_canary_of_a_group_speaks_for_its_queries_only() -> None:
    groups = {"q5": "joins"}
    broken = replace(night(), canary=(timing(1.6, group="joins"),), groups=groups)
    assert verdict(broken, "q5").value is Value.INVALID
    assert verdict(broken, "q1").value is Value.OK


AGAIN = "round_2"
"""The group of the second round."""


def while_confirmed(some: MeasuredNight, *canaries: Canary) -> MeasuredNight:
    """The night with a canary around its first pairs, too, which is steady."""
    groups = {one.query: one.query for one in some.measured}
    steady = (timing(1.0, group=one.query) for one in some.measured)
    return replace(some, canary=(*steady, *canaries), groups=groups)


@pytest.mark.parametrize(("ratio", "way", "red"), [(1.5, "slower", True), (0.6, "faster", False)])
def test_a_round_on_a_host_that_broke_confirms_nothing(ratio: float, way: str, red: bool) -> None:
    """What is beyond its bound stays a suspect; its first pairs, on a steady host, are known."""
    changed = tonight(ratio, ratio)
    assert verdict(while_confirmed(changed)).value in (Value.REGRESSION, Value.FASTER)
    broken = while_confirmed(changed, timing(1.7, host="nexmark02", group=AGAIN))
    found = verdict(broken)
    assert (found.value, found.red, found.fresh_pairs) == (Value.SUSPECT, red, 0)
    assert found.ratio == pytest.approx(ratio)
    assert found.reason.startswith(f"{way}? ratio {ratio:.3f} (")
    assert found.reason.endswith(
        "; the pairs of round 2 say nothing: canary cpu_s on nexmark02: before and after are "
        "70.0% apart, more than 50%"
    )
    assert going_on(broken, earlier(), rules(), 2) == ["q5"]


def test_a_busy_host_in_a_later_round_makes_no_red_night_of_a_query_that_only_looked_slower() -> (
    None
):
    """Its evidence took it to the next round, and would not have made it red."""
    slower = tonight(1.025, 1.0)
    busy = while_confirmed(slower, timing(1.7, group=AGAIN))
    assert going_on(busy, earlier(), rules(), 2) == ["q5"]
    found = verdict(busy)
    assert (found.value, found.red) == (Value.OK, False)


def test_a_host_that_broke_in_a_later_round_leaves_the_other_queries_their_verdicts() -> None:
    changed = tonight(1.5, 1.5)
    broken = while_confirmed(changed, timing(1.7, group=AGAIN))
    usual, found = (judge_night(each, earlier(), rules()) for each in (changed, broken))
    values = [[x.value for x in own if x.query not in ("q5", "suite")] for own in (usual, found)]
    assert values[0] == values[1] == [Value.OK] * 11
    quiet = while_confirmed(night(), timing(1.7, group=AGAIN))
    assert judge_night(quiet, earlier(), rules()) == judge_night(
        while_confirmed(night()), earlier(), rules()
    )


def test_what_was_not_measured_on_is_a_suspect_whatever_the_host_did() -> None:
    changed = tonight(1.5)
    assert verdict(while_confirmed(changed, timing(1.7, group=AGAIN))).value is Value.SUSPECT


def test_a_change_that_an_unsteady_host_could_have_made_in_a_later_round_is_no_regression() -> None:
    slower = tonight(1.07, 1.07)
    usual = verdict(while_confirmed(slower))
    assert usual.value is Value.REGRESSION
    found = verdict(while_confirmed(slower, timing(1.3, group=AGAIN)))
    assert (found.value, found.red) == (Value.UNDECIDED, False)
    assert (found.shift, found.noise) == (usual.shift, usual.noise)
    assert found.reason.endswith(
        "noise of all pairs widened: canary cpu_s: before and after are 30.0% apart, more than 5%"
    )
    large = while_confirmed(tonight(1.5, 1.5), timing(1.2, group=AGAIN))
    assert verdict(large).value is Value.REGRESSION


def test_a_disk_that_others_used_in_a_later_round_leaves_cpu_time_its_verdict() -> None:
    disk = Canary("fsync_s", (1.0,), (9.0,), group=AGAIN)
    suspect = tonight(1.5, 1.5)
    found, usual = (verdict(while_confirmed(suspect, *x)) for x in ((disk,), ()))
    assert found == usual


def test_a_host_that_differs_from_other_nights_but_not_within_this_one_is_steady() -> None:
    assert verdict(replace(night(), canary=(Canary("cpu_s", (9.0,), (9.1,)),))).value is Value.OK
