"""Simulate bisection, and print how often it names the right build: `nexmark bench bisection`.

Each search looks for the one build that brought a slowdown. The noise is the noise of
``simulated_nights`` (CV of single runs; spikes included). The command prints how often the search
names the right build, and after how many measurements on average. It does the same for plain
bisection, which believes every measurement, and for plain bisection that repeats each measurement
until it costs as much. A measurement is five pairs. The exit code is 1 if a case is below 95 %.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench.arguments import Parser
from bench.simulated_nights import World
from nexmark.example.noise import JVM
from nexmark.verdict.bisection import CONFIDENCE, Bisection
from nexmark.verdict.location import EFFICIENCY, hodges_lehmann

CVS = (0.02, 0.05, 0.10)
SIZES = (0.05, 0.10, 0.20)
BUILDS = 32
PAIRS = 5
MOST = 500
"""The largest number of measurements of a search; a search that needs more counts as wrong."""

Measure = Callable[[int], float]
"""Measures the shift of a build, which is named by its place among the builds, from 0."""


@dataclass(frozen=True)
class Searches:
    """The share of searches that named the right build, and their mean number of measurements.

    ``cv`` is the coefficient of variation of single runs, ``size`` the slowdown (0.05 is 5 %). The
    fields without a prefix are of our bisection, ``plain_*`` and ``repeated_*`` of the other two.
    """

    cv: float
    size: float
    right: float
    measurements: float
    plain_right: float
    plain_measurements: float
    repeated_right: float
    repeated_measurements: float


def deviation(cv: float, pairs: int) -> float:
    """Return the standard deviation of the shift of ``pairs`` pairs of runs with this ``cv``."""
    world = World("", cv)
    pair = cv * math.sqrt(2 * (1 - world.shared + JVM**2))
    return pair * math.sqrt(EFFICIENCY / pairs)


def simulate(cv: float, size: float, searches: int, seed: int, builds: int = BUILDS) -> Searches:
    """Run searches among builds; each search draws its first bad build at random.

    Args:
        cv: The coefficient of variation of single runs.
        size: By how much the bad builds are slower; 0.05 is 5 %.
        searches: The number of searches.
        seed: The seed of the random numbers.
        builds: The number of builds.
    """
    rng = np.random.default_rng(seed)
    world = World("", cv)
    truths = [int(rng.integers(1, builds)) for _ in range(searches)]

    def measure(truth: int, pairs: int = PAIRS) -> Measure:
        def shift(place: int) -> float:
            logs = world.runs(np.asarray(cv), pairs, rng)
            slower = math.log1p(size) if place >= truth else 0.0
            return float(hodges_lehmann(logs[..., 0] - logs[..., 1])) + slower

        return shift

    ours = [_search(measure(truth), measure(truth, 2 * PAIRS), cv, builds) for truth in truths]
    cost = float(np.mean([count for _, count in ours]))
    repeats = max(math.ceil(cost / math.log2(builds)), 1)
    plain = [_plain(measure(truth), size, builds, 1) for truth in truths]
    again = [_plain(measure(truth), size, builds, repeats) for truth in truths]
    return Searches(
        cv,
        size,
        *_summary(ours, truths),
        *_summary(plain, truths),
        *_summary(again, truths),
    )


def _search(measure: Measure, known: Measure, cv: float, builds: int) -> tuple[int, int]:
    """Return the build that bisection names (-1: none), and the number of measurements.

    Args:
        measure: Measures the shift of a build.
        known: Measures the shift of the last build, by twice as many pairs: the size is not known.
        cv: The coefficient of variation of single runs.
        builds: The number of builds.
    """
    names = [str(place) for place in range(builds)]
    search = Bisection(names, known(builds - 1), deviation(cv, 2 * PAIRS))
    noise = deviation(cv, PAIRS)
    while (build := search.next()) is not None and search.measurements < MOST:
        search.observe(build, measure(int(build)), noise)
    return (int(search.found[0]) if len(search.found) == 1 else -1), search.measurements


def _plain(measure: Measure, size: float, builds: int, repeats: int) -> tuple[int, int]:
    """Return the build that plain bisection names, and the number of measurements.

    Args:
        measure: Measures the shift of a build.
        size: By how much the bad builds are slower.
        builds: The number of builds.
        repeats: How often each build is measured.
    """
    good, bad, count = 0, builds - 1, 0
    while bad - good > 1:
        middle = (good + bad) // 2
        shift = np.mean([measure(middle) for _ in range(repeats)])
        count += repeats
        good, bad = (good, middle) if shift > math.log1p(size) / 2 else (middle, bad)
    return bad, count


def _summary(answers: Sequence[tuple[int, int]], truths: Sequence[int]) -> tuple[float, float]:
    """Return the share of right answers, and the mean number of measurements."""
    right = [build == truth for (build, _), truth in zip(answers, truths, strict=True)]
    return float(np.mean(right)), float(np.mean([count for _, count in answers]))


def cases(searches: int, seed: int) -> Iterator[Searches]:
    """Yield the searches of every noise with every size of the slowdown."""
    for number, (cv, size) in enumerate((cv, size) for cv in CVS for size in SIZES):
        yield simulate(cv, size, searches, seed + number)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 if a case is below the bar."""
    options = _parser().parse_args(argv)
    print(f"{options.searches} searches among {BUILDS} builds each, seed {options.seed}: % of them")
    print(f"that name the right build, and measurements of {PAIRS} pairs on average\n")
    line = f"{'CV':>5}{'slower':>8}{'posterior':>17}{'plain':>17}{'plain, repeated':>19}"
    print(f"{line}\n{'-' * len(line)}")
    worst = 1.0
    for case in cases(options.searches, options.seed):
        worst = min(worst, case.right)
        print(
            f"{case.cv:>5.0%}{case.size:>8.0%}"
            f"{_cell(case.right, case.measurements):>17}"
            f"{_cell(case.plain_right, case.plain_measurements):>17}"
            f"{_cell(case.repeated_right, case.repeated_measurements):>19}",
            flush=True,
        )
    met = worst >= CONFIDENCE
    print(f"\n{'met' if met else 'MISSED'}: {worst:.1%} in the worst case (bar: {CONFIDENCE:.0%})")
    return 0 if met else 1


def _cell(right: float, measurements: float) -> str:
    return f"{100 * right:.1f} % {measurements:6.1f}"


def _parser() -> argparse.ArgumentParser:
    summary = (__doc__ or "").split("\n", 1)[0]
    parser = Parser(prog="nexmark bench bisection", description=summary)
    parser.add_argument("--searches", type=_positive, default=500, help="of each case")
    parser.add_argument("--seed", type=_positive, default=1)
    return parser


def _positive(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
