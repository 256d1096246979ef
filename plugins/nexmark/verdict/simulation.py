"""What the gate does on nights whose truth is known: ``python -m nexmark.verdict.simulation``.

Runs the code that judges a night (``nexmark.verdict.decision``) over simulated log times, after
research/regression-gates.md section 5: host effect of the night (AR(1), rho 0.7, shared by all
queries and both arms) + a start-up effect of each JVM (0.3 CV) + a slow wander shared by the two
runs of a pair (0.71 CV) + independent noise (0.71 CV) + spikes (2 % of the runs, exponential,
30 %). A night of the host's shift is 8 % slower from some moment of it on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nexmark.verdict.decision import Decision, History, Picked, decide
from nexmark.verdict.drift import Drift
from nexmark.verdict.location import Array, hodges_lehmann, spread
from nexmark.verdict.rules import Rules

QUERIES = 23
PAIRS = 5
SLOWED = 2
"""Queries of a suite that get slower."""
AFTER = 7
NULL_NIGHTS = 40
EFFECTS = (0.03, 0.05, 0.10, 0.20)
HOST_SHIFT = math.log(1.08)
CANARY_NOISE = 0.3


@dataclass(frozen=True)
class World:
    """How the runs of a suite spread. ``cv`` is that of one run within a night.

    ``fresh_jvm``: every repetition starts its own JVM, else one JVM per arm and stage.
    ``host`` is the spread between nights over ``cv``.
    """

    name: str
    cv: float
    fresh_jvm: bool = True
    host: float = 1.0
    spikes: float = 0.02
    shared: float = 0.5
    uneven: bool = False

    def scale(self) -> Array:
        """Return the noise of each query (queries,): all the same, or from a half to double."""
        steps = np.linspace(-1.0, 1.0, QUERIES) if self.uneven else np.zeros(QUERIES)
        return self.cv * 2.0**steps


class Source:
    """Draws log ratios and log times of one arm for many suites."""

    def __init__(self, world: World, suites: int, rng: np.random.Generator) -> None:
        """Start with quiet queries."""
        self.world, self.suites, self.rng = world, suites, rng
        self.scale = world.scale()
        self.host = rng.standard_normal(suites) * world.host * world.cv

    def runs(self, scale: Array, count: int) -> Array:
        """Return the log times of both arms, (..., pairs, 2), for noise of shape (...)."""
        rng, world = self.rng, self.world
        shape = (*scale.shape, count)
        wide = scale[..., None, None]
        own = math.sqrt(1 - world.shared)
        jvm = rng.standard_normal((*shape, 2) if world.fresh_jvm else (*scale.shape, 1, 2))
        times = wide * (0.3 * jvm + own * rng.standard_normal((*shape, 2)))
        times = times + wide * math.sqrt(world.shared) * rng.standard_normal((*shape, 1))
        spiked = rng.random((*shape, 2)) < world.spikes
        slowed = np.where(spiked, rng.exponential(0.3, (*shape, 2)), 0.0)
        result: Array = times + np.log1p(slowed)
        return result

    def pairs(self, slower: Array, scale: Array, count: int) -> Array:
        """Return log ratios (..., pairs) of queries slower by ``slower`` (log) than their baseline.

        The host's effect of the night is the same in both arms and drops out.
        """
        times = self.runs(scale, count)
        result: Array = times[..., 0] - times[..., 1] + slower[..., None]
        return result

    def night(self, slower: Array, count: int) -> Array:
        """Return the first pairs of a night, (suites, queries, pairs)."""
        scale = np.broadcast_to(self.scale, (self.suites, QUERIES))
        return self.pairs(np.broadcast_to(slower, scale.shape), scale, count)


class Suites:
    """Many suites that live through one night after the other, judged by the shipped gate."""

    def __init__(self, world: World, rules: Rules, suites: int, rng: np.random.Generator) -> None:
        """Let ``rules.history_nights`` quiet nights pass."""
        self.source = Source(world, suites, rng)
        self.rules = rules
        nights = [self.source.night(np.zeros(()), PAIRS) for _ in range(rules.history_nights)]
        shift = np.stack([hodges_lehmann(night) for night in nights], axis=-1)
        deviation = np.stack([spread(night) for night in nights], axis=-1)
        zero = np.zeros((suites, QUERIES))
        pairs = np.full(shift.shape, float(PAIRS))
        self.history = History(shift, deviation, pairs, shift.mean(axis=1), Drift(zero, zero))

    def live(self, slower: Array, moved: bool = False) -> Decision:
        """Measure, judge and remember one night; ``slower`` (queries,) is the truth in log."""
        ratios = self.source.night(slower, PAIRS)
        if moved:
            ratios = self._host_moves(ratios)

        def fresh(picked: Picked) -> Array:
            query = picked[-1]
            count = PAIRS * self.rules.confirmation
            truth = np.broadcast_to(slower, (QUERIES,))[query]
            return self.source.pairs(truth, self.source.scale[query], count)

        decision = decide(ratios, self.history, fresh, self.rules)
        self._remember(ratios, decision)
        return decision

    def _host_moves(self, ratios: Array) -> Array:
        """Let the host get slower between the two runs of one pair of each suite."""
        rng, ratios = self.source.rng, ratios.copy()
        suites = np.arange(ratios.shape[0])
        query, pair = rng.integers(QUERIES, size=suites.size), rng.integers(PAIRS, size=suites.size)
        ratios[suites, query, pair] += HOST_SHIFT * rng.choice([-1.0, 1.0], size=suites.size)
        return ratios

    def _remember(self, ratios: Array, decision: Decision) -> None:
        past = self.history
        kept = np.where(decision.confirmed == 0, decision.first.shift, np.nan)
        self.history = History(
            _later(past.shift, kept),
            _later(past.spread, spread(ratios)),
            past.pairs,
            _later(past.suite, decision.suite_shift),
            decision.drift,
        )


def _later(series: Array, value: Array) -> Array:
    return np.concatenate([series[..., 1:], value[..., None]], axis=-1)
