"""Collapsed stacks: how often each stack was seen, and what its CPU time was.

As text they are one stack a line, outermost frame first, as flame graph tools read them:

    Executor task launch worker;java.lang.Thread.run;...;java.util.HashMap.get 17
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from nexmark.errors import NexmarkError
from nexmark.flames.frames import plain
from nexmark.flames.recording import Sample

Stack: TypeAlias = tuple[str, ...]

_DAY_S = 24 * 3600
#: The first sample of a whole recording is before what is looked at; the clocks may be so far off.
_LATE_S = 5.0


@dataclass(frozen=True)
class Window:
    """What of a recording counts; epoch seconds by the clock of the host that recorded."""

    start: float
    end: float


def collapse(samples: Iterable[Sample], window: Window | None, where: str) -> Counter[Stack]:
    """How often each stack was seen running within `window`; None: the whole recording.

    NexmarkError, with `where`, if the recording begins only after the window has.
    """
    counts: Counter[Stack] = Counter()
    late = _DAY_S / 2
    for sample in samples:
        after = _after(sample.second, window) if window else 0.0
        late = min(late, after)
        if sample.waits or (window and not 0 <= after <= window.end - window.start):
            continue
        counts[sample.stack] += 1
    if window and late > _LATE_S:
        raise NexmarkError(
            f"{where}: the recording begins {late:.0f} s after the steady state; "
            "it was larger than it may be, or not written to its end"
        )
    return counts


def _after(second: float, window: Window) -> float:
    """Seconds from the start of the window to a time of day: half a day before to half after."""
    half = _DAY_S / 2
    return (second - window.start % _DAY_S + half) % _DAY_S - half


def write_stacks(path: Path, counts: Mapping[Stack, int]) -> None:
    """Write collapsed stacks as text, in the order of their names."""
    lines = (f"{';'.join(map(plain, stack))} {count}\n" for stack, count in sorted(counts.items()))
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    temporary.replace(path)


def read_stacks(path: Path) -> Counter[Stack]:
    """Read collapsed stacks; NexmarkError naming the line that is none."""
    counts: Counter[Stack] = Counter()
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            stack, _, count = line.rstrip("\n").rpartition(" ")
            if not stack or not count.isdecimal():
                raise NexmarkError(f"{path}: line {number} is no collapsed stack: {line[:60]!r}")
            counts[tuple(stack.split(";"))] += int(count)
    return counts


@dataclass(frozen=True)
class Profile:
    """The collapsed stacks of an arm and what they stand for.

    `cpu_s_per_mevent` is the CPU time of its executors (CPU-seconds per million events) as it was
    measured while they were recorded, without Python workers.
    """

    counts: Mapping[Stack, int]
    cpu_s_per_mevent: float

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return sum(self.counts.values())

    @property
    def cost(self) -> float:
        """CPU-seconds per million events that a sample stands for."""
        return self.cpu_s_per_mevent / self.samples


__all__ = ["Profile", "Stack", "Window", "collapse", "read_stacks", "write_stacks"]
