"""The latencies of a query by arm: all events of its repetitions together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nexmark.model import ARMS
from nexmark.store.table_rows import RepetitionRow

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
_CURVE = (
    *(0.0, 25.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 92.5, 95.0, 96.0, 97.0, 98.0),
    *(99.0, 99.25, 99.5, 99.75, 99.9, 99.95, 99.99),
)
_LONGEST_MS, _DIGITS = 3_600_000, 3


@dataclass(frozen=True)
class ArmLatency:
    """The latencies of an arm, in milliseconds.

    ``percentiles`` are at 50, 90, 99 and 99.9 percent; ``curve`` has pairs of percent and latency,
    as far as there are events enough.
    """

    arm: str
    repetitions: int
    events: int
    percentiles: tuple[int, ...]
    longest: int
    curve: tuple[tuple[float, int], ...]


def latencies_of(rows: Iterable[RepetitionRow]) -> list[ArmLatency]:
    """Return the latencies of both arms, of the repetitions that count; none if none is paced."""
    counting = [row for row in rows if row.ok and row.latency]
    if not counting:
        return []
    from hdrh.histogram import HdrHistogram

    found = []
    for arm in ARMS:
        own = [row.latency for row in counting if row.arm == arm]
        if not own:
            continue
        total = HdrHistogram(1, _LONGEST_MS, _DIGITS)
        for encoded in own:
            total.add(HdrHistogram.decode(encoded))
        events = int(total.get_total_count())
        known = [percent for percent in _CURVE if (100 - percent) * events >= 100]
        found.append(
            ArmLatency(
                arm,
                len(own),
                events,
                tuple(int(total.get_value_at_percentile(at)) for at in PERCENTILES),
                int(total.get_max_value()),
                tuple((at, int(total.get_value_at_percentile(at))) for at in known),
            )
        )
    return found
