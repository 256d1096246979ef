"""The CPU of an application on one host over time, and its stored form: about 5 bytes a figure."""

import json
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

from nexmark.measure.host_samples import MeasurementError

_COLUMNS = ("times", "executors", "python", "driver", "busy", "steal")
_MILLIS = 1000


@dataclass(frozen=True)
class CpuSeries:
    """Cumulative CPU-seconds of one application on one host at ``times`` (epoch seconds).

    ``executors`` are the JVMs, ``python`` their Python workers, ``driver`` the driver with all its
    children (None if it was not on this host). Only executors that lived while the query ran are in
    these figures; ``executor_count`` is their number. ``executor_starts`` are the times when they
    started, ``executor_ends`` the times of the first readings without one that had ended.
    ``executors_gone_before``: how many were lost before the first batch. ``busy`` and ``steal``
    are of the whole machine; None if the sampler saw only a part of it. ``interval_s`` is the time
    between two readings, ``sampler_cores`` the cores that the sampler itself used.
    """

    host: str
    interval_s: float
    times: tuple[float, ...]
    executors: tuple[float, ...]
    python: tuple[float, ...]
    driver: tuple[float, ...] | None
    busy: tuple[float, ...] | None
    steal: tuple[float, ...] | None
    executor_count: int
    sampler_cores: float | None
    executor_ends: tuple[float, ...] = ()
    executor_starts: tuple[float, ...] = ()
    executors_gone_before: int = 0

    def without_executors(self) -> "CpuSeries":
        """Return a copy without executors, if the samplers of other hosts count them."""
        nothing = (0.0,) * len(self.times)
        return replace(
            self,
            executors=nothing,
            python=nothing,
            executor_count=0,
            executor_starts=(),
            executor_ends=(),
            executors_gone_before=0,
        )

    def between(self, values: Sequence[float], start: float, end: float) -> float:
        """Return the growth of a cumulative series of this host from start to end.

        MeasurementError if the samples do not cover both.
        """
        return self.at(values, end) - self.at(values, start)

    def at(self, values: Sequence[float], instant: float) -> float:
        """Return the value of a cumulative series at an instant, linear between two readings.

        MeasurementError if the samples do not cover the instant.
        """
        right = self._bracket(instant)
        left_time, right_time = self.times[right - 1], self.times[right]
        share = (instant - left_time) / (right_time - left_time)
        return values[right - 1] + share * (values[right] - values[right - 1])

    def gap_at(self, instant: float) -> float:
        """Return the seconds between the two readings around an instant."""
        right = self._bracket(instant)
        return self.times[right] - self.times[right - 1]

    def _bracket(self, instant: float) -> int:
        """Return the number of the reading after an instant."""
        if len(self.times) < 2 or not self.times[0] <= instant <= self.times[-1]:
            off = max(self.times[0] - instant, instant - self.times[-1])
            edge = "begin after" if instant < self.times[0] else "end before"
            raise MeasurementError(
                f"the samples of host {self.host} {edge} the run ({off:.1f} s short);"
                " the sampler must run from before the query starts until it has ended"
            )
        return min(bisect_right(self.times, instant), len(self.times) - 1)


def pack(series: CpuSeries) -> bytes:
    """Return the series as compressed JSON, times and CPU-seconds rounded to milliseconds.

    Each column is stored as the differences of its values, which are small and repeat themselves.
    """
    content: dict[str, Any] = asdict(series)
    for column in _COLUMNS:
        if (values := content[column]) is not None:
            whole = [0, *(round(value * _MILLIS) for value in values)]
            content[column] = [later - earlier for earlier, later in pairwise(whole)]
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 9)


def unpack(data: bytes) -> CpuSeries:
    """Return the series that ``pack`` has packed."""
    content = json.loads(zlib.decompress(data))
    for moments in ("executor_starts", "executor_ends"):
        content[moments] = tuple(content[moments])
    for column in _COLUMNS:
        if (steps := content[column]) is not None:
            content[column] = tuple(total / _MILLIS for total in accumulate(steps))
    return CpuSeries(**content)
