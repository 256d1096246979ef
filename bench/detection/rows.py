"""Compute the true effect of a cause, and write the line of its judged night in the table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.detection.bench import Done

if TYPE_CHECKING:
    from nexmark.store import Store
    from nexmark.verdict.verdict import Verdict

CPU, WALL = "cpu_s_per_mevent", "wall_s"
_LINE = "{:<13} {:<15} {:<22} {:<22} {:<12} {:<22} {:<12} {:>7} {:>6} {:>6}"
_HEADS = "cause, query, true CPU ratio, true wall ratio, verdict, found, wall, pairs, of all, min"
HEAD = _LINE.format(*_HEADS.split(", "))


@dataclass(frozen=True)
class Effect:
    """A ratio candidate / baseline with its 95 % interval, and the number of its pairs."""

    ratio: float
    lo: float
    hi: float
    pairs: int

    def __str__(self) -> str:
        """Return the ratio and its interval, like 1.123 (1.098-1.145)."""
        return f"{self.ratio:.3f} ({self.lo:.3f}-{self.hi:.3f})"


def effect(store: Store, runs: Iterable[str], query: str, metric: str) -> Effect | None:
    """Return the effect in all pairs of some nights; None if there are fewer than three pairs.

    Args:
        store: The results database.
        runs: The names of the nights.
        query: The query.
        metric: The metric.
    """
    import numpy as np

    from nexmark.model import MIN_PAIRS
    from nexmark.verdict.location import hodges_lehmann, interval

    ratios = [
        pair.ratio
        for run in runs
        for measured in store.paired_night(run).measured
        if (measured.query, measured.metric) == (query, metric)
        for pair in measured.all_pairs
    ]
    known = np.asarray([ratio for ratio in ratios if not math.isnan(ratio)], dtype=np.float64)
    if known.size < MIN_PAIRS:
        return None
    lo, hi = interval(known)
    return Effect(math.exp(hodges_lehmann(known)), math.exp(lo), math.exp(hi), int(known.size))


def line(
    store: Store, name: str, query: str, judged: Done, all_of_it: Sequence[Done]
) -> tuple[str, bool]:
    """Return the line of a judged night, and whether its query is red.

    Args:
        store: The results database.
        name: The name of the cause.
        query: The query.
        judged: The judged night.
        all_of_it: All nights with this cause, also `judged`: their pairs show its true effect.
    """
    runs = list(dict.fromkeys(done.run for done in all_of_it))
    rows = [row for row in store.verdicts(judged.run) if row.query == query]
    verdict = next((row for row in rows if row.decides), None)
    clock = next((row for row in rows if row.metric == WALL), None)
    metrics = (verdict.metric if verdict else CPU, WALL)
    true, wall = (effect(store, runs, query, metric) for metric in metrics)
    pairs = f"{verdict.pairs}+{verdict.fresh_pairs}" if verdict else "-"
    text = _LINE.format(
        name,
        query,
        str(true or "-"),
        str(wall or "-"),
        verdict.value if verdict else "MISSING",
        _found(verdict),
        clock.value if clock else "-",
        pairs,
        true.pairs if true else 0,
        f"{judged.minutes:.1f}",
    )
    return text, verdict is None or verdict.red


def _found(verdict: Verdict | None) -> str:
    """Return the ratio and the interval of a verdict; "-" if it has none."""
    if verdict is None or verdict.ratio is None or verdict.lo is None or verdict.hi is None:
        return "-"
    return str(Effect(verdict.ratio, verdict.lo, verdict.hi, verdict.pairs))
