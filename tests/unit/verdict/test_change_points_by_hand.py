"""What is said of a change, and the noise that it is held against, by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import pytest

from nexmark.verdict.change_points import ChangePoint, Ratio, change_points, dated_changes


def found(
    shifts: Sequence[float], deviations: Sequence[float | None] | None = None
) -> list[ChangePoint]:
    given = deviations or [None] * len(shifts)
    return change_points(
        [(f"n{i}", x, y) for i, (x, y) in enumerate(zip(shifts, given, strict=True))]
    )


def confidence(step: float, before: Sequence[float], after: Sequence[float]) -> float:
    """By the deviations of the nights: a median of n is as sure as a mean of 2 n / pi."""
    sides = (before, after)
    variance = sum(sum(x**2 for x in own) / len(own) * math.pi / 2 / len(own) for own in sides)
    nights = len(before) + len(after)
    return 1 - math.erfc(step / math.sqrt(2 * variance)) * (nights - 1)


LOW, HIGH = [0.0, 0.01, 0.02, 0.03], [0.1, 0.11, 0.12, 0.13]


def test_a_change_is_told_by_the_medians_of_all_nights_on_both_sides() -> None:
    (one,) = found(LOW + HIGH, [0.02] * 8)
    assert (one.index, one.last, one.night) == (4, 3, "n4")
    assert (one.before, one.after) == pytest.approx((math.exp(0.015), math.exp(0.115)))
    assert one.ratio == pytest.approx(math.exp(0.1))
    assert one.confidence == pytest.approx(confidence(0.1, [0.02] * 4, [0.02] * 4), abs=1e-12)


def test_nights_without_a_shift_are_no_neighbours() -> None:
    (one,) = found([*LOW, math.nan, math.inf, *HIGH], [0.02] * 10)
    assert (one.index, one.last) == (6, 3)


def test_six_nights_tell_their_noise_and_five_do_not() -> None:
    assert [x.index for x in found([0.0] * 3 + [0.5] * 3, [0.02] * 6)] == [3]
    assert found([0.0] * 2 + [0.5] * 3, [0.02] * 5) == []


@pytest.mark.parametrize("none", [0.0, -1.0, math.inf, math.nan])
def test_what_is_no_deviation_is_as_none(none: float) -> None:
    known = [0.02, 0.03, None, 0.02, 0.02, None, 0.03, 0.02]
    given = [none if x is None else x for x in known]
    assert found(LOW + HIGH, given) == found(LOW + HIGH, known)
    (one,) = found(LOW + HIGH, known)
    noise = [0.02 if x is None else x for x in known]
    expected = confidence(0.1, noise[:4], noise[4:])
    assert one.confidence == pytest.approx(expected, abs=1e-12)


def test_deviations_are_widened_where_successive_nights_differ_by_more() -> None:
    """Each against its own: here by 0.06 in deviations of 0.01 and, most of them, of 0.02."""
    shifts = [0.06, 0.0] * 5 + [0.18, 0.12] * 14 + [0.18, 0.17]
    given = [0.01] * 10 + [0.02] * 30
    apart = sorted(
        abs(shifts[i + 1] - shifts[i]) / math.hypot(given[i], given[i + 1]) for i in range(39)
    )
    noise = [x * 1.4826 * apart[19] for x in given]
    step = median(shifts[10:]) - median(shifts[:10])
    (one,) = found(shifts, given)
    assert one.confidence == pytest.approx(confidence(step, noise[:10], noise[10:]), abs=1e-12)


def test_without_deviations_the_difference_of_successive_nights_is_the_noise() -> None:
    shifts = [0.0, 0.06] * 10 + [0.15, 0.21] * 10
    noise = 1.4826 * 0.06 / math.sqrt(2)
    (one,) = found(shifts)
    assert one.confidence == pytest.approx(confidence(0.15, [noise] * 20, [noise] * 20), abs=1e-12)


def test_a_fifth_of_nights_that_differ_are_levels_and_their_step_is_rounded() -> None:
    """Two of ten differences, the smaller is the grid."""
    first, second = found([0.0] * 5 + [1.0] * 4 + [2.5] * 4)[:2]
    assert (first.index, second.index) == (5, 9)
    noise = math.sqrt(1 / 12)
    assert first.confidence == pytest.approx(confidence(1.0, [noise] * 5, [noise] * 4), abs=1e-12)


@pytest.mark.parametrize(("wild", "changes"), [(4, []), (5, [10, 15])])
def test_it_takes_five_wild_nights_in_a_row_to_be_a_level_that_ends(
    wild: int, changes: list[int]
) -> None:
    shifts = [0.0] * 10 + [1.0] * wild + [0.0] * 10
    assert [x.index for x in found(shifts, [0.02] * len(shifts))] == changes


@pytest.mark.parametrize(("step", "changes"), [(1.77, []), (1.82, [10])])
def test_a_change_has_to_explain_sixteen_squared_deviations(
    step: float, changes: list[int]
) -> None:
    """Ten nights on each side of one level, half a step away: 5 squared steps, 15.7 or 16.6."""
    shifts = [0.0] * 10 + [0.02 * step] * 10
    assert [x.index for x in found(shifts, [0.02] * 20)] == changes


def test_each_series_has_its_own_changes_and_indices_into_all_nights() -> None:
    """Of two workloads in turns; some nights measured nothing."""
    nights = []
    for number in range(20):
        shift = math.nan if number == 3 else 0.5 if number >= 10 else 0.0
        nights.append(Ratio(f"l{number}", f"b{number}", "a", shift, 0.02, "large"))
        shift = -0.25 if number >= 12 else 0.25
        nights.append(Ratio(f"s{number}", f"b{number}", "a", shift, 0.02, "small"))
    changes = dated_changes(nights)
    assert [(x.night, x.index, x.last) for x in changes] == [("l10", 20, 18), ("s12", 25, 23)]
    assert changes[0].before == pytest.approx(1.0)
    assert changes[1].before == pytest.approx(math.exp(0.25))
