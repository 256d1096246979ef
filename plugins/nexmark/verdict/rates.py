"""How often the nightly self-test of the gate was right: false alarms and recall, with intervals.

Every night one query has an A/A pair set, which must be silent, and one a seeded slowdown, which
must fire. The interval is Wilson's (1927), which is right near 0 and 1 too.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from scipy.stats import binomtest

from nexmark.model import Value

CONFIDENCE = 0.95


class Test(StrEnum):
    """The kind of a self-test of the gate."""

    __test__ = False  # for pytest: this is no class of tests

    AA = "aa"
    """Pairs of one and the same build."""
    SLOWDOWN = "slowdown"
    """Pairs of a build and the same one made slower."""


def alarmed(value: Value) -> bool | None:
    """Tell whether a self-test alarmed: REGRESSION alone, not SUSPECT; None without a verdict."""
    if value in (Value.NO_BASELINE, Value.INVALID, Value.MISSING, Value.SOURCE_BOUND):
        return None
    return value is Value.REGRESSION


@dataclass(frozen=True)
class Rate:
    """``hits`` of ``count``; ``rate`` and its 95 % interval are shares, None without any."""

    count: int
    hits: int
    rate: float | None = None
    lo: float | None = None
    hi: float | None = None


@dataclass(frozen=True)
class Rates:
    """The rates of alarms of A/A pairs and of slowdowns found, by this ``version`` of the gate."""

    false_alarms: Rate
    recall: Rate
    version: int | None = None

    @property
    def words(self) -> str:
        """One line: the rates and how bad they may be in truth."""
        alarms, slowdowns = self.false_alarms, self.recall
        parts = [f"{alarms.hits} of {alarms.count} A/A pair sets alarmed"]
        if alarms.rate is not None:
            parts[0] += f" ({_percent(alarms.rate)}, at most {_percent(alarms.hi)})"
        parts.append(f"{slowdowns.hits} of {slowdowns.count} seeded slowdowns found")
        if slowdowns.rate is not None:
            parts[1] += f" ({_percent(slowdowns.rate)}, at least {_percent(slowdowns.lo)})"
        if self.version is not None:
            parts.append(f"gate version {self.version}")
        return f"self-test: {', '.join(parts)}"


def rates(results: Iterable[tuple[Test, bool | None]], version: int | None = None) -> Rates:
    """Return the rates of tests, each with whether it ``alarmed``, of a ``version`` of the gate."""
    seen = Counter(results)
    alarms, slowdowns = (
        rate(seen[test, True] + seen[test, False], seen[test, True]) for test in Test
    )
    return Rates(alarms, slowdowns, version)


@cache
def rate(count: int, hits: int) -> Rate:
    """Return hits of count with the Wilson interval."""
    if count == 0:
        return Rate(0, 0)
    interval = binomtest(hits, count).proportion_ci(CONFIDENCE, method="wilson")
    return Rate(count, hits, hits / count, float(interval.low), float(interval.high))


def _percent(share: float | None) -> str:
    return "?" if share is None else f"{100 * share:.1f} %"
