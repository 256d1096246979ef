"""What came of the nights of a cause, in numbers and as a line of the table."""

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
HEAD = _LINE.format(
    "cause",
    "query",
    "true CPU ratio",
    "true wall ratio",
    "verdict",
    "found",
    "wall",
    "pairs",
    "of all",
    "min",
)


@dataclass(frozen=True)
class Effect:
    """A ratio with its 95 % interval, and the number of pairs behind it."""

    ratio: float
    lo: float
    hi: float
    pairs: int

    def __str__(self) -> str:
        """1.123 (1.098-1.145)."""
        return f"{self.ratio:.3f} ({self.lo:.3f}-{self.hi:.3f})"


def effect(store: Store, runs: Iterable[str], query: str, metric: str) -> Effect | None:
    """The effect in all pairs of nights, first and fresh ones; None where there are too few."""
    import numpy as np

    from nexmark.model import MIN_PAIRS
    from nexmark.verdict.location import hodges_lehmann, interval

    ratios = [
        pair.ratio
        for run in runs
        for one in store.paired_night(run).measured
        if (one.query, one.metric) == (query, metric)
        for pair in one.all_pairs
    ]
    known = np.asarray([ratio for ratio in ratios if not math.isnan(ratio)], dtype=np.float64)
    if known.size < MIN_PAIRS:
        return None
    lo, hi = interval(known)
    return Effect(math.exp(hodges_lehmann(known)), math.exp(lo), math.exp(hi), int(known.size))


def line(
    store: Store, name: str, query: str, judged: Done, all_of_it: Sequence[Done]
) -> tuple[str, bool]:
    """The line on a judged night, and whether the gate found its query red.

    The true effect is computed from the pairs of all nights with this cause, including `judged`.
    """
    runs = list(dict.fromkeys(done.run for done in all_of_it))
    true, wall = (effect(store, runs, query, metric) for metric in (CPU, WALL))
    rows = {row.metric: row for row in store.verdicts(judged.run) if row.query == query}
    verdict, clock = rows.get(CPU), rows.get(WALL)
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


def _found(row: Verdict | None) -> str:
    if row is None or row.ratio is None or row.lo is None or row.hi is None:
        return "-"
    return str(Effect(row.ratio, row.lo, row.hi, row.pairs))
