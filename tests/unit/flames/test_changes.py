"""Changes are of CPU time, not of numbers of samples, and chance is not taken for a change."""

from __future__ import annotations

import pytest

from nexmark.flames.tree import MethodChange, Profile, compare, largest_changes

MAIN, WORK, SORT = ("main",), ("main", "a.Job.work"), ("main", "a.Job.work", "a.Sorter.sort")


def changes(
    baseline: dict[tuple[str, ...], int], candidate: dict[tuple[str, ...], int], *cpu: float
) -> dict[str, MethodChange]:
    compared = compare(Profile(baseline, cpu[0]), Profile(candidate, cpu[1]))
    return {change.frame: change for change in largest_changes(compared)}


def test_twice_the_samples_of_the_same_cpu_time_are_no_change() -> None:
    """A recorder that was held up sees less; what was measured from outside counts."""
    found = changes({WORK: 300, SORT: 100}, {WORK: 600, SORT: 200}, 40.0, 40.0)
    assert [change.change for change in found.values()] == pytest.approx([0, 0])
    assert not any(change.certain for change in found.values())


def test_an_extra_sort_is_first_with_its_part_of_the_baseline() -> None:
    found = changes({WORK: 400}, {WORK: 400, SORT: 100}, 40.0, 50.0)
    first = next(iter(found.values()))
    assert first.frame == "a.Sorter.sort"
    assert (first.baseline, first.candidate) == pytest.approx((0, 10))
    assert first.change == pytest.approx(0.25)
    assert first.certain
    assert found["a.Job.work"].change == pytest.approx(0)
    assert found["a.Job.work"].total_change == pytest.approx(0.25)
    assert str(first) == (
        "Sorter.sort: 0.00 -> 10.00 CPU-s per million events, +25.0 % of the baseline"
    )


def test_what_may_be_chance_says_so_and_comes_last() -> None:
    found = changes({WORK: 390, SORT: 9}, {WORK: 590, SORT: 13}, 40.0, 60.0)
    assert list(found) == ["a.Job.work", "a.Sorter.sort"]
    assert not found["a.Sorter.sort"].certain
    assert str(found["a.Sorter.sort"]).endswith(", within the noise of sampling")


def test_a_method_is_one_wherever_it_is_called_and_in_a_recursion_once() -> None:
    recursion = ("main", "a.Sorter.sort", "a.Job.work", "a.Sorter.sort")
    found = changes({SORT: 100}, {SORT: 100, recursion: 100}, 10.0, 20.0)
    assert found["a.Sorter.sort"].change == pytest.approx(1.0)
    assert found["a.Sorter.sort"].total_change == pytest.approx(1.0)


def test_ten_are_enough() -> None:
    many = {("main", f"a.B.m{number}"): number for number in range(1, 30)}
    assert len(changes(many, {MAIN: 1}, 1.0, 1.0)) == 10
