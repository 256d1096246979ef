"""Write a line about the progress of a running query, and read such a line again.

The lines cost the measured application nothing: the driver asks Spark for the progress anyway, and
the driver's own Python process is not measured.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the module imports pyspark, which readers of lines do not need
    from nexmark_jobs.progress import Batch

#: The shortest time between two lines; the first batch and the end of the data always have one.
INTERVAL = timedelta(seconds=5)

#: The line about a query that ended: its number, the number of queries, its name, how it ended.
QUERY_ENDED = "{} of {} queries: {} {}"

_LINE = re.compile(
    r"batch (\d+)  ([\d,]+) of ([\d,]+) events  (\d+) %  ([\d,]+) events/s  ETA (\d+):(\d\d)"
)


@dataclass
class ProgressReporter:
    """Reports the batches of a query over `events` events: events done, share, speed, time left."""

    events: int
    done: int = 0
    busy_s: float = 0.0
    reported_at: datetime | None = None

    def line(self, batch: "Batch") -> str | None:
        """Return the line about `batch`; None if the last line is less than `INTERVAL` ago.

        Batches have to come in order. The speed is the mean since the start.
        """
        seconds = batch.duration_ms / 1000
        if batch.phase == "data":
            self.done += batch.input_rows
            self.busy_s += seconds
        is_last = batch.phase == "data" and self.done >= self.events
        if self.reported_at is not None and batch.end - self.reported_at < INTERVAL and not is_last:
            return None
        self.reported_at = batch.end
        if batch.phase != "data":
            return f"batch {batch.id}  end of input  {seconds:.1f} s"
        speed = self.done / max(self.busy_s, 0.001)
        left = int((self.events - self.done) / max(speed, 0.001))
        return (
            f"batch {batch.id}  {self.done:,} of {self.events:,} events"
            f"  {100 * self.done / max(self.events, 1):.0f} %  {speed:,.0f} events/s"
            f"  ETA {left // 60}:{left % 60:02d}"
        )


@dataclass(frozen=True)
class ReportedProgress:
    """What a line says: events done, of all `events`, events per second, seconds left."""

    done: int
    events: int
    speed: int
    left_s: int

    @property
    def share(self) -> float:
        """Return the part of the events that is done, from 0 to 1."""
        return min(1.0, self.done / self.events) if self.events else 1.0


def is_query_ended(line: str) -> bool:
    """Return whether a line has the form of `QUERY_ENDED`."""
    return re.match(r"\d+ of \d+ queries: q", line) is not None


def read_progress(line: str) -> ReportedProgress | None:
    """Return what a line of `ProgressReporter` says; None for any other line."""
    match = _LINE.fullmatch(line.strip())
    if match is None:
        return None
    numbers = (int(group.replace(",", "")) for group in match.groups())
    _, done, events, _, speed, minutes, seconds = numbers
    return ReportedProgress(done, events, speed, 60 * minutes + seconds)
