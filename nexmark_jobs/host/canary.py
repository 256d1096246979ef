"""Run the canary: a fixed workload that is not Spark, and the state of the host meanwhile.

Request, every key optional:
    directory: where the fsync workload writes; without it, this workload is left out
    cpu_rounds, memory_rounds, fsync_rounds: rounds of each; 0 leaves a workload out
Answer: see `main`. About 2 s on a host at rest; nothing is left behind, not even by a kill.

Timings are in seconds per round, the lower decile of the rounds: the speed of the undisturbed host.
Neighbours for a second move a median by far more, while a lower clock rate or a slower machine
shows in the decile just as well. `nexmark bench canary` prints how steady it is:
    cpu_s         CPU time of a loop of integers and of hashing in cache: clock rate, neighbours
                  on the other thread of the core
    cpu_memory_s  CPU time of copying a buffer that no cache holds: bandwidth and neighbours on it
    fsync_s       wall time of appending 64 KiB and waiting until the disk has it
CPU time, because the gate decides by it: a host that is merely busy makes the work wait and changes
neither. Waiting shows in the levels. They cover the time of the first two workloads, without our
own writing and without anything that ended before:
    steal_percent            CPU time that the hypervisor gave to others, of all of it
    psi_cpu, psi_io, psi_memory
                             percent of the time in which some task waited for it ("some" of
                             /proc/pressure, from its total: avg10 remembers the last query)
    load_1m                  load average of one minute per core
    mhz                      clock rate, mean over the cores, read between rounds
    throttled                times that heat or the CPU quota of our cgroup held a core back
A value that a host does not have is absent, never 0.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from nexmark_jobs.host.processes import text_of

_MIB = 1 << 20
_ROUNDS = {"cpu": 61, "memory": 101, "fsync": 201}
_FEWEST = 5
#: A workload that takes longer than this in wall time is cut short, but not below `_FEWEST`.
_BUDGET_S = {"cpu": 2.5, "memory": 1.5, "fsync": 1.0}
_LOOPS = 200_000
_HASHED = bytes(range(256)) * 64
_BLOCK = bytes(range(256)) * 256
_BUFFER = (64 * _MIB, 256 * _MIB)
_IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")
#: Always the same, so that the next canary takes it along should a kill hit between two calls.
_NAME = ".nexmark-canary"

_Work = Callable[[], object]
_Clock = Callable[[], float]
_SYS_CPU = Path("/sys/devices/system/cpu")


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Run the canary once.

    Returns {metrics: {name: value}, problems: [why a workload was not run], elapsed_s}.
    """
    begin = time.monotonic()
    rounds = {name: int(request.get(f"{name}_rounds", n)) for name, n in _ROUNDS.items()}
    problems: list[str] = []
    levels = Levels()
    metrics = {
        **_timing("cpu_s", _cpu(rounds["cpu"], levels.look)),
        **_timing("cpu_memory_s", _memory(rounds["memory"], problems)),
        **levels.end(),
    }
    if request.get("directory"):
        metrics |= _timing("fsync_s", _fsync(request["directory"], rounds["fsync"], problems))
    return {"metrics": metrics, "problems": problems, "elapsed_s": time.monotonic() - begin}


def _timing(name: str, seconds: list[float]) -> dict[str, float]:
    return {name: sorted(seconds)[len(seconds) // 10]} if seconds else {}


def _timed(
    work: _Work, clock: _Clock, rounds: int, budget_s: float, between: _Work = lambda: None
) -> list[float]:
    """Return the seconds of each round; one more round before them warms up.

    Args:
        work: one round.
        clock: returns the time in seconds.
        rounds: number of rounds.
        budget_s: wall time after which no round begins, once there are `_FEWEST`.
        between: called after every fifth round.
    """
    if rounds <= 0:
        return []
    work()
    end = time.monotonic() + budget_s
    seconds: list[float] = []
    while len(seconds) < rounds and (len(seconds) < _FEWEST or time.monotonic() < end):
        begin = clock()
        work()
        seconds.append(clock() - begin)
        if len(seconds) % 5 == 1:
            between()
    return seconds


def _cpu(rounds: int, between: _Work) -> list[float]:
    def work() -> None:
        value = 1
        for i in range(_LOOPS):
            value = (value * 69069 + i) & 0xFFFFFFFF
        digest = hashlib.sha256(value.to_bytes(4, "big"))
        for _ in range(200):
            digest.update(_HASHED)
        digest.digest()

    return _timed(work, time.thread_time, rounds, _BUDGET_S["cpu"], between)


def _memory(rounds: int, problems: list[str]) -> list[float]:
    if rounds <= 0:
        return []
    size = min(max(_BUFFER[0], 2 * _largest_cache()), _BUFFER[1])
    free = re.search(r"^MemAvailable:\s*(\d+) kB$", text_of("/proc/meminfo") or "", re.MULTILINE)
    if free and int(free[1]) * 1024 < 4 * size:
        problems.append(f"memory: {int(free[1]) // 1024} MiB are free, {4 * size // _MIB} needed")
        return []
    # Write both: an unwritten buffer is one page of zeros, which a cache holds.
    source, target = memoryview(bytearray(b"\x5a") * size), memoryview(bytearray(b"\xa5") * size)

    def work() -> None:
        target[:] = source

    return _timed(work, time.thread_time, rounds, _BUDGET_S["memory"])


def _largest_cache() -> int:
    """Return the bytes of the largest cache of a core; 0 if the kernel does not say."""
    sizes = [text_of(path) or "" for path in _SYS_CPU.glob("cpu0/cache/index*/size")]
    return max((int(size[:-1]) * 1024 for size in sizes if re.fullmatch(r"\d+K", size)), default=0)


def _fsync(directory: str, rounds: int, problems: list[str]) -> list[float]:
    try:
        if _filesystem(directory) in _IN_MEMORY:
            problems.append(f"fsync: {directory} is in memory; give a directory on a disk")
            return []
        with _nameless(directory) as descriptor:

            def work() -> None:
                os.write(descriptor, _BLOCK)
                os.fsync(descriptor)

            return _timed(work, time.perf_counter, rounds, _BUDGET_S["fsync"])
    except OSError as error:
        problems.append(f"fsync: {directory}: {error.strerror}")
        return []


@contextlib.contextmanager
def _nameless(directory: str) -> Iterator[int]:
    """Yield the descriptor of a file that is gone when this process ends, however it ends."""
    try:
        descriptor = os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError:  # not every filesystem has it
        path = Path(directory, _NAME)
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        path.unlink(missing_ok=True)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _filesystem(directory: str) -> str | None:
    """Return the type of the filesystem of `directory`; None if it is not known."""
    device = os.stat(directory).st_dev  # noqa: PTH116
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in (text_of("/proc/self/mountinfo") or "").splitlines():
        place, _, rest = line.partition(" - ")
        if place.split()[2] == wanted:
            return rest.split()[0]
    return None


class Levels:
    """The state of the host from construction to `end`."""

    def __init__(self) -> None:
        """Read the counters at the begin."""
        self._begin = time.monotonic()
        self._cpu = cpu_ticks(text_of("/proc/stat"))
        self._stalls = _stalls()
        self._throttled = _throttled()
        self._mhz: list[float] = []

    def look(self) -> None:
        """Read the clock rate, which has no counter."""
        self._mhz += [value for value in [_mhz()] if value is not None]

    def end(self) -> dict[str, float]:
        """Return the levels of this host by name."""
        elapsed_us = 1e6 * (time.monotonic() - self._begin)
        levels: dict[str, float] = {}
        cpu = cpu_ticks(text_of("/proc/stat"))
        if cpu and self._cpu and cpu[1] > self._cpu[1]:
            levels["steal_percent"] = 100 * (cpu[0] - self._cpu[0]) / (cpu[1] - self._cpu[1])
        for name, stalled_us in _stalls().items():
            if name in self._stalls:
                waited = 100 * (stalled_us - self._stalls[name]) / elapsed_us
                levels[f"psi_{name}"] = min(waited, 100.0)
        levels["load_1m"] = os.getloadavg()[0] / (os.cpu_count() or 1)
        if self._mhz:
            levels["mhz"] = statistics.fmean(self._mhz)
        throttled = _throttled()
        common = throttled.keys() & self._throttled.keys()
        if common:
            levels["throttled"] = float(
                sum(throttled[path] - self._throttled[path] for path in common)
            )
        return levels


def cpu_ticks(stat: str | None) -> tuple[int, int] | None:
    """Return stolen ticks and all ticks of all cores from /proc/stat; None without steal."""
    fields = (stat or "").split("\n", 1)[0].split()[1:9]  # the following fields are part of these
    return (int(fields[7]), sum(map(int, fields))) if len(fields) == 8 else None


def stall_us(pressure: str | None) -> int | None:
    """Return the microseconds in which some task waited, from a file of /proc/pressure."""
    match = re.search(r"^some .*\btotal=(\d+)$", pressure or "", re.MULTILINE)
    return int(match[1]) if match else None


def _stalls() -> dict[str, int]:
    names = ("cpu", "io", "memory")
    stalls = {name: stall_us(text_of(f"/proc/pressure/{name}")) for name in names}
    return {name: value for name, value in stalls.items() if value is not None}


def _mhz() -> float | None:
    khz = [text_of(path) for path in _SYS_CPU.glob("cpu[0-9]*/cpufreq/scaling_cur_freq")]
    known = [int(text) / 1000 for text in khz if text and text.isdigit()]
    if not known:
        cpuinfo = text_of("/proc/cpuinfo") or ""
        rates = re.findall(r"^cpu MHz\s*:\s*([\d.]+)$", cpuinfo, re.MULTILINE)
        known = [float(rate) for rate in rates]
    return statistics.fmean(known) if known else None


def _throttled() -> dict[str, int]:
    """Return the counters of throttling by their paths."""
    places = [*_SYS_CPU.glob("cpu[0-9]*/thermal_throttle/core_throttle_count")]
    counts = {str(place): text_of(place) for place in places}
    for place in _cpu_stats():
        match = re.search(r"^nr_throttled (\d+)$", text_of(place) or "", re.MULTILINE)
        counts[str(place)] = match[1] if match else None
    return {place: int(count) for place, count in counts.items() if count and count.isdigit()}


def _cpu_stats() -> Iterator[Path]:
    """Yield possible paths of the CPU quota of our cgroup: version 2, or 1."""
    for line in (text_of("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield Path(f"/sys/fs/cgroup{path}", "cpu.stat")
        elif "cpu" in controllers.split(","):
            yield Path(f"/sys/fs/cgroup/{controllers}{path}", "cpu.stat")
