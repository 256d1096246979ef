"""What an arm saves: the paired estimate, equal rows, and where the gain turns round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from nexmark.attribution.explained import Observed, Plan
from nexmark.experiments.arm_runs import ArmRun
from nexmark.experiments.gains import Gain, TrialResult, crossings, trial_result
from tests.unit.store.store_builder import measurement

ARMS = ("first", "second")


def run(arm: str, pair: int, cpu: float, digest: str = "d") -> ArmRun:
    one = measurement(steady=cpu, digest=digest)
    plan = Plan("scan", "scan", "0")
    observed = Observed(pair, 1, one.basis, 1000, one.cpu_s_per_mevent, one.wall_s, plan)
    return ArmRun(arm, pair, one, observed)


def trial(
    runs: Sequence[ArmRun],
    *,
    size: int = 1000,
    problems: Mapping[str, str] | None = None,
    comparable: bool = True,
    reference: str | None = "",
) -> TrialResult:
    return trial_result(
        "q5", size, runs, ARMS, problems or {}, comparable=comparable, reference=reference
    )


def of_gain(size: int, ratio: float, pairs: int = 4) -> TrialResult:
    """A trial in which the second arm takes `ratio` times the CPU of the first."""
    spread = [1.0, 1.02, 0.99, 1.01][:pairs]
    runs = [run("first", n, 10.0 * x) for n, x in enumerate(spread)]
    return trial([*runs, *(run("second", n, 10.0 * ratio) for n in range(pairs))], size=size)


def gain_of(result: TrialResult) -> Gain:
    found = result.arms[1].gain
    assert found is not None
    return found


def test_the_gain_is_of_pairs_with_an_interval_around_it() -> None:
    found = gain_of(of_gain(1000, 0.8))
    assert found.lo < found.share < found.hi
    assert found.share == pytest.approx(0.2, abs=0.02)
    assert found.is_certain
    assert gain_of(of_gain(1000, 1.25)).share == pytest.approx(-0.25, abs=0.03)


def test_a_change_within_the_spread_is_not_certain() -> None:
    assert not gain_of(of_gain(1000, 1.0)).is_certain


def test_two_pairs_are_too_few_to_be_certain() -> None:
    assert not gain_of(of_gain(1000, 0.5, pairs=2)).is_certain


def test_a_slow_pair_does_not_count_against_the_other_arm() -> None:
    """Both runs of a pair were slow: the host was, not the arm."""
    slow = [1.0, 3.0, 1.0, 1.0]
    runs = [run(arm, n, 10 * x) for n, x in enumerate(slow) for arm in ARMS]
    assert gain_of(trial(runs)).share == 0.0


def test_runs_of_different_bases_are_compared_on_the_one_that_all_have() -> None:
    """A run without a steady state has only the CPU of its whole life: 20 in the builder."""
    short = measurement(steady=None, digest="d")
    plan = Plan("scan", "scan", "0")
    observed = Observed(1, 1, short.basis, 1000, short.cpu_s_per_mevent, short.wall_s, plan)
    found = trial([run("first", 1, 10.0), ArmRun("second", 1, short, observed)])
    assert [arm.cpu_s_per_mevent for arm in found.arms] == [20.0, 20.0]
    assert gain_of(found).share == 0.0


def test_the_first_arm_has_no_gain() -> None:
    assert of_gain(1000, 0.8).arms[0].gain is None


def test_arms_with_other_rows_are_not_right() -> None:
    runs = [run("first", 1, 10.0), run("second", 1, 5.0, digest="other")]
    found = trial(runs)
    assert [arm.equal for arm in found.arms] == [True, False]
    assert not found.is_right
    assert trial([*runs[:1], run("second", 1, 5.0)]).is_right


def test_an_arm_whose_runs_differ_among_themselves_is_not_right() -> None:
    runs = [run("first", 1, 10.0), run("second", 1, 5.0), run("second", 2, 5.0, digest="other")]
    assert trial(runs).arms[1].equal is False


def test_rows_that_may_differ_are_not_compared() -> None:
    runs = [run("first", 1, 10.0), run("second", 1, 5.0, digest="other")]
    assert trial(runs, comparable=False).is_right


def test_a_wrong_reference_or_a_failed_arm_is_not_right() -> None:
    runs = [run(arm, 1, 10.0) for arm in ARMS]
    assert not trial(runs, reference="WRONG: 1 row missing").is_right
    failed = trial(runs[:1], problems={"second": "out of memory"})
    assert failed.arms[1].problem == "out of memory"
    assert not failed.is_right


def test_the_crossing_lies_between_the_sizes_around_it() -> None:
    (found,) = crossings([of_gain(1000, 1.25), of_gain(16_000, 0.8), of_gain(64_000, 0.5)])
    assert found.between == (1000, 16_000)
    assert found.size == pytest.approx(4000, rel=0.1)
    assert found.pays_above
    assert found.is_certain


def test_a_gain_that_only_grows_has_no_crossing() -> None:
    assert crossings([of_gain(1000, 0.9), of_gain(16_000, 0.5)]) == []


def test_a_crossing_of_uncertain_gains_says_so() -> None:
    (found,) = crossings([of_gain(1000, 1.25), of_gain(16_000, 0.99)])
    assert not found.is_certain
