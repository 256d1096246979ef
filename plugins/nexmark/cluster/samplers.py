"""The CPU samplers on hosts: started beside the repetitions, ended, and their samples fetched.

Beside the samples of a host comes `clock-HOST.json`: by how much its clock was ahead of this
machine's when its sampler was started and when it was stopped.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from nexmark.cluster.base import SAMPLER_MAX_SECONDS
from nexmark.cluster.host import Host, HostError
from nexmark_jobs.host import files, processes

_CALL_S = 30
_START_TIMEOUT_S = 30.0
_POLL_S = 0.3
_STOP_GRACE_S = 30
_CLOCK_READINGS = 3


def clock_offset(host: Host) -> tuple[float, float]:
    """By how many seconds the host's clock is ahead of ours, and how sure that is (+-).

    Its clock is read somewhere between question and answer; the quickest of a few answers counts.
    """
    readings = []
    for _ in range(_CLOCK_READINGS):
        asked = time.time()
        wall = float(host.run(["date", "+%s.%N"], timeout_s=_CALL_S))
        answered = time.time()
        readings.append(((answered - asked) / 2, wall - (asked + answered) / 2))
    uncertainty, offset = min(readings)
    return offset, uncertainty


def start_sampler(
    host: Host,
    python: str,
    program: str,
    directory: str,
    query: str,
    interval_s: float,
    mark: str,
) -> None:
    """Start a sampler and wait until its first reading is written; HostError if it does not."""
    log, pid_file = f"{directory}/{query}.log", f"{directory}/{query}.pid"
    _end(host, pid_file, mark)
    request = {
        "do": "start",
        "command": [
            *(python, "-I", program, "--out", f"{directory}/{query}.jsonl"),
            *("--pid-file", pid_file, "--interval", str(interval_s)),
            *("--max-seconds", str(SAMPLER_MAX_SECONDS)),
        ],
        "environment": {"PATH": "/usr/local/bin:/usr/bin:/bin"},
        "mark": mark,
        "log": log,
    }
    host.call(processes, request, timeout_s=_CALL_S)
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not _tail(host, pid_file):
        if time.monotonic() > deadline:
            said = " ".join(_tail(host, log)) or "no reason given"
            raise HostError(f"host {host.name}: the sampler of {query} did not start: {said}")
        time.sleep(_POLL_S)
    offset, uncertainty = clock_offset(host)
    start = json.dumps({"offset_s": offset, "uncertainty_s": uncertainty})
    host.call(files, {"write": {f"{directory}/{query}.clock": start}}, timeout_s=_CALL_S)


def fetch_samples(host: Host, directory: str, query: str, mark: str, target: Path) -> None:
    """End the sampler, which writes a last reading first, and fetch what it wrote.

    Where that was done before, as in an earlier try that another host let fail, it is kept.
    """
    clock = target / f"clock-{host.name}.json"
    if clock.exists():
        return
    _end(host, f"{directory}/{query}.pid", mark)
    host.fetch(f"{directory}/{query}.jsonl", target / f"samples-{host.name}.jsonl")
    start = "".join(_tail(host, f"{directory}/{query}.clock"))
    offset, uncertainty = clock_offset(host)
    readings = [*([json.loads(start)] if start else [])]
    readings.append({"offset_s": offset, "uncertainty_s": uncertainty})
    clock.write_text(json.dumps({"readings": readings}))
    names = [f"{directory}/{query}.{end}" for end in ("jsonl", "clock", "log", "pid")]
    host.call(files, {"remove": names}, timeout_s=_CALL_S)


def _end(host: Host, pid_file: str, mark: str) -> None:
    """End the sampler of `pid_file`, if it runs and is ours. Ending none is no error."""
    pid = "".join(_tail(host, pid_file))
    if pid.isdigit():
        request: dict[str, Any] = {
            **{"do": "end", "mark": mark, "pid": int(pid)},
            "grace_s": _STOP_GRACE_S,
        }
        host.call(processes, request, timeout_s=2 * _CALL_S)


def _tail(host: Host, path: str) -> list[str]:
    lines: list[str] = host.call(files, {"tail": {path: 5}}, timeout_s=_CALL_S)["tail"][path]
    return lines


__all__ = ["clock_offset", "fetch_samples", "start_sampler"]
