"""Nights whose truth is known, after research/regression-gates.md section 5, for ``simulation``.

The log time of a run is: the host's effect of the night (AR(1), rho 0.7, shared by all queries and
both arms) + a start-up effect of its JVM (0.3 CV) + a slow wander shared by the two runs of a pair
(0.71 CV) + independent noise (0.71 CV) + in 2 % of the runs a spike (exponential, mean 30 %).
Arrays have the shape (suites, queries, ...): many suites at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nexmark.verdict.decision import Decision, History, Picked, decide
from nexmark.verdict.drift import Drift
from nexmark.verdict.drift import side as drift_side
from nexmark.verdict.location import Array, hodges_lehmann, spread
from nexmark.verdict.one_arm import decide_one_arm
from nexmark.verdict.rules import Rules, fresh_pairs

QUERIES = 23
JVM = 0.3
"""Spread of the start-up effect over the CV."""
RHO = 0.7
HOST_SHIFT = math.log(1.08)


@dataclass(frozen=True)
class World:
    """How runs spread. ``cv`` is that of runs within a night.

    ``fresh_jvm``: every repetition has its own JVM, else one per arm and stage. ``host`` is the
    spread between nights over ``cv``, ``spikes`` the share of spiked runs, ``shared`` the share of
    the variance within a night that the runs of a pair have in common, ``uneven`` gives queries
    from a half to double the noise.
    """

    name: str
    cv: float
    fresh_jvm: bool = True
    host: float = 1.0
    spikes: float = 0.02
    shared: float = 0.5
    uneven: bool = False

    def scale(self) -> Array:
        """Return the CV of each query."""
        steps = np.linspace(-1.0, 1.0, QUERIES) if self.uneven else np.zeros(QUERIES)
        return self.cv * 2.0**steps

    def runs(self, scale: Array, pairs: int, rng: np.random.Generator) -> Array:
        """Return log times (..., pairs, 2 arms) for CVs of shape (...), without the host's part."""
        shape = (*scale.shape, pairs)
        wide = scale[..., None, None]
        jvm = rng.standard_normal((*shape, 2) if self.fresh_jvm else (*scale.shape, 1, 2))
        own = math.sqrt(1 - self.shared) * rng.standard_normal((*shape, 2))
        common = math.sqrt(self.shared) * rng.standard_normal((*shape, 1))
        spiked = rng.random((*shape, 2)) < self.spikes
        spike = np.log1p(np.where(spiked, rng.exponential(0.3, (*shape, 2)), 0.0))
        result: Array = wide * (JVM * jvm + own + common) + spike
        return result


@dataclass(frozen=True)
class Outcome:
    """What the gate said of a night; all but ``suite`` (suites,) of shape (suites, queries).

    ``red``: REGRESSION; ``faster``: FASTER; ``suspect``: measured again; ``watch``: drifts slower.
    """

    red: NDArray[np.bool_]
    faster: NDArray[np.bool_]
    suspect: NDArray[np.bool_]
    watch: NDArray[np.bool_]
    suite: NDArray[np.bool_]


class Suites(Protocol):
    """Many suites that live through one night after the other."""

    cost: float

    def live(self, slower: Array, host_moves: bool = False) -> Outcome:
        """Measure, judge and remember a night; ``slower`` (queries,) is the truth in log.

        With ``host_moves`` the host becomes 8 % slower at some moment of the night.
        """


class PairedSuites:
    """Suites measured in pairs: ``nexmark.verdict.decision`` judges them."""

    def __init__(self, world: World, rules: Rules, suites: int, rng: np.random.Generator) -> None:
        """Let ``rules.history_nights`` quiet nights pass."""
        self.world, self.rules, self.rng = world, rules, rng
        self.cost = 2.0
        self._scale = np.broadcast_to(world.scale(), (suites, QUERIES))
        nights = [self._pairs(np.zeros(QUERIES)) for _ in range(rules.history_nights)]
        shift = np.stack([hodges_lehmann(night) for night in nights], axis=-1)
        deviation = np.stack([spread(night) for night in nights], axis=-1)
        pairs = np.full(shift.shape, float(rules.pairs))
        quiet = np.zeros((suites, QUERIES))
        self._history = History(shift, deviation, pairs, shift.mean(axis=1), Drift(quiet, quiet))

    def live(self, slower: Array, host_moves: bool = False) -> Outcome:
        """Measure, judge and remember a night."""
        ratios = self._pairs(slower)
        if host_moves:
            self._move_host(ratios)

        def fresh(picked: Picked) -> Array:
            count = fresh_pairs(self.rules.pairs, self.rules)
            times = self.world.runs(self._scale[picked], count, self.rng)
            result: Array = times[..., 0] - times[..., 1] + slower[picked[-1]][:, None]
            return result

        decision = decide(ratios, self._history, fresh, self.rules)
        self._remember(ratios, decision)
        return Outcome(
            decision.confirmed > 0,
            decision.confirmed < 0,
            decision.first.side != 0,
            drift_side(decision.drift, self.rules) > 0,
            decision.suite_side > 0,
        )

    def _pairs(self, slower: Array) -> Array:
        """Return the first log ratios of a night; the host's effect is in both arms: it cancels."""
        times = self.world.runs(self._scale, self.rules.pairs, self.rng)
        ratios: Array = times[..., 0] - times[..., 1] + slower[:, None]
        return ratios

    def _move_host(self, ratios: Array) -> None:
        """Let the host become slower between the two runs of one pair of each suite."""
        suites = np.arange(ratios.shape[0])
        query = self.rng.integers(QUERIES, size=suites.size)
        pair = self.rng.integers(ratios.shape[-1], size=suites.size)
        arm = self.rng.choice([-1.0, 1.0], size=suites.size)
        ratios[suites, query, pair] += HOST_SHIFT * arm

    def _remember(self, ratios: Array, decision: Decision) -> None:
        """Keep what ``past`` would: all but nights whose change was confirmed."""
        past = self._history
        kept = np.where(decision.confirmed == 0, decision.first.shift, np.nan)
        self._history = History(
            _later(past.shift, kept),
            _later(past.spread, spread(ratios)),
            past.pairs,
            _later(past.suite, decision.suite_shift),
            decision.drift,
        )


class OneArmSuites:
    """Suites of one arm beside a canary: ``nexmark.verdict.one_arm`` judges them."""

    CANARY = 0.3
    """Spread of the canary's own reading over the CV."""

    def __init__(self, world: World, rules: Rules, suites: int, rng: np.random.Generator) -> None:
        """Let ``rules.one_arm_nights`` quiet nights pass."""
        self.world, self.rules, self.rng = world, rules, rng
        self.cost = 1.05
        self._scale = np.broadcast_to(world.scale(), (suites, QUERIES))
        self._host = world.host * world.cv * rng.standard_normal((suites, 1))
        nights = [self._levels(np.zeros(QUERIES), False) for _ in range(rules.one_arm_nights)]
        self._earlier = np.stack(nights, axis=-1)

    def live(self, slower: Array, host_moves: bool = False) -> Outcome:
        """Measure, judge and remember a night."""
        levels = self._levels(slower, host_moves)
        side = decide_one_arm(levels, self._earlier, self.rules).side
        self._earlier = _later(self._earlier, np.where(side == 0, levels, np.nan))
        never = np.zeros(side.shape, dtype=np.bool_)
        return Outcome(side > 0, side < 0, never, never, never[:, 0])

    def _levels(self, slower: Array, host_moves: bool) -> Array:
        """Return log levels relative to the canary, which sees half of a shift within the night.

        A host that moves does so before one half of the queries, and the canary's readings before
        and after are averaged.
        """
        world, rng = self.world, self.rng
        fresh = world.host * world.cv * rng.standard_normal(self._host.shape)
        self._host = RHO * self._host + math.sqrt(1 - RHO**2) * fresh
        times = world.runs(self._scale, self.rules.pairs, rng)[..., 0]
        canary = self.CANARY * world.cv * rng.standard_normal(self._host.shape)
        levels: Array = np.median(times, axis=-1) + slower - canary
        if host_moves:
            after = rng.permuted(np.arange(QUERIES) * np.ones(levels.shape), axis=-1) >= QUERIES / 2
            levels = levels + HOST_SHIFT * (after - 0.5)
        return levels


def _later(series: Array, value: Array) -> Array:
    return np.concatenate([series[..., 1:], value[..., None]], axis=-1)


__all__ = ["QUERIES", "OneArmSuites", "Outcome", "PairedSuites", "Suites", "World"]
