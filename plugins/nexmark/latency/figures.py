"""Compute the figures of one paced run: percentiles, and whether they can be believed."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hdrh.histogram import HdrHistogram

from nexmark.latency.matching import Matched
from nexmark.latency.pacing import PacedEvent

MAX_LAG_MS = 5.0
"""If the producer was later than this (99th percentile), the figures are the producer's own."""

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
_LONGEST_MS = 3_600_000
_DIGITS = 3
_GROWTH = 0.1
_GROWTH_MS = 1_000


@dataclass(frozen=True)
class LatencyFigures:
    """The figures of a paced run, for the events after the warm-up; times are in milliseconds.

    `p50` and `p99` are the percentiles for comparisons. The broker's clock has whole milliseconds;
    these two spread the events of one millisecond over it.
    """

    query: str
    trigger: str
    rate: int  # events per second
    events: int  # how many bids have a latency
    percentiles: tuple[int, ...]  # at 50, 90, 99 and 99.9 percent
    p50: float
    p99: float
    longest: int
    lag_p99: float  # how late the producer sent events, 99th percentile
    keeps_up: bool  # whether the latency grows by less than a tenth of the time that passes
    invalid: str  # why the figures cannot be believed; empty if they can
    histogram: str  # all latencies as HdrHistogram encodes them, in base64; they can be added
    sent: int  # how many events were sent, the warm-up included
    first_ms: int  # when the first event was due
    from_ms: int  # when the first event that counts was due
    last_ms: int


def figures(
    query: str,
    trigger: str,
    rate: int,
    matched: Matched,
    lags: Sequence[float],
    sent: Sequence[PacedEvent],
    from_ms: int,
) -> LatencyFigures:
    """Compute the figures of a run, from the events that are due from `from_ms` on.

    Args:
        query: The query.
        trigger: Its trigger.
        rate: Events per second.
        matched: The latencies of its events.
        lags: How late the producer sent each of these events, in milliseconds.
        sent: All events, the warm-up included.
        from_ms: When the first event that counts was due, in milliseconds since 1970.
    """
    counted = sorted((due, latency) for due, latency in matched.latencies if due >= from_ms)
    histogram = HdrHistogram(1, _LONGEST_MS, _DIGITS)
    for _, latency in counted:
        histogram.record_value(max(0, latency))
    lag = statistics.quantiles(lags, n=100)[98]
    return LatencyFigures(
        query,
        trigger,
        rate,
        events=len(counted),
        percentiles=tuple(histogram.get_value_at_percentile(at) for at in PERCENTILES),
        p50=_within(counted, 0.5),
        p99=_within(counted, 0.99),
        longest=max((latency for _, latency in counted), default=0),
        lag_p99=lag,
        keeps_up=_keeps_up(counted),
        invalid=_invalid(matched, counted, lag),
        histogram=histogram.encode().decode(),
        sent=len(sent),
        first_ms=sent[0].due_ms,
        from_ms=from_ms,
        last_ms=sent[-1].due_ms,
    )


def _within(counted: Sequence[tuple[int, int]], part: float) -> float:
    """Return a quantile of the latencies (ms), with the events of one millisecond spread over it.

    `counted` has the due time and the latency of each event, `part` is between 0 and 1.
    """
    counts = sorted(Counter(latency for _, latency in counted).items())
    rank, below = part * len(counted), 0
    for latency, count in counts:
        if below + count >= rank:
            return latency + (rank - below) / count
        below += count
    return 0.0


def _invalid(matched: Matched, counted: Sequence[tuple[int, int]], lag: float) -> str:
    """Return the reasons why the figures cannot be believed; "" if they can."""
    earliest = min((latency for _, latency in counted), default=0)
    reasons = []
    if not counted:
        reasons.append("no event has a latency")
    if matched.missing:
        reasons.append(f"{matched.missing:,} events are in no output row")
    if lag > MAX_LAG_MS:
        reasons.append(f"the producer was {lag:.1f} ms late (p99), more than {MAX_LAG_MS:.0f} ms")
    if earliest < 0:
        reasons.append(f"an output row is {-earliest} ms older than its event: clocks differ")
    return "; ".join(reasons)


def _keeps_up(counted: Sequence[tuple[int, int]]) -> bool:
    """Return whether the latencies do not grow, by a line through (due time, latency), in ms.

    A query that processes only a part of each second's input falls behind by the rest. A growth of
    less than a second in all is noise of a short run.
    """
    if not counted:
        return False
    dues, latencies = zip(*counted, strict=True)
    passed = dues[-1] - dues[0]
    if passed == 0:
        return True
    slope = statistics.linear_regression(dues, latencies).slope
    return bool(slope < max(_GROWTH, _GROWTH_MS / passed))
