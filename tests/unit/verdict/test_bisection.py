"""Bisection names the build that brought a slowdown, and does not believe a single answer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench import bisection as bisection_simulation
from bench.bisection import deviation, main, simulate
from bench.simulated_nights import World
from nexmark.verdict.bisection import CONFIDENCE, Bisection
from nexmark.verdict.location import hodges_lehmann

BUILDS = tuple(f"b{number:02}" for number in range(17))
SIZE = math.log(1.10)
SHARP = 0.002


def search(**changes: float) -> Bisection:
    options = {"size": SIZE, "noise": 0.005} | changes
    return Bisection(BUILDS, **options)


def run(some: Bisection, first_bad: int, skipped: tuple[str, ...] = ()) -> Bisection:
    """Answer exactly until nothing more is asked; builds in ``skipped`` cannot be measured."""
    while (build := some.next()) is not None:
        if build in skipped:
            some.skip(build)
            continue
        some.observe(build, SIZE if BUILDS.index(build) >= first_bad else 0.0, SHARP)
        assert some.measurements < 50
    return some


@pytest.mark.parametrize("first_bad", range(1, len(BUILDS)))
def test_every_build_can_be_the_first_bad_one(first_bad: int) -> None:
    found = run(search(), first_bad)
    assert found.found == found.credible == (BUILDS[first_bad],)
    assert found.posterior[BUILDS[first_bad]] >= CONFIDENCE
    assert found.measurements <= 8


def test_at_first_all_but_the_good_build_are_equally_probable() -> None:
    posterior = search().posterior
    assert posterior["b00"] == 0.0
    assert [posterior[build] for build in BUILDS[1:]] == pytest.approx([1 / 16] * 16)
    assert search().found == ()
    assert search().next() == "b08"


def test_next_to_each_other_nothing_has_to_be_measured() -> None:
    assert Bisection(("good", "bad"), 0.1, 0.01).found == ("bad",)
    assert Bisection(("good", "bad"), 0.1, 0.01).next() is None


def test_a_noisy_answer_moves_less_than_a_sharp_one() -> None:
    noisy, sharp = search(), search()
    noisy.observe("b08", SIZE, 0.1)
    sharp.observe("b08", SIZE, 0.005)
    upper = [sum(x.posterior[build] for build in BUILDS[9:]) for x in (noisy, sharp)]
    assert upper[0] > 0.25
    assert upper[1] < 0.02


def test_one_wrong_answer_is_outvoted() -> None:
    found = search()
    found.observe("b08", 0.0, SHARP)  # it is bad: the first bad one is b05
    assert run(found, 5).found == ("b05",)


def test_builds_that_cannot_be_measured_leave_a_range() -> None:
    assert run(search(), 8, skipped=("b07", "b08")).found == ("b07", "b08", "b09")
    assert run(search(), 12, skipped=("b07", "b08")).found == ("b12",)


def test_without_any_build_between_the_answer_is_all_of_them() -> None:
    found = search()
    for build in BUILDS[1:-1]:
        found.skip(build)
    assert found.next() is None
    assert found.found == BUILDS[1:]


def test_a_build_measured_before_it_went_still_tells_its_sides_apart() -> None:
    found = search()
    found.observe("b08", SIZE, SHARP)
    found.skip("b08")
    assert run(found, 8).found == ("b08",)


def test_a_size_that_is_not_known_is_measured_first() -> None:
    found = search(noise=SIZE)
    assert found.next() == BUILDS[-1]
    found.observe(BUILDS[-1], SIZE, 0.01)
    assert found.next() == "b08"
    assert found.posterior["b03"] == pytest.approx(1 / 16)


def test_a_size_that_was_estimated_too_large_is_corrected_by_what_is_measured() -> None:
    assert run(search(size=math.log(1.25), noise=0.07), 5).found == ("b05",)


def test_a_speed_up_is_dated_in_the_same_way() -> None:
    found = Bisection(BUILDS, -SIZE, 0.005)
    while (build := found.next()) is not None:
        found.observe(build, -SIZE if build >= "b11" else 0.0, SHARP)
    assert found.found == ("b11",)


def test_a_build_that_is_none_of_them_is_refused() -> None:
    with pytest.raises(KeyError):
        search().observe("b99", 0.0, 0.01)


@pytest.mark.parametrize(
    ("cv", "size", "searches", "most"),
    [(0.02, 0.05, 100, 8), (0.05, 0.10, 100, 10), (0.10, 0.20, 100, 11), (0.10, 0.05, 60, 90)],
)
def test_the_right_build_is_named_in_95_percent(
    cv: float, size: float, searches: int, most: float
) -> None:
    found = simulate(cv, size, searches, seed=3)
    assert found.right >= CONFIDENCE
    assert found.measurements < most
    assert found.right >= found.plain_right


def test_simulated_pairs_have_the_deviation_that_is_reported() -> None:
    """By the middle half of them: the spikes, which learned noise sheds, are in the tails."""
    runs = World("", 0.05).runs(np.full(8000, 0.05), 5, np.random.default_rng(1))
    shifts = hodges_lehmann(runs[..., 0] - runs[..., 1])
    assert 1.4826 * np.median(np.abs(shifts)) == pytest.approx(deviation(0.05, 5), rel=0.1)
    assert deviation(0.05, 10) == pytest.approx(deviation(0.05, 5) / math.sqrt(2))


def test_the_table_is_printed_and_a_missed_bar_is_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bisection_simulation, "CVS", (0.02,))
    monkeypatch.setattr(bisection_simulation, "SIZES", (0.10,))
    assert main(["--searches", "20"]) == 0
    assert "met: " in capsys.readouterr().out
    monkeypatch.setattr(bisection_simulation, "CONFIDENCE", 1.1)
    assert main(["--searches", "2"]) == 1
    assert "MISSED" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--searches", "0"], ["--seed", "x"]])
def test_a_wrong_argument_is_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert capsys.readouterr().err.count("\n") == 1
