"""Progress lines of a running query, and the parser of these lines.

They cost the measured application nothing: the driver asks Spark for this progress anyway, and its
own Python process is not measured.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it imports pyspark, and night.eta reads lines without
    from nexmark_jobs.progress import Batch

#: Seconds between two lines; the first batch and the end of the data always have one.
EVERY = timedelta(seconds=5)

#: The line about a query that ended: its number, of how many, its name, how it ended.
ENDED = "{} of {} queries: {} {}"

_LINE = re.compile(
    r"batch (\d+)  ([\d,]+) of ([\d,]+) events  (\d+) %  ([\d,]+) events/s  ETA (\d+):(\d\d)"
)


@dataclass
class Narrator:
    """Tells of batches of `events` in one line: events done, share, speed, time left."""

    events: int
    done: int = 0
    busy_s: float = 0.0
    told: datetime | None = None

    def line(self, batch: "Batch") -> str | None:
        """The line about `batch`, which must be the next one; None if it is too soon for another.

        The speed is the mean since the start.
        """
        seconds = batch.duration_ms / 1000
        if batch.phase == "data":
            self.done += batch.input_rows
            self.busy_s += seconds
        ends = batch.phase == "data" and self.done >= self.events
        if self.told is not None and batch.end - self.told < EVERY and not ends:
            return None
        self.told = batch.end
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
class Told:
    """A line that was read again; `left_s` are seconds."""

    done: int
    events: int
    speed: int
    left_s: int

    @property
    def share(self) -> float:
        """The part that is done, 0 to 1."""
        return min(1.0, self.done / self.events) if self.events else 1.0


def tells_of_query(line: str) -> bool:
    """Whether a line has the form `ENDED`."""
    return re.match(r"\d+ of \d+ queries: q", line) is not None


def read(line: str) -> Told | None:
    """The content of a narrator's line; None for another line."""
    found = _LINE.fullmatch(line.strip())
    if found is None:
        return None
    _, done, events, _, speed, minutes, seconds = (int(x.replace(",", "")) for x in found.groups())
    return Told(done, events, speed, 60 * minutes + seconds)
