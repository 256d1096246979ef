"""Nights for the gate: quiet ones by default, a test states only what differs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from nexmark.config import Gate
from nexmark.config.load import load_gate
from nexmark.verdict.measured_night import Measured, MeasuredNight, Pair
from nexmark.verdict.nightly import judge_night, replay
from nexmark.verdict.verdict import Verdict

CPU = "cpu_s_per_mevent"
QUERIES = tuple(f"q{number}" for number in range(12))
CV = 0.02
"""Noise of the log ratio of a pair."""
CALIBRATED = 15
RNG_SEED = 3


@cache
def shipped() -> Gate:
    """The shipped settings, with two rounds: 5 pairs, and 10 of what looks changed."""
    return load_gate().model_copy(update={"rounds": (5, 10), "pursue_z": (1.4,)})


def rules(**changes: Any) -> Gate:
    """These settings with changes."""
    return shipped().model_copy(update=changes)


def pairs(ratios: Sequence[float], level: float = 10.0) -> tuple[Pair, ...]:
    """Pairs of these ratios."""
    return tuple(Pair(i, level * ratio, level) for i, ratio in enumerate(ratios, 1))


def around(ratio: float, count: int, rng: np.random.Generator, cv: float = CV) -> tuple[Pair, ...]:
    """Pairs that spread about a ratio by ``cv``, their Hodges-Lehmann estimate being just that."""
    half = cv * np.linspace(0.5, 1.3, count // 2) * rng.uniform(0.8, 1.2, count // 2)
    logs = [*half, *-half, *([0.0] * (count % 2))]
    return pairs([ratio * math.exp(x) for x in logs])


def noisy(ratio: float, count: int, rng: np.random.Generator, cv: float = CV) -> tuple[Pair, ...]:
    """Pairs with independent noise."""
    return pairs([ratio * math.exp(x) for x in rng.normal(0, cv, count)])


def night(
    name: str = "tonight", seed: int = 999, metric: str = CPU, **changes: Any
) -> MeasuredNight:
    """A quiet night: every query's estimate is 1 exactly."""
    rng = np.random.default_rng(seed)
    measured = tuple(Measured(query, metric, around(1.0, 5, rng)) for query in QUERIES)
    return replace(MeasuredNight(name, measured), **changes)


def with_query(base: MeasuredNight, query: str, **changes: Any) -> MeasuredNight:
    """The night with another q."""
    rows = tuple(replace(x, **changes) if x.query == query else x for x in base.measured)
    return replace(base, measured=rows)


def tonight(ratio: float, fresh: float | None = None, fresh_count: int = 10) -> MeasuredNight:
    """A quiet night in which q5 has this ratio at first, and this one in fresh pairs."""
    rng = np.random.default_rng(RNG_SEED)
    later = (around(fresh, fresh_count, rng),) if fresh is not None else ()
    return with_query(night(), "q5", pairs=around(ratio, 5, rng), later=later)


@cache
def quiet_nights(count: int, metrics: tuple[str, ...] = (CPU,)) -> tuple[MeasuredNight, ...]:
    """Nights with noise only."""
    rng = np.random.default_rng(17)
    return tuple(
        MeasuredNight(
            f"night-{number}",
            tuple(Measured(q, metric, noisy(1.0, 5, rng)) for q in QUERIES for metric in metrics),
        )
        for number in range(count)
    )


@cache
def earlier(
    count: int = CALIBRATED, metrics: tuple[str, ...] = (CPU,)
) -> tuple[tuple[Verdict, ...], ...]:
    """The verdicts of quiet nights."""
    return tuple(map(tuple, replay(quiet_nights(count, metrics), rules())))


def verdict(some: MeasuredNight, query: str = "q5", metric: str = CPU, **options: Any) -> Verdict:
    """The verdict on one query of a night after quiet ones."""
    before = options.pop("before", None)
    found = judge_night(some, earlier() if before is None else before, rules(**options))
    (only,) = [x for x in found if (x.query, x.metric) == (query, metric)]
    return only
