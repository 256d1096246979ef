"""Start and end CPU samplers on hosts, and fetch their files and flight recordings.

With the samples of a host comes `clock-HOST.json`. It says by how much the host's clock was ahead
of this machine's clock when the sampler was started and when it was stopped.

An executor records into its own directory, below the directory of its worker and named after the
application and the executor. It writes the recording when it ends, shortly after its application.
"""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from nexmark.cluster.base import SAMPLER_MAX_SECONDS
from nexmark.cluster.hosts.host import Host
from nexmark.cluster.hosts.ssh import HostError
from nexmark.cluster.lease import ClusterError
from nexmark_jobs.cause import failure_cause
from nexmark_jobs.host import files, processes

_CALL_S = 30
_LINES = 50  # the last ones of a small file
_START_TIMEOUT_S = 30.0
_POLL_S = 0.3
_STOP_GRACE_S = 30
_CLOCK_READINGS = 3

#: The file name of a recording, in the executor's directory.
RECORDING = "recording.jfr"
#: The recordings by host: their paths with their bytes.
Found: TypeAlias = Mapping[str, Mapping[str, int]]
_FETCH_S = 120
_WAIT_S = 30.0
_LOOK_POLL_S = 1.0


def clock_offset(host: Host) -> tuple[float, float]:
    """Return the seconds by which the host's clock is ahead of ours, and the uncertainty (+-).

    The host reads its clock between question and answer; the quickest of a few answers counts.
    """
    readings = []
    for _ in range(_CLOCK_READINGS):
        asked = time.time()
        wall = float(host.run(["date", "+%s.%N"], timeout_s=_CALL_S))
        answered = time.time()
        readings.append(((answered - asked) / 2, wall - (asked + answered) / 2))
    uncertainty, offset = min(readings)
    return offset, uncertainty


def _reading(host: Host) -> dict[str, float]:
    return dict(zip(("offset_s", "uncertainty_s"), clock_offset(host), strict=True))


def start_sampler(
    host: Host, python: str, program: str, directory: str, query: str, interval_s: float, mark: str
) -> None:
    """Start a sampler, and wait until its first reading is written; HostError if none comes.

    Args:
        host: The host.
        python: The interpreter there.
        program: The path of the sampler there.
        directory: Where it writes its files.
        query: The query, which names its files.
        interval_s: Seconds between two readings.
        mark: The value of NEXMARK_OWNER in its environment.
    """
    log, pid_file = f"{directory}/{query}.log", f"{directory}/{query}.pid"
    _end(host, pid_file, mark)
    request = {
        "do": "start",
        "command": [
            python,
            "-I",
            program,
            "--out",
            f"{directory}/{query}.jsonl",
            "--pid-file",
            pid_file,
            "--interval",
            str(interval_s),
            "--max-seconds",
            str(SAMPLER_MAX_SECONDS),
        ],
        "environment": {"PATH": "/usr/local/bin:/usr/bin:/bin"},
        "mark": mark,
        "log": log,
    }
    host.call(processes, request, timeout_s=_CALL_S)
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not _tail(host, pid_file):
        if time.monotonic() > deadline:
            said = failure_cause("\n".join(_tail(host, log)))
            raise HostError(f"host {host.name}: the sampler of {query} did not start: {said}")
        time.sleep(_POLL_S)
    written = {f"{directory}/{query}.clock": json.dumps(_reading(host))}
    host.call(files, {"write": written}, timeout_s=_CALL_S)


def fetch_samples(host: Host, directory: str, query: str, mark: str, target: Path) -> None:
    """End the sampler, which writes a last reading first, and fetch its file.

    If this host's samples were fetched in an earlier try, which failed because of another host,
    they are kept.

    Args:
        host: The host.
        directory: Where the sampler writes its files.
        query: The query, which names its files.
        mark: The value of NEXMARK_OWNER in its environment.
        target: The directory here.
    """
    clock = target / f"clock-{host.name}.json"
    if clock.exists():
        return
    _end(host, f"{directory}/{query}.pid", mark)
    host.fetch(f"{directory}/{query}.jsonl", target / f"samples-{host.name}.jsonl")
    start = "".join(_tail(host, f"{directory}/{query}.clock"))
    readings = [*([json.loads(start)] if start else []), _reading(host)]
    clock.write_text(json.dumps({"readings": readings}))
    names = [f"{directory}/{query}.{end}" for end in ("jsonl", "clock", "log", "pid")]
    host.call(files, {"remove": names}, timeout_s=_CALL_S)


def _end(host: Host, pid_file: str, mark: str) -> None:
    """End our sampler that has `pid_file` among its arguments, and remove that file.

    The pid in it may be another process's by now. And a killed sampler leaves its file, which would
    say that the next sampler is ready.
    """
    request = {"do": "end", "mark": mark, "word": pid_file, "grace_s": _STOP_GRACE_S}
    host.call(processes, request, timeout_s=2 * _CALL_S)
    host.call(files, {"remove": [pid_file]}, timeout_s=_CALL_S)


def _tail(host: Host, path: str) -> list[str]:
    return list(host.call(files, {"tail": {path: _LINES}}, timeout_s=_CALL_S)["tail"][path])


def pattern_of(worker: Path | str, application: str) -> str:
    """Return the pattern of an application's recordings, below the directory of a worker."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", application):
        raise ClusterError(f"{application!r} is not an application id, so it has no recordings")
    return f"{worker}/{application}/*/{RECORDING}"


def executor_of(path: str) -> str:
    """Return the executor that recorded into `path`."""
    return Path(path).parent.name


def wait_until_whole(
    look: Callable[[], Found],
    executors: Sequence[str],
    wait_s: float = _WAIT_S,
    poll_s: float = _LOOK_POLL_S,
) -> Found:
    """Return the recordings of these executors when all have finished.

    Args:
        look: Finds the recordings by host, with their sizes.
        executors: The executors.
        wait_s: How long to wait, in seconds.
        poll_s: Seconds between two looks.

    Raises:
        ClusterError: One of them has not finished in time.
    """
    deadline = time.monotonic() + wait_s
    before: Found | None = None
    while True:
        recordings = {
            host: {path: size for path, size in paths.items() if executor_of(path) in executors}
            for host, paths in look().items()
        }
        sizes = [size for of_host in recordings.values() for size in of_host.values()]
        if len(sizes) == len(executors) and all(sizes) and recordings == before:
            return recordings
        if time.monotonic() > deadline:
            some = f"{sum(map(bool, sizes))} of {len(executors)} executors wrote a flight recording"
            remedy = "see what the others logged in the directory of their worker"
            raise ClusterError(f"{some}; {remedy}")
        before = recordings
        time.sleep(poll_s)


def recordings_on(host: Host, pattern: str) -> dict[str, int]:
    """Return the size in bytes of each recording on a host, by path."""
    return dict(host.call(files, {"find": pattern}, timeout_s=_CALL_S)["found"])


def fetch_from(host: Host, paths: Mapping[str, int], directory: Path) -> None:
    """Move recordings from a host to `directory`."""
    for path in paths:
        host.fetch(path, directory / f"{executor_of(path)}.jfr", timeout_s=_FETCH_S)
    host.call(files, {"remove": list(paths)}, timeout_s=_CALL_S)
