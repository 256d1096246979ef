"""Change points: lasting changes are dated, and noise and wild nights are none."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexmark.verdict.change_points import ChangePoint, change_points

NOISE = 0.02
DATA = Path(__file__).parents[2] / "data/change_points"
MANY = settings(max_examples=60, deadline=None, derandomize=True)


def series(shifts: np.ndarray, deviation: float | None = NOISE) -> list[ChangePoint]:
    return change_points([(f"n{i}", float(x), deviation) for i, x in enumerate(shifts)])


def noise(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, NOISE, count)


def stepped(count: int, at: int, size: float, seed: int = 1, end: int | None = None) -> np.ndarray:
    shifts = noise(count, seed)
    shifts[at:end] += size
    return shifts


@pytest.mark.parametrize("deviation", [NOISE, None])
def test_noise_has_no_change_points(deviation: float | None) -> None:
    """The rate in the module's docstring: below 1 % of series of 400 nights."""
    found = [bool(series(noise(400, seed), deviation)) for seed in range(200)]
    assert sum(found) <= 2


def test_noise_with_spikes_has_hardly_any() -> None:
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(150):
        spikes = (rng.random(120) < 0.02) * rng.exponential(0.3, 120)
        found += bool(series(rng.normal(0, NOISE, 120) + spikes, None))
    assert found <= 3


@pytest.mark.parametrize("deviation", [NOISE, None])
def test_a_step_of_two_noise_units_is_found_15_nights_later(deviation: float | None) -> None:
    near = found = 0
    for seed in range(100):
        points = series(stepped(100, 85, 2 * NOISE, seed), deviation)
        found += len(points) == 1
        near += any(abs(point.index - 85) <= 2 for point in points)
    assert found >= 97
    assert near >= 88


def test_a_large_step_is_dated_to_the_night_and_told_in_full() -> None:
    (found,) = series(stepped(60, 40, math.log(1.15)))
    assert (found.index, found.night) == (40, "n40")
    assert found.before == pytest.approx(1.0, abs=0.01)
    assert found.after == pytest.approx(1.15, abs=0.015)
    assert found.ratio == pytest.approx(found.after / found.before)
    assert found.confidence > 0.999


def test_a_slowdown_that_was_repaired_has_two_dates() -> None:
    points = series(stepped(120, 50, 3 * NOISE, end=70))
    assert [point.index for point in points] == [50, 70]
    assert points[0].ratio > 1 > points[1].ratio
    assert points[0].after == points[1].before


def test_a_step_is_known_within_a_week_if_it_is_large() -> None:
    (found,) = series(stepped(60, 55, 5 * NOISE))
    assert found.index == 55


@pytest.mark.parametrize("place", [0, 1, 30, 58, 59])
@pytest.mark.parametrize("size", [0.3, -0.3, 5.0])
def test_one_wild_night_is_no_change(place: int, size: float) -> None:
    shifts = noise(60, 3)
    shifts[place] += size
    assert series(shifts) == []
    assert series(shifts, None) == []


@pytest.mark.parametrize("place", [0, 30, 58])
def test_nor_are_two_in_a_row(place: int) -> None:
    shifts = noise(60, 3)
    shifts[place : place + 2] += 1.0
    assert series(shifts) == []


def test_a_wild_night_does_not_move_the_date_of_a_change() -> None:
    shifts = stepped(60, 40, 5 * NOISE)
    shifts[37] += 0.5
    shifts[42] -= 0.5
    assert [point.index for point in series(shifts)] == [40]


def test_nights_count_by_how_well_they_are_known() -> None:
    """What would be a step of 5 noise units is none where these nights are that uncertain."""
    shifts = stepped(60, 50, 5 * NOISE)
    sure = [(f"n{i}", float(x), NOISE) for i, x in enumerate(shifts)]
    unsure = [(n, x, 5 * NOISE if i >= 50 else NOISE) for i, (n, x, _) in enumerate(sure)]
    assert len(change_points(sure)) == 1
    assert change_points(unsure) == []


def test_deviations_that_are_too_small_are_not_believed() -> None:
    assert [x for seed in range(20) for x in series(noise(200, seed), NOISE / 5)] == []


def test_nights_without_a_shift_are_left_out_and_the_others_keep_their_place() -> None:
    shifts = stepped(60, 40, 5 * NOISE)
    shifts[[3, 20, 39]] = math.nan
    assert [(point.index, point.night) for point in series(shifts)] == [(40, "n40")]


def test_a_night_whose_deviation_is_not_known_has_that_of_the_others() -> None:
    nights = [(f"n{i}", float(x), NOISE) for i, x in enumerate(stepped(60, 40, 5 * NOISE))]
    mixed = [(n, x, d if i % 3 else None) for i, (n, x, d) in enumerate(nights)]
    assert change_points(mixed) == change_points(nights)


def test_a_series_that_is_too_short_or_never_moves_has_none() -> None:
    assert series(np.array([0.0, 0.0, 0.5, 0.5, 0.5])) == []
    assert series(np.zeros(50), None) == []
    assert series(np.full(50, 0.3)) == []
    assert change_points([]) == []


def found_in(values: Sequence[float]) -> list[int]:
    return [point.index for point in series(np.log(np.asarray(values)), None)]


@pytest.mark.parametrize(
    ("values", "starts"),
    [
        ([10] * 10 + [20] * 10 + [15] * 10, [10, 20]),
        ([1000] * 8 + [1100] * 8 + [1210] * 8 + [1331] * 8, [8, 16, 24]),
        ([1000] * 8 + [5000] + [1000] * 8 + [1100] * 8, [17]),
        ([10] * 4 + [11] * 4 + [10] * 8, []),  # twice two nights at most, and it came back
        ([10] * 8 + [11] * 3, [8]),
        ([10] * 10 + [11] + [20] * 10, [11]),  # a wild night is in the level that is nearer
        ([10] * 10 + [18] + [20] * 10, [10]),
    ],
)
@pytest.mark.parametrize("noise_of", [0.0, 1e-9, 1e-6])
def test_levels_are_found_wherever_they_are_among_the_others(
    values: list[int], starts: list[int], noise_of: float
) -> None:
    noisy = np.random.default_rng(1).normal(0, noise_of, len(values))
    assert [point.index for point in series(np.log(values) + noisy, None)] == starts


@st.composite
def staircases(draw: st.DrawFn) -> tuple[np.ndarray, list[int]]:
    """Levels of a grid of 2,000, rounded, with an outlier in some; and where they change."""
    digits = draw(st.integers(1, 4))
    parts, starts, at = list[np.ndarray](), list[int](), 0
    for level in draw(st.lists(st.integers(0, 2000), min_size=1, max_size=6)):
        count = draw(st.integers(16, 30))
        part = np.full(count, round(level / 1000, digits))
        if parts and abs(part[0] - np.median(parts[-1])) > 1e-6:
            starts.append(at)
        if outlier := draw(st.none() | st.integers(-5, 5)):
            part[draw(st.integers(4, count - 5))] += round(outlier * 0.37, digits)
        parts.append(part)
        at += count
    return np.concatenate(parts), starts


@MANY
@given(staircases())
def test_steps_without_noise_are_all_dated_to_the_night(
    made: tuple[np.ndarray, list[int]],
) -> None:
    shifts, starts = made
    for noisy in (shifts, shifts + np.random.default_rng(1).normal(0, 1e-9, len(shifts))):
        assert [point.index for point in series(noisy, None)] == starts


@MANY
@given(staircases(), st.floats(0.01, 0.1), st.floats(-3, 3))
def test_a_level_or_a_scale_for_all_nights_moves_no_date(
    made: tuple[np.ndarray, list[int]], scale: float, level: float
) -> None:
    shifts, starts = made
    assert [point.index for point in series(shifts * scale + level, None)] == starts


@pytest.mark.parametrize("grid", [0.5, 1.0, 2.0, 2.5, 3.0, 4.0, 6.0])
@pytest.mark.parametrize("deviation", [NOISE, NOISE / 50, None])
def test_rounded_noise_has_no_more_change_points_than_noise(
    grid: float, deviation: float | None
) -> None:
    """To steps from half a deviation to six: from figures that all differ to hardly any."""
    step = grid * NOISE
    found = [
        bool(series(np.round((noise(100, seed) + seed / 60 * step) / step) * step, deviation))
        for seed in range(60)
    ]
    assert sum(found) <= 1


def test_series_of_other_projects_have_the_changes_that_they_had() -> None:
    def read(name: str) -> list[float]:
        return list(json.loads((DATA / f"{name}.json").read_text()))

    assert found_in(read("tigerbeetle")) == [15, 61, 71, 95, 117, 131, 192, 212]
    assert found_in(read("real")) == []
    once = read("robust")
    assert [len(found_in(once * times)) for times in (2, 3, 7)] == [9, 14, 34]


def test_a_year_of_nights_takes_milliseconds() -> None:
    shifts = stepped(400, 200, 2.0)
    begin = time.process_time()
    for _ in range(5):
        series(shifts)
    assert (time.process_time() - begin) / 5 < 0.1
