"""Nights whose truth is known, for ``nexmark bench gate``.

The log of the CPU time of the tasks of a run is: the host's effect of the night (the same in both
arms: it cancels) + the noise of ``nexmark.example.noise``. All CPU time of the executors, the
guardrail, has ``STEEPER`` times that noise, and some of its own: garbage collection and the
compiler. In some worlds more happens: the baseline moves, every night or at times, queries come and
go, the host is unsteady while a query runs.
Arrays have the shape (suites, queries, ...): many suites at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nexmark.config import Gate
from nexmark.example.noise import RunNoise
from nexmark.model import CPU, TASK_CPU
from nexmark.verdict.baseline_chain import WILD, creeps
from nexmark.verdict.decision import Decision, Picked, decide, drift_side
from nexmark.verdict.guardrail import Guarded, guard
from nexmark.verdict.location import Array, hodges_lehmann, spread
from nexmark.verdict.noise import Drift, Learned, about_own_level, suite_shifts
from nexmark.verdict.order import MIN_FRESH_PAIRS

QUERIES = 23
HOST_SHIFT = math.log(1.08)
STEEPER, OTHER_THREADS = 1.94, 1.21
"""How often all CPU time has the noise of the tasks, and the CV of its own noise over theirs.

`nexmark bench noise` prints what they follow from: pairs of unchanged arms differ by 8.0 % in all
CPU time and by 3.1 % in the tasks', with a correlation of 0.76. 8.0 / 3.1 x 0.76 is the first;
8.0 / 3.1 x sqrt(1 - 0.76^2) = 1.65 is the rest. A CV of 1 makes a pair of the tasks differ by 1.09,
and a pair of the rest, whose runs share nothing, by 1.48.
"""
UNSTEADY = 0.08
"""Mean by which an unsteady host is faster in some runs than in others (log, exponential)."""


@dataclass(frozen=True)
class Stretch:
    """Nights with one baseline; the candidate is ``shift`` (log) slower than it."""

    nights: int
    shift: float = 0.0


@dataclass(frozen=True)
class World:
    """How runs spread and what happens. ``cv`` is the CV of the runs within a night.

    ``fresh_jvm``: every repetition has its own JVM, else one per arm and stage. ``spikes`` is the
    share of spiked runs, ``shared`` the share of the variance within a night that the runs of a
    pair have in common; ``uneven`` gives queries from a half to double the noise; ``heavy`` draws
    from Student's t with the same spread. ``past`` are the stretches before the nights that count:
    a new one is an acceptance. ``absent`` is the share of the queries that a night lacks,
    ``unsteady`` the share of the nights in which the host is unsteady while one query runs.
    ``accepts``: the candidate of every night that this number divides is accepted; 0: of none.
    """

    name: str
    cv: float
    fresh_jvm: bool = True
    spikes: float = 0.02
    shared: float = 0.5
    uneven: bool = False
    heavy: bool = False
    past: tuple[Stretch, ...] = ()
    absent: float = 0.0
    unsteady: float = 0.0
    accepts: int = 0

    def scale(self) -> Array:
        """Return the CV of each query."""
        steps = np.linspace(-1.0, 1.0, QUERIES) if self.uneven else np.zeros(QUERIES)
        return self.cv * 2.0**steps

    def runs(self, scale: Array, pairs: int, rng: np.random.Generator) -> Array:
        """Return log times (..., pairs, 2 arms) for CVs of shape (...), without the host's part."""
        noise = RunNoise(self.fresh_jvm, self.spikes, self.shared, self.heavy)
        result: Array = noise.runs(scale, pairs, rng)
        return result

    def ratios(self, scale: Array, pairs: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return log ratios (..., pairs) of unchanged arms: of the tasks, and of all CPU time."""
        tasks, others = (
            times[..., 0] - times[..., 1]
            for times in (
                self.runs(scale, pairs, rng),
                RunNoise(spikes=0.0, shared=0.0, heavy=self.heavy).runs(
                    OTHER_THREADS * scale, pairs, rng
                ),
            )
        )
        return tasks, STEEPER * tasks + others


@dataclass(frozen=True)
class SimulatedOutcome:
    """What the gate said of a night; ``suite`` and ``broken`` (suites,), else (suites, queries).

    ``red``: REGRESSION; ``guarded``: by the guardrail alone; ``faster``: FASTER; ``pairs``: how
    many were measured; ``watch``: drifts slower; ``creep``: the accepted builds together are
    slower; ``measured``: was there; ``broken``: a query is INVALID because the host is;
    ``undecided``: a slowdown that matters is not excluded.
    """

    red: NDArray[np.bool_]
    guarded: NDArray[np.bool_]
    faster: NDArray[np.bool_]
    pairs: Array
    watch: NDArray[np.bool_]
    measured: NDArray[np.bool_]
    suite: NDArray[np.bool_]
    broken: NDArray[np.bool_]
    creep: NDArray[np.bool_]
    undecided: NDArray[np.bool_]

    @property
    def alarms(self) -> int:
        """How many red verdicts there are, whatever their reason."""
        return int(self.red.sum() + self.suite.sum() + self.broken.sum())


@dataclass(frozen=True)
class AcceptedLinks:
    """The links of the builds that were accepted: log ratios and variances (..., links)."""

    shift: Array
    variance: Array

    def with_link(self, shift: Array, deviation: Array, most: int) -> AcceptedLinks:
        """Add the link of a build that was accepted; keep the last ``most``."""
        added = ((self.shift, shift), (self.variance, deviation**2))
        return AcceptedLinks(
            *(np.concatenate([old, new[..., None]], axis=-1)[..., -most:] for old, new in added)
        )

    def creeps(self, shift: Array, deviation: Array, rules: Gate) -> NDArray[np.bool_]:
        """Tell which queries are slower by all links since the last that was not measured."""
        lost = np.cumsum(np.isnan(self.shift)[..., ::-1], axis=-1)[..., ::-1] > 0
        shifts = np.where(lost, 0.0, self.shift).sum(axis=-1) + shift
        variance = np.where(lost, 0.0, self.variance).sum(axis=-1) + deviation**2
        accepted = ~lost.all(axis=-1)
        result: NDArray[np.bool_] = accepted & creeps(shifts, np.sqrt(variance), rules)
        return result


@dataclass(frozen=True)
class _Truth:
    """What is true of each query tonight (suites, queries), in log.

    It is ``slower``, all its CPU time by ``garbage`` more, and the host is ``apart`` meanwhile.
    """

    slower: Array
    garbage: Array
    apart: Array


class PairedSuites:
    """Suites measured in pairs that live through one night after the other.

    ``nexmark.verdict.decision`` judges them, and they remember as ``past`` does.
    """

    def __init__(
        self,
        world: World,
        rules: Gate,
        suites: int,
        rng: np.random.Generator,
        history: int | None = None,
    ) -> None:
        """Let quiet nights pass, then the past of the world.

        Args:
            world: What happens in it.
            rules: The gate.
            suites: How many suites there are.
            rng: The random numbers.
            history: How many quiet nights pass; None: as many as the gate remembers.
        """
        self.world, self.rules, self.rng = world, rules, rng
        self._nights = rules.history_nights if history is None else history
        self.cost = 2.0
        self._scale = np.broadcast_to(world.scale(), (suites, QUERIES))
        quiet = np.zeros((suites, QUERIES))
        steady = [self._first_round(_Truth(quiet, quiet, quiet)) for _ in range(self._nights)]
        unknown = np.full((2, suites, QUERIES, rules.rounds[0]), np.nan)
        nights = np.stack([np.stack(night) for night in steady] or [unknown], axis=1)
        self._shift, self._all_shift = np.moveaxis(hodges_lehmann(nights), 1, -1)
        self._spread, self._all_spread = np.moveaxis(spread(nights), 1, -1)
        self._stretches = np.zeros(max(self._nights, 1), dtype=np.int_)
        self._stretch = 0
        self._suite_changed = np.zeros((suites, max(self._nights, 1)), dtype=np.bool_)
        self._drift = Drift(quiet, quiet)
        self._lived, empty = 0, np.zeros((suites, QUERIES, 0))
        self._links, self._tonight = AcceptedLinks(empty, empty), (quiet, quiet)
        for stretch in world.past:
            for _ in range(stretch.nights):
                self.live(np.full(QUERIES, stretch.shift))
            self.accept()

    def accept(self) -> None:
        """Accept another build: it is the baseline from the next night on."""
        self._stretch += 1
        self._drift = Drift(np.zeros_like(self._drift.slower), np.zeros_like(self._drift.faster))
        most = self.rules.creep_nights // (self.world.accepts or 1)
        self._links = self._links.with_link(*self._tonight, most)

    def live(
        self, slower: Array, host_moves: bool = False, garbage: Array | None = None
    ) -> SimulatedOutcome:
        """Measure, judge and remember a night.

        Args:
            slower: The truth of each query (queries,), in log.
            host_moves: The host becomes 8 % slower at some moment of the night.
            garbage: What all CPU time is slower by beyond ``slower``, in log; None: nothing.
        """
        apart = self._unsteady()
        quiet = np.zeros(self._scale.shape)
        truth = _Truth(quiet + slower, quiet + (0.0 if garbage is None else garbage), apart)
        tasks, every = self._first_round(truth)
        if host_moves:
            self._move_host(tasks, every)
        broken = apart > math.log1p(self.rules.canary_bound)
        tasks[broken] = every[broken] = np.nan
        rounds: dict[int, tuple[Array, Array]] = {}
        read = np.ones(quiet.shape, dtype=np.int_)

        def measured(number: int) -> tuple[Array, Array]:
            if number not in rounds:
                rounds[number] = self._pairs(self.rules.rounds[number - 1], truth)
            return rounds[number]

        def more(picked: Picked, number: int) -> Array:
            read[picked] = number
            return measured(number)[0][picked]

        excess = np.maximum(apart - math.log1p(self.rules.canary_unsteady), 0.0)
        widening = self.rules.canary_widening * excess
        rules = self.rules.for_metrics([TASK_CPU])
        decision = decide(tasks, self._history(), more, rules, widening)
        guarded = guard(
            every,
            self._guarded_history(),
            lambda picked, number: measured(number)[1][picked],
            read,
            decision.confirmed > 0,
            self.rules.for_metrics([CPU]),
            widening,
        )
        by_it = guarded.confirmed & (decision.confirmed <= 0)
        self._remember(tasks, every, decision, guarded)
        self._tonight = _link(decision)
        creep = self._links.creeps(*self._tonight, self.rules)
        self._lived += 1
        if self.world.accepts and self._lived % self.world.accepts == 0:
            self.accept()
        return SimulatedOutcome(
            (decision.confirmed > 0) | by_it,
            by_it,
            decision.confirmed < 0,
            np.maximum(decision.final.pairs, guarded.pairs),
            drift_side(decision.drift, self.rules) > 0,
            np.isfinite(decision.first.shift),
            decision.suite_side > 0,
            np.asarray(broken.any(axis=-1)),
            creep,
            (decision.final.side == 0) & (decision.final.hi >= math.log1p(self.rules.matters)),
        )

    def _first_round(self, truth: _Truth) -> tuple[Array, Array]:
        """Return log ratios as ``_pairs`` does; NaN for the queries that the night lacks."""
        tasks, every = self._pairs(self.rules.rounds[0], truth)
        if self.world.absent:
            away = self.rng.random(tasks.shape[:2]) < self.world.absent
            tasks[away] = every[away] = np.nan
        return tasks, every

    def _pairs(self, count: int, truth: _Truth) -> tuple[Array, Array]:
        """Return log ratios of a round: of the tasks, and of all CPU time.

        The host's effect is in both arms: it cancels. An unsteady host is in its faster or slower
        state in each run, at random.
        """
        tasks, every = self.world.ratios(self._scale, count, self.rng)
        moved = truth.slower[..., None]
        if self.world.unsteady:
            runs = self.rng.integers(2, size=(*tasks.shape, 2))
            moved = moved + truth.apart[..., None] * (runs[..., 0] - runs[..., 1])
        return tasks + moved, every + moved + truth.garbage[..., None]

    def _move_host(self, tasks: Array, every: Array) -> None:
        """Let the host become slower between the two runs of one pair of each suite."""
        suites = np.arange(tasks.shape[0])
        query = self.rng.integers(QUERIES, size=suites.size)
        pair = self.rng.integers(tasks.shape[-1], size=suites.size)
        arm = self.rng.choice([-1.0, 1.0], size=suites.size)
        for ratios in (tasks, every):
            ratios[suites, query, pair] += HOST_SHIFT * arm

    def _unsteady(self) -> Array:
        """Return by how much the host is unsteady while each query runs, which the canary sees."""
        apart = np.zeros(self._scale.shape)
        if self.world.unsteady:
            count = len(apart)
            hit = self.rng.random(count) < self.world.unsteady
            query = self.rng.integers(QUERIES, size=count)
            seen = np.where(hit, self.rng.exponential(UNSTEADY, count), 0.0)
            apart[np.arange(count), query] = seen
        return apart

    def _history(self) -> Learned:
        shift = about_own_level(self._shift, self._stretches)
        pairs = np.where(np.isnan(shift), np.nan, float(self.rules.rounds[0]))
        suite = np.where(self._suite_changed, np.nan, suite_shifts(shift))
        return Learned(shift, self._spread, pairs, suite, self._drift)

    def _guarded_history(self) -> Learned:
        shift = about_own_level(self._all_shift, self._stretches)
        pairs = np.where(np.isnan(shift), np.nan, float(self.rules.rounds[0]))
        return Learned(shift, self._all_spread, pairs, suite_shifts(shift), self._drift)

    def _remember(self, tasks: Array, every: Array, decision: Decision, guarded: Guarded) -> None:
        """Keep what ``past`` would: all but nights whose change was confirmed."""
        changed = (decision.confirmed != 0) | guarded.confirmed
        kept, kept_all = (
            np.where(changed, np.nan, shift)
            for shift in (decision.first.shift, guarded.first.shift)
        )
        self._shift, self._all_shift = _later(self._shift, kept), _later(self._all_shift, kept_all)
        self._spread = _later(self._spread, np.where(np.isnan(kept), np.nan, spread(tasks)))
        spread_all = np.where(np.isnan(kept_all), np.nan, spread(every))
        self._all_spread = _later(self._all_spread, spread_all)
        suite = np.asarray(decision.suite_side != 0)
        self._suite_changed = np.column_stack([self._suite_changed[:, 1:], suite])
        self._stretches = np.append(self._stretches[1:], self._stretch)
        self._drift = decision.drift


def _link(decision: Decision) -> tuple[Array, Array]:
    """Return shift and deviation of the link that a night is, as ``link_of`` does."""
    first, final = decision.first, decision.final
    taken = (np.abs(first.shift) > WILD * first.noise) & (final.fresh >= MIN_FRESH_PAIRS)
    shift = np.where(taken, final.shift, first.shift)
    return shift, np.where(taken, final.noise, first.noise)


def _later(series: Array, value: Array) -> Array:
    return np.concatenate([series[..., 1:], value[..., None]], axis=-1)
