"""A search names the build that brought the change, whatever happens on its way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nexmark.bisect.search import Search, Unmeasurable, answer, percent, table
from nexmark.errors import NexmarkError
from nexmark.verdict.bisection import Bisection, Pairs

BUILDS = [f"pypi:4.0.{n}" for n in range(10)]
FLOOR = 0.004


class Oracle:
    """Builds from `first_bad` on are slower; pairs have noise, as on a real machine."""

    def __init__(self, first_bad: int, slower: float = 0.2, noise: float = 0.03, seed: int = 1):
        self.first_bad, self.slower, self.noise = first_bad, slower, noise
        self.random = np.random.default_rng(seed)
        self.measured: list[str] = []
        self.broken: set[str] = set()

    def __call__(self, build: str) -> Pairs:
        if build in self.broken:
            raise Unmeasurable(f"{build}: is not there")
        self.measured.append(build)
        shift = math.log1p(self.slower) if BUILDS.index(build) >= self.first_bad else 0.0
        return Pairs(build, tuple(self.random.normal(shift, self.noise, 5)))


def run(
    oracle: Oracle, search: Search | None = None, most: int = 40
) -> tuple[Search, Bisection, list[str]]:
    search = search or Search(BUILDS, [], FLOOR)
    said: list[str] = []
    state = search.run(
        oracle, most, lambda made, found: said.append(table(made, found)), said.append
    )
    return search, state, said


@pytest.mark.parametrize("first_bad", [1, 4, 7, 9])
@pytest.mark.parametrize("slower", [0.2, -0.15])
def test_the_first_bad_build_is_named(first_bad: int, slower: float) -> None:
    search, state, _ = run(Oracle(first_bad, slower))
    assert state.found == (BUILDS[first_bad],)
    told = answer("q5", search, state)
    assert told.startswith(f"first bad build: {BUILDS[first_bad]}, with 9")
    assert f"{len(search.nights)} nights, {5 * len(search.nights)} pairs" in told
    size, deviation = state.size
    assert abs(size - math.log1p(slower)) < 3 * deviation


def test_it_is_right_as_often_as_it_says_when_the_noise_is_not_known_beforehand() -> None:
    right = wrong = 0
    for seed in range(100):
        first_bad = 1 + seed % 9
        try:
            _, state, _ = run(Oracle(first_bad, 0.08, 0.04, seed))
        except NexmarkError:
            continue  # it was said that the ends do not differ
        right += state.found == (BUILDS[first_bad],)
        wrong += state.found != (BUILDS[first_bad],)
    assert wrong <= 5
    assert right >= 90


def test_a_bad_build_that_is_not_bad_ends_the_search_at_once() -> None:
    for seed in range(20):
        oracle = Oracle(first_bad=99, seed=seed)
        with pytest.raises(NexmarkError, match="the bad build does not differ from the good one: "):
            run(oracle)
        assert set(oracle.measured) == {BUILDS[-1]}
        assert len(oracle.measured) <= 3


def test_a_build_that_cannot_be_measured_is_left_out_and_the_answer_is_a_range() -> None:
    oracle = Oracle(first_bad=5)
    oracle.broken = {BUILDS[4], BUILDS[5]}
    search, state, said = run(oracle)
    assert state.found == (BUILDS[4], BUILDS[5], BUILDS[6])
    assert f"left out: {BUILDS[4]}: is not there" in said
    assert "one of pypi:4.0.4, pypi:4.0.5, pypi:4.0.6" in answer("q5", search, state)


def test_a_bad_build_that_cannot_be_measured_ends_the_search() -> None:
    oracle = Oracle(first_bad=5)
    oracle.broken = {BUILDS[-1]}
    with pytest.raises(Unmeasurable):
        run(oracle)


def test_a_search_that_was_interrupted_goes_on_where_it_was() -> None:
    whole = Oracle(first_bad=6)
    search, state, _ = run(whole)
    for kept in range(len(search.nights)):
        rest = Oracle(first_bad=6)
        again, found, _ = run(rest, Search(BUILDS, list(search.nights[:kept]), FLOOR))
        assert again.nights[:kept] == search.nights[:kept]
        assert found.found == state.found
        assert (rest.measured[:1] == [BUILDS[-1]]) == (kept == 0)


def test_a_finished_search_measures_nothing_more() -> None:
    search, _, _ = run(Oracle(first_bad=6))
    again = Oracle(first_bad=6)
    _, state, _ = run(again, search)
    assert state.found == (BUILDS[6],)
    assert again.measured == []


def test_the_number_of_nights_is_bounded_and_what_is_known_is_said() -> None:
    search, state, _ = run(Oracle(first_bad=6), most=2)
    assert len(search.nights) == 2
    assert state.found == ()
    assert answer("q5", search, state).startswith("first bad build: not found; one of pypi:4.0.")


def test_every_step_shows_what_is_believed() -> None:
    _, _, said = run(Oracle(first_bad=6))
    tables = [text for text in said if text.startswith("build ")]
    assert len(tables) == sum(text.startswith("measuring ") for text in said)
    assert "good" in tables[0]
    assert len(tables[0].splitlines()) == 1 + len(BUILDS)


@pytest.mark.parametrize(
    ("size", "deviation", "says"),
    [
        (math.log(1.2), 0.01, "20.0 % slower (17.7 to 22.4 %)"),
        (math.log(0.8), 0.01, "20.0 % faster (18.4 to 21.6 %)"),
        (0.0, 0.01, "0.0 % slower (-1.9 to 2.0 %)"),
    ],
)
def test_a_size_is_reported_with_its_interval(size: float, deviation: float, says: str) -> None:
    assert percent(size, deviation) == says
