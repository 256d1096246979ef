"""How often a comparison that goes on is wrong, and what it finds: a table of `nexmark bench gate`.

A comparison of two builds is one night without any history. ``nexmark build --continue`` measures
its undecided and its suspected queries again, in a night of their own, with the pairs of before.
Here each comparison goes on until every query is decided, or until its last run. All pairs of all
rounds are drawn, and the gate reads those that it would have measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

import numpy as np

from bench.simulated_nights import World
from nexmark.config import Gate
from nexmark.model import LEFT_OPEN, SUITE, Mode, Value
from nexmark.verdict.left_open import LeftOpen
from nexmark.verdict.location import Array
from nexmark.verdict.measured_night import Measured, MeasuredNight, Pair
from nexmark.verdict.nightly import judge_night
from nexmark.verdict.verdict import Verdict

QUERIES = 12
RUNS = 4
EFFECTS = (0.05, 0.10)
WORLDS = (World("CV 5 %", 0.05), World("CV 10 %", 0.10))
BAR = 0.02
"""The most false reds of a comparison, in all its runs."""


@dataclass(frozen=True)
class ContinuedTally:
    """What each run of a comparison has added, for each comparison that was begun.

    Each figure has one value per run. ``reds`` counts the queries, and suites, that are REGRESSION
    though nothing has changed, ``suspects`` those that are SUSPECT. ``undecided`` is the share of
    the unchanged queries that are left undecided, ``pairs`` the pairs of a query so far. ``found``
    has, by ``EFFECTS``, the share of the slowed queries that have been REGRESSION so far.
    """

    world: str
    comparisons: int
    reds: tuple[float, ...]
    suspects: tuple[float, ...]
    undecided: tuple[float, ...]
    pairs: tuple[float, ...]
    found: tuple[tuple[float, ...], ...]

    def __str__(self) -> str:
        """Return a line for each run."""
        lines = []
        for run in range(RUNS):
            rates = f"{self.reds[run]:>9.4f}{self.suspects[run]:>9.4f}"
            rates += f"{100 * self.undecided[run]:>9.1f}%{self.pairs[run]:>8.1f}"
            shares = "".join(f"{100 * share[run]:>9.0f}%" for share in self.found)
            lines.append(f"{self.world:<42}{f'run {run + 1}':<8}{rates}{shares}")
        return "\n".join(lines)

    @property
    def false_reds(self) -> float:
        """The false reds of a comparison, in all its runs."""
        return sum(self.reds)


def head() -> str:
    """Return the head of the table."""
    labels = f"{'false red':>9}{'SUSPECT':>9}{'undecided':>10}{'pairs':>8}"
    effects = "".join(f"{f'{effect:.0%}':>10}" for effect in EFFECTS)
    return f"\n{'comparisons that go on':<50}{labels}{effects}"


def simulate_continued(world: World, rules: Gate, comparisons: int, seed: int) -> ContinuedTally:
    """Return the rates of comparisons that go on.

    Args:
        world: How runs spread.
        rules: The gate of a comparison.
        comparisons: How many there are without a change, and about how many queries of each
            effect are slowed.
        seed: Of the random numbers.
    """
    rng = np.random.default_rng(seed)
    quiet, slowed = np.zeros(QUERIES), np.zeros(QUERIES)
    counts = _Counts()
    for _ in range(comparisons):
        for run, verdicts in enumerate(_runs(world, rules, quiet, rng)):
            counts.add(run, verdicts)
    found = []
    slowed[::4] = 1.0
    times = math.ceil(comparisons / np.count_nonzero(slowed))
    for effect in EFFECTS:
        red = np.zeros(RUNS)
        for _ in range(times):
            for run, verdicts in enumerate(_runs(world, rules, slowed * math.log1p(effect), rng)):
                red[run] += sum(slowed[_number(each)] > 0 for each in _red(verdicts))
        found.append(tuple((red.cumsum() / (times * np.count_nonzero(slowed))).tolist()))
    return ContinuedTally(
        world.name,
        comparisons,
        tuple((counts.reds / comparisons).tolist()),
        tuple((counts.suspects / comparisons).tolist()),
        tuple((counts.undecided / (comparisons * QUERIES)).tolist()),
        tuple((counts.pairs.cumsum() / (comparisons * QUERIES)).tolist()),
        tuple(found),
    )


@dataclass(frozen=True)
class _Counts:
    """What comparisons without a change came to, by run."""

    reds: Array = field(default_factory=lambda: np.zeros(RUNS))
    suspects: Array = field(default_factory=lambda: np.zeros(RUNS))
    undecided: Array = field(default_factory=lambda: np.zeros(RUNS))
    pairs: Array = field(default_factory=lambda: np.zeros(RUNS))

    def add(self, run: int, verdicts: list[Verdict]) -> None:
        """Count the verdicts of a run."""
        values = [verdict.value for verdict in verdicts]
        self.reds[run] += values.count(Value.REGRESSION)
        self.suspects[run] += values.count(Value.SUSPECT)
        self.undecided[run] += values.count(Value.UNDECIDED)
        of_queries = (verdict for verdict in verdicts if verdict.query != SUITE)
        self.pairs[run] += sum(map(_pairs_of, of_queries))


def _runs(
    world: World, rules: Gate, slower: Array, rng: np.random.Generator
) -> Iterator[list[Verdict]]:
    """Yield the verdicts of each run of one comparison.

    Args:
        world: How runs spread.
        rules: The gate.
        slower: The truth of each query (queries,), in log.
        rng: The random numbers.
    """
    ends = list(accumulate(rules.rounds))
    scale = np.resize(world.scale(), QUERIES)
    queries, left_open = list(range(QUERIES)), LeftOpen()
    for run in range(1, RUNS + 1):
        logs = world.runs(scale, ends[-1], rng)
        measured = []
        for query in queries:
            times = np.exp(logs[query] + [slower[query], 0.0])
            pairs = [Pair(number, *both) for number, both in enumerate(times.tolist(), 1)]
            first, *later = (tuple(pairs[start:end]) for start, end in pairwise([0, *ends]))
            measured.append(Measured(f"q{query}", rules.metric, first, tuple(later)))
        builds = {one.query: "baseline" for one in measured}
        drawn = MeasuredNight(f"run {run}", tuple(measured), baseline=builds, candidate="new")
        night = left_open.added_to(drawn)
        verdicts = judge_night(night, [], rules)
        yield verdicts
        left_open.add(_as_measured(night, verdicts), verdicts)
        left = (each for each in verdicts if each.value in LEFT_OPEN and each.query != SUITE)
        queries = sorted(map(_number, left))
        if not queries:
            return


def _as_measured(night: MeasuredNight, verdicts: Sequence[Verdict]) -> MeasuredNight:
    """Return a night without the pairs that it would not have measured."""
    read = {verdict.query: verdict.fresh_pairs for verdict in verdicts}
    measured = (
        replace(one, later=(one.all_pairs[len(one.pairs) :][: read[one.query]],))
        for one in night.measured
    )
    return replace(night, measured=tuple(measured))


def _red(verdicts: list[Verdict]) -> list[Verdict]:
    """Return the verdicts on queries that are REGRESSION."""
    return [each for each in verdicts if each.value == Value.REGRESSION and each.query != SUITE]


def _pairs_of(verdict: Verdict) -> int:
    """Return how many pairs a run has measured of a query."""
    return verdict.pairs + verdict.fresh_pairs


def _number(verdict: Verdict) -> int:
    return int(verdict.query.removeprefix("q"))


def rules_of(rules: Gate) -> Gate:
    """Return the gate of a comparison in pairs, made from the gate of a night."""
    return rules.for_comparison().model_copy(update={"mode": Mode.PAIRED})
