"""What a night learns from those before it: noise without changes, drift, a new baseline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nexmark.model import Value
from nexmark.verdict.measured_night import MeasuredNight
from nexmark.verdict.nightly import judge_night
from nexmark.verdict.verdict import Verdict
from tests.unit.verdict.gate_builder import (
    CALIBRATED,
    around,
    earlier,
    night,
    noisy,
    rules,
    tonight,
    verdict,
    with_query,
)


def test_confirmed_changes_are_not_learned_as_noise() -> None:
    before = list(map(list, earlier()))
    for number in range(2 * CALIBRATED):
        rng = np.random.default_rng(number)
        ratio = 1.2 + 0.05 * (number % 7)
        some = with_query(
            night(f"slow-{number}", seed=number),
            "q5",
            pairs=around(ratio, 5, rng),
            later=(around(ratio, 10, rng),),
        )
        before.append(judge_night(some, before, rules()))
    found = verdict(tonight(1.12, 1.10), before=before)
    assert found.value is Value.REGRESSION
    assert found.noise == pytest.approx(verdict(tonight(1.0)).noise, rel=0.2)


def nights(ratio: float, count: int) -> list[MeasuredNight]:
    rng = np.random.default_rng(23)
    return [
        with_query(quiet, "q5", pairs=around(ratio, 5, rng), later=(around(1.0, 10, rng),))
        for quiet in (night(f"later-{i}", seed=i) for i in range(count))
    ]


def judged(ratio: float, count: int) -> list[Verdict]:
    before = list(map(list, earlier()))
    for some in nights(ratio, count):
        before.append(judge_night(some, before, rules()))
    return [x for found in before[CALIBRATED:] for x in found if x.query == "q5"]


@pytest.mark.parametrize(("ratio", "way"), [(1.015, "slower"), (1 / 1.015, "faster")])
def test_a_small_change_that_stays_is_watched_within_weeks(ratio: float, way: str) -> None:
    found = judged(ratio, 14)
    assert found[0].value is Value.OK
    assert found[-1].value is Value.WATCH
    assert f"a little {way} night after night (drift" in found[-1].reason
    assert not any(x.red for x in found)


def test_a_new_baseline_ends_the_drift() -> None:
    before = list(map(list, earlier()))
    for some in nights(1.015, 14):
        before.append(judge_night(some, before, rules()))
    moved = replace(night(), baseline={"q5": "another build"})
    found = verdict(moved, before=before)
    assert found.value is Value.OK
    assert found.drift_slower == 0
    assert found.noise is not None  # the spread is kept


def test_a_new_baseline_keeps_the_spread_but_not_the_place() -> None:
    """As many nights 20 % up against the old build are no noise against the new one."""
    rng = np.random.default_rng(2)
    before = list(map(list, earlier()))
    for number in range(CALIBRATED):
        some = with_query(night(f"new-{number}", seed=number), "q5", pairs=noisy(1.2, 5, rng))
        some = replace(some, baseline={"q5": "x"})
        before.append(judge_night(some, before, rules()))
    found = verdict(replace(tonight(1.0), baseline={"q5": "x"}), before=before)
    assert found.noise is not None
    assert found.noise < 1.3 * (verdict(tonight(1.0)).noise or 0)
