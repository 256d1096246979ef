"""Find the facts of a host that a night needs before it starts anything there.

Request: java_home, directories [path], ports {port: address}, mark (prefix of what is ours),
shared {directory, write: {name: token}, read: [name], remove: [name]}, busy_window_s; every key
optional. Answer: see `main`.
"""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nexmark_jobs.host.ports import is_free, listener
from nexmark_jobs.host.processes import (
    Process,
    marked,
    pids,
    plain_environment,
    stat_fields,
    text_of,
)

_BUSY_SHARE = 0.2
_JAVA_TIMEOUT_S = 20
_TELLING = ("LD_LIBRARY_PATH", "TZ")


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Return the facts; bytes, seconds and shares of one core. Unknown values are None.

    Keys: hostname, kernel, python, java {home, version, problem}, cpu_model, cores, open_files (how
    many a process may have), governor, free_memory_bytes, directories {path: {free_bytes,
    problem}}, ports {port: None if free, else {pid, command, ours, problem}}, boot_id, shared
    {tokens: {name: text or None}, problem}, busy [{pid, command, cores}] and variables (what
    programs inherit here and a JVM may run differently by).
    """
    mark = request.get("mark", "")
    ours = marked(mark) if mark else {}
    return {
        "hostname": platform.node(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "java": _java(request["java_home"]) if "java_home" in request else None,
        "cpu_model": cpu_model(text_of("/proc/cpuinfo")),
        "cores": len(os.sched_getaffinity(0)),
        "open_files": _open_files(),
        "governor": text_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "free_memory_bytes": free_memory(text_of("/proc/meminfo")),
        "directories": {path: _directory(Path(path)) for path in request.get("directories", [])},
        "ports": {
            port: _port(int(port), address, ours)
            for port, address in request.get("ports", {}).items()
        },
        "boot_id": text_of("/proc/sys/kernel/random/boot_id"),
        "shared": _shared(request["shared"]) if "shared" in request else None,
        "busy": busy(ours, request.get("busy_window_s", 0.5)),
        "variables": " ".join(
            f"{name}={os.environ[name]}" for name in _TELLING if name in os.environ
        )
        or None,
    }


def brief(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that identify the machine and its software, without its momentary state."""
    kept = ("kernel", "cpu_model", "cores", "governor", "python", "boot_id", "variables")
    java = facts.get("java") or {}
    return {**{name: facts.get(name) for name in kept}, "java": java.get("version")}


def _open_files() -> int | None:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if limit == resource.RLIM_INFINITY else limit


def cpu_model(cpuinfo: str | None) -> str | None:
    """Return the model in the text of /proc/cpuinfo; None if there is none (some ARM hosts)."""
    match = re.search(r"^(?:model name|CPU part|cpu)\s*:\s*(.+)$", cpuinfo or "", re.MULTILINE)
    return " ".join(match[1].split()) if match else None


def free_memory(meminfo: str | None) -> int | None:
    """Return the bytes of memory that programs can still have, from the text of /proc/meminfo."""
    match = re.search(r"^MemAvailable:\s*(\d+) kB$", meminfo or "", re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def busy(ours: Mapping[Process, str], window_s: float) -> list[dict[str, Any]]:
    """Return other programs that use over a fifth of a core in `window_s`, the busiest first."""
    before, begin = _cpu_times(), time.monotonic()
    time.sleep(window_s)
    after, elapsed = _cpu_times(), time.monotonic() - begin
    apart = {process.pid for process in ours} | {os.getpid()}
    programs = []
    for (pid, start), seconds in after.items():
        cores = (seconds - before.get((pid, start), seconds)) / elapsed
        if pid not in apart and cores > _BUSY_SHARE:
            command = Process(pid, start).command
            programs.append({"pid": pid, "command": command, "cores": round(cores, 2)})
    return sorted(programs, key=lambda program: -program["cores"])


def _cpu_times() -> dict[tuple[int, int], float]:
    """Return the CPU seconds of every process by (pid, start in ticks)."""
    tick = os.sysconf("SC_CLK_TCK")
    stats = ((pid, fields) for pid in pids() if (fields := stat_fields(pid)))
    return {
        (pid, int(fields[19])): (int(fields[11]) + int(fields[12])) / tick for pid, fields in stats
    }


def _java(home: str) -> dict[str, Any]:
    java = Path(home, "bin", "java")
    version, problem = None, None
    try:
        command = [str(java), "-version"]
        done = subprocess.run(
            command,
            env=plain_environment(),
            capture_output=True,
            text=True,
            timeout=_JAVA_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        problem = f"{java} -version did not end within {_JAVA_TIMEOUT_S} s"
    except OSError as error:
        problem = f"{java}: {error.strerror}"
    else:
        said = done.stderr + done.stdout
        if not done.returncode and (match := re.search(r'version "([^"]+)"', said)):
            version = match[1]
        else:
            problem = f"{java} -version said: {(said.strip().splitlines() or ['nothing'])[-1]}"
    return {"home": home, "version": version, "problem": problem}


def _directory(path: Path) -> dict[str, Any]:
    """Return the free bytes, and why `path`, or its nearest parent, cannot be written."""
    existing = next(each for each in (path, *path.parents) if each.exists())
    problem = None
    if not existing.is_dir():
        problem = f"{existing} is not a directory"
    elif not os.access(existing, os.W_OK | os.X_OK):
        problem = f"{existing} cannot be written"
    try:
        return {"free_bytes": shutil.disk_usage(existing).free, "problem": problem}
    except OSError as error:
        return {"free_bytes": None, "problem": f"{existing}: {error.strerror}"}


def _port(port: int, address: str, ours: Mapping[Process, str]) -> dict[str, Any] | None:
    try:
        if is_free(port, address):
            return None
    except OSError as error:  # not an address of this host, or not allowed
        return {"pid": None, "command": None, "ours": False, "problem": error.strerror}
    holder = listener(port)
    pid, command = (holder.pid, holder.command) if holder else (None, None)
    return {"pid": pid, "command": command, "ours": holder in ours, "problem": None}


def _shared(request: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {"tokens": {}, "problem": None}
    directory = Path(request["directory"])
    try:
        for name, token in request.get("write", {}).items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(token)
        facts["tokens"] = {name: text_of(directory / name) for name in request.get("read", [])}
        for name in request.get("remove", []):
            (directory / name).unlink(missing_ok=True)
    except OSError as error:
        facts["problem"] = f"{error.filename}: {error.strerror}"
    return facts
