"""Read the samples that the CPU sampler of a host wrote (``nexmark_jobs/cpu_sampler.py``)."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from nexmark.errors import NexmarkError

FORMAT = 1
"""The version of the sampler's file format."""
MAX_CLOCK_STEP_S = 0.5
"""If the wall clock moved by more against the monotonic clock, somebody set it."""


class MeasurementError(NexmarkError):
    """A measurement cannot be made; the text is one line: what, where, remedy."""


class ProcessKey(NamedTuple):
    """Identifies a process, even if its pid is used again later; ``starttime`` in clock ticks."""

    pid: int
    starttime: int


class Reading(NamedTuple):
    """One process at one tick; CPU times in clock ticks.

    ``used`` is the CPU time of the process itself; ``waited`` is the CPU time of the children that
    it has waited for.
    """

    ppid: int
    used: int
    waited: int


@dataclass(frozen=True)
class SampledProgram:
    """The identity of a process, with the fields of a ``proc`` line."""

    role: str
    root: int
    cmd: str
    app_id: str | None = None
    label: str | None = None


@dataclass(frozen=True)
class Tick:
    """All processes at one instant.

    ``wall`` and ``mono`` are the wall clock and the monotonic clock in seconds. ``host_cpu`` has
    the figures of the ``cpu`` line of /proc/stat, in clock ticks.
    """

    wall: float
    mono: float
    host_cpu: tuple[int, ...]
    processes: dict[ProcessKey, Reading]


@dataclass(frozen=True)
class HostSamples:
    """Everything that one sampler wrote on one host.

    ``programs`` is by process; of a process that ran several programs, the last one.
    ``clock_offset_s``: by how many seconds the clock of the host is ahead of the driver's.
    ``sampler_cpu_s`` and ``elapsed_s`` are of the sampler itself; None if it was killed.
    ``slept_s``: by how much the clock since boot, on which processes start, is ahead of ``mono``.
    """

    host: str
    clk_tck: int
    cpus: int
    interval_s: float
    scope: str
    programs: dict[ProcessKey, SampledProgram]
    ticks: tuple[Tick, ...]
    clock_offset_s: float = 0.0
    sampler_cpu_s: float | None = None
    elapsed_s: float | None = None
    slept_s: float = 0.0

    def times(self) -> tuple[float, ...]:
        """Return the instants of the ticks in seconds since the epoch, on the driver's clock.

        They are readings of the monotonic clock, to which the median distance of the wall clock is
        added, less ``clock_offset_s``. MeasurementError if the wall clock was set meanwhile.
        """
        distances = [tick.wall - tick.mono for tick in self.ticks]
        step = max(distances) - min(distances)
        if step > MAX_CLOCK_STEP_S:
            raise MeasurementError(
                f"the clock of host {self.host} was moved by {step:.3f} s during the samples;"
                " let it be disciplined slowly (chrony, slew) and run again"
            )
        offset = median(distances) - self.clock_offset_s
        return tuple(tick.mono + offset for tick in self.ticks)

    def started(self, process: ProcessKey, seen: int) -> float:
        """Return when a process started, on the clock of ``times``.

        ``seen`` is the number of the first tick that has the process.
        """
        first = self.times()[seen]
        age = self.ticks[seen].mono + self.slept_s - process.starttime / self.clk_tck
        return first - max(age, 0.0)


def read_samples(path: Path, clock_offset_s: float = 0.0) -> HostSamples:
    """Return the samples of a file; MeasurementError if it is missing or not of this format."""
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            return replace(parse_samples(stream, str(path)), clock_offset_s=clock_offset_s)
    except OSError as error:
        raise MeasurementError(
            f"no samples: {path}: {error.strerror}; see the log of the sampler on that host"
        ) from error


def parse_samples(lines: Iterable[str], source: str) -> HostSamples:
    """Return the samples in the lines; ``source`` names them in errors.

    A last line that was cut short (sampler killed, disk full) is left out. MeasurementError if
    another line is not of the format, or if there is not a single tick.
    """
    text = list(lines)
    while text and (not text[-1].endswith("\n") or not text[-1].strip()):
        text.pop()
    if not text:
        raise MeasurementError(f"{source}: no samples in it; see the log of the sampler")
    records = [_record(line, f"{source}:{number}") for number, line in enumerate(text, 1)]
    try:
        return _assemble(records, source)
    except (KeyError, TypeError, ValueError) as error:
        raise MeasurementError(
            f"{source}: not samples of format {FORMAT}: {error!r}; use the sampler of this package"
        ) from error


def _record(line: str, place: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise MeasurementError(f"{place}: not JSON: {error}; the file was damaged") from error
    if not isinstance(record, dict) or "kind" not in record:
        raise MeasurementError(f"{place}: not a sample line; the file was damaged")
    return record


def _assemble(records: Sequence[dict[str, Any]], source: str) -> HostSamples:
    header = records[0]
    if header["kind"] != "header" or header["format"] != FORMAT:
        raise ValueError(f"first line is no header of format {FORMAT}")
    ticks = tuple(_tick(record) for record in records if record["kind"] == "tick")
    if not ticks:
        raise MeasurementError(f"{source}: the sampler ended before its first reading")
    end = records[-1]  # of a killed sampler this is a tick, which has no figures of the sampler
    return HostSamples(
        host=str(header["host"]),
        clk_tck=int(header["clk_tck"]),
        cpus=int(header["cpus"]),
        interval_s=float(header["interval_s"]),
        scope=str(header["scope"]),
        programs={
            ProcessKey(record["pid"], record["starttime"]): SampledProgram(
                *(record[name] for name in ("role", "root", "cmd", "app_id", "label"))
            )
            for record in records
            if record["kind"] == "proc"
        },
        ticks=ticks,
        sampler_cpu_s=end.get("self_cpu_s"),
        elapsed_s=end.get("elapsed_s"),
        slept_s=header["boot"] - header["mono"],
    )


def _tick(record: dict[str, Any]) -> Tick:
    processes = {}
    for pid, ppid, starttime, utime, stime, cutime, cstime in record["procs"]:
        processes[ProcessKey(pid, starttime)] = Reading(ppid, utime + stime, cutime + cstime)
    host_cpu = tuple(int(ticks) for ticks in record["host_cpu"])
    return Tick(float(record["wall"]), float(record["mono"]), host_cpu, processes)
