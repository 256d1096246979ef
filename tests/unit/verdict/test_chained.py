"""A baseline that moves neither makes nor hides a change of the candidate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from nexmark.verdict.change_points import ChangePoint, Ratio, dated_changes

NOISE = 0.02


def snapshots(
    levels: list[float], accepted: list[int], seed: int = 1, deviation: float | None = NOISE
) -> list[Ratio]:
    """Every night a new build of the level given; those ``accepted`` are the baseline after."""
    rng = np.random.default_rng(seed)
    nights, baseline = [], 0
    for number, level in enumerate(levels, 1):
        shift = level - ([0.0, *levels][baseline]) + float(rng.normal(0, NOISE))
        nights.append(Ratio(f"n{number}", f"b{number}", f"b{baseline}", shift, deviation))
        baseline = number if number in accepted else baseline
    return nights


def level(count: int, at: int, size: float) -> list[float]:
    """Log ratios of ``count`` nights; from number ``at`` on they are slower."""
    return [0.0 if number < at else size for number in range(1, count + 1)]


def names(found: list[ChangePoint]) -> list[str]:
    return [change.night for change in found]


@pytest.mark.parametrize("deviation", [NOISE, None])
def test_accepting_what_did_not_change_is_no_change(deviation: float | None) -> None:
    found = [
        dated_changes(snapshots([0.0] * 200, [30, 60, 110, 150], seed, deviation))
        for seed in range(100)
    ]
    assert sum(map(len, found)) <= 12  # of 400 acceptances


@pytest.mark.parametrize("accepted", [51, 52, 58, 80])
def test_a_change_is_dated_however_soon_it_is_accepted(accepted: int) -> None:
    (found,) = dated_changes(snapshots(level(120, 51, math.log(1.15)), [accepted]))
    assert found.night == "n51"
    assert found.index == 50
    assert found.ratio == pytest.approx(1.15, abs=0.03)


def test_what_is_worse_than_was_accepted_is_another_change() -> None:
    levels = [0.0] * 40 + [0.15] * 40 + [0.3] * 40
    assert names(dated_changes(snapshots(levels, [41]))) == ["n41", "n81"]


def test_a_fix_that_comes_back_to_the_old_baseline_is_a_change() -> None:
    nights = snapshots(level(60, 31, 0.2), [31])
    back = [replace(x, night=f"m{i}") for i, x in enumerate(snapshots([0.0] * 30, [], 2))]
    assert names(dated_changes([*nights, *back])) == ["n31", "m0"]


def test_a_build_that_was_never_compared_begins_anew() -> None:
    nights = snapshots([0.0] * 30, [])
    others = [replace(x, baseline="other", shift=x.shift + 0.5) for x in nights]
    assert dated_changes([*nights, *others]) == []


def test_another_workload_begins_anew() -> None:
    nights = snapshots([0.0] * 30, [])
    others = [replace(x, shape="large", shift=x.shift + 0.5) for x in nights]
    assert dated_changes([*nights, *others]) == []


def test_nothing_measured_is_left_out() -> None:
    nights = snapshots(level(60, 31, 0.2), [32])
    holes = [replace(x, shift=math.nan) if i in (5, 40) else x for i, x in enumerate(nights)]
    (found,) = dated_changes(holes)
    assert (found.night, found.index) == ("n31", 30)
    assert dated_changes([]) == []
