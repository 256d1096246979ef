"""Read the samples a host's CPU sampler wrote (format 1 of ``nexmark_jobs/cpu_sampler.py``)."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from nexmark.errors import NexmarkError

FORMAT = 1
MAX_CLOCK_STEP_S = 0.5


class MeasurementError(NexmarkError):
    """A measurement cannot be made; the text is one line: what, where, remedy."""


class ProcessKey(NamedTuple):
    """Names a process for good, also where pids are used again."""

    pid: int
    starttime: int


class Reading(NamedTuple):
    """One process at one tick; CPU times in clock ticks."""

    ppid: int
    own: int
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
    """All processes at one instant: ``mono`` and ``wall`` in seconds, ``host_cpu`` in ticks."""

    wall: float
    mono: float
    host_cpu: tuple[int, ...]
    processes: dict[ProcessKey, Reading]


@dataclass(frozen=True)
class HostSamples:
    """Everything one sampler wrote on one host; ``programs``: the last known of each process.

    ``sampler_cpu_s`` and ``elapsed_s`` are of the sampler itself, None when it was killed.
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
        """Return the instants of the ticks in seconds since the epoch, on one steady clock.

        That is the monotonic clock, moved to the median of its distance from the wall clock, less
        ``clock_offset_s``, by which the host is ahead of the driver. MeasurementError when the wall
        clock was set during the samples.
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
        """Return when a process started, on the clock of ``times``; ``seen``: its first tick."""
        first = self.times()[seen]
        age = self.ticks[seen].mono + self.slept_s - process.starttime / self.clk_tck
        return first - max(age, 0.0)


def read_samples(path: Path, clock_offset_s: float = 0.0) -> HostSamples:
    """Return the samples of a file; MeasurementError when it is missing or not of this format."""
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            return replace(parse_samples(stream, str(path)), clock_offset_s=clock_offset_s)
    except OSError as error:
        raise MeasurementError(
            f"no samples: {path}: {error.strerror}; see the log of the sampler on that host"
        ) from error


def parse_samples(lines: Iterable[str], source: str) -> HostSamples:
    """Return the samples in the lines; ``source`` names them in errors.

    A last line cut short (sampler killed, disk full) is left out. MeasurementError for any other
    that is not of the format, and for samples without a single tick.
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
    end = records[-1]  # a tick, which tells nothing of the sampler, where it was killed
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
