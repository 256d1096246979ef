"""Whether the source of a query was fast enough, for the figures to be the query's own.

A query that waits for its broker costs little CPU time per event and much wall time, whatever its
build is worth. So a query has no verdict unless a consumer that does nothing else reads the same
topic several times as fast (`source_headroom` of the gate).
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from nexmark.config import Gate
from nexmark.model import READ_RATE, SOURCE_RATE
from nexmark.verdict.measured_night import Measured


def source_bound(measured: Sequence[Measured], rules: Gate) -> dict[str, str]:
    """Return by query why its figures may be the source's; of the faster arm."""
    rates = {(one.query, one.metric): _rates(one) for one in measured}
    found = {}
    for query in dict.fromkeys(one.query for one in measured):
        alone = rates.get((query, SOURCE_RATE), ())
        read = rates.get((query, READ_RATE), ())
        if alone and read and min(alone) < rules.source_headroom * max(read):
            found[query] = (
                f"a consumer alone reads {min(alone):,.0f} records per second, the query "
                f"{max(read):,.0f}: {min(alone) / max(read):.1f} times, less than "
                f"{rules.source_headroom:g}; the figures may be the source's"
            )
    return found


def _rates(one: Measured) -> list[float]:
    """Return the median of each arm."""
    arms = (
        [value for pair in one.pairs if (value := getattr(pair, arm)) is not None]
        for arm in ("candidate", "baseline")
    )
    return [median(values) for values in arms if values]
