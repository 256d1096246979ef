"""Measure what the JVMs of a Spark application hold on a host: objects, memory, threads, files.

Request:
    app: the id of the application, which its executors have in their command line, or null where
        they are elsewhere
    driver: a word in the command line of its driver, or null where the driver is elsewhere
    directories: name -> path, whose files are counted
Answer:
    processes: [{role, name, pid, cpu_s: [before, after], heap_bytes, classes: {class: bytes},
                 metaspace_bytes, code_cache_bytes, other_memory_bytes, outside_heap_bytes,
                 threads, thread_names: {name: threads}, open_files, file_places: {place: files}}]
    directories: name -> [files, bytes]

A figure that a JVM does not give is null. `cpu_s` is the CPU time of the process with its
children, before and after it was measured, which costs it some. `heap_bytes` are the bytes of the
objects that are alive after a full collection; `classes` has the classes of at least 32 KiB.
`outside_heap_bytes` is the resident memory that is not the heap's. `other_memory_bytes` is what
Java code has allocated outside of the heap, with direct buffers; only a JVM with
-XX:NativeMemoryTracking=summary counts it. Names of threads are without digits; the place of an
open file is its directory, or its kind.

The JVM is asked as the JDK's jcmd asks it, by its attach socket, so neither a JDK nor another JVM
is needed. The JVM answers only its own user.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_PROC = Path("/proc")
_DRIVER = b"org.apache.spark.deploy.SparkSubmit"
_EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
_ATTACH_S = 10.0
_ANSWER_S = 60.0
_POLL_S = 0.01
_SETTLE_S = 0.1
_LEAST_BYTES = 32 * 1024
_CLASS = re.compile(r"\s*\d+:\s+\d+\s+(\d+)\s+(\S+)")
_TOTAL = re.compile(r"Total\s+\d+\s+(\d+)")
_METASPACE = re.compile(r"Metaspace\s+used (\d+)K")
_CODE = re.compile(r"^Code(?:Heap|Cache).*?used=(\d+)Kb", re.MULTILINE)
_OTHER = re.compile(r"Other \(reserved=\d+KB, committed=(\d+)KB")
_RANGE = re.compile(r"\[0x([0-9a-f]+),.*?0x([0-9a-f]+)\)")
_HIDDEN = re.compile(r"[/+]0x[0-9a-f]+|(?<=\$\$Lambda)[$/][0-9]+")
_DIGITS = re.compile(r"[0-9]+")
_PRIMITIVES = {
    "B": "byte",
    "C": "char",
    "D": "double",
    "F": "float",
    "I": "int",
    "J": "long",
    "S": "short",
    "Z": "boolean",
}


class JvmError(Exception):
    """A JVM did not answer; the text is one line."""


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Measure the JVMs of an application at the same time, and count the files in directories."""
    app, driver = request.get("app"), request.get("driver")
    jvms = []
    for pid in sorted(int(path.name) for path in _PROC.iterdir() if path.name.isdecimal()):
        words = _words(pid)
        if app and _EXECUTOR in words and app.encode() in words:
            jvms.append(("executor", _after(words, b"--executor-id"), pid))
        elif driver and _DRIVER in words and driver.encode() in words:
            jvms.append(("driver", "driver", pid))
    pids = [pid for _, _, pid in jvms]
    before = {pid: _cpu_s(pid) for pid in pids}
    with ThreadPoolExecutor(max_workers=max(1, len(pids))) as pool:
        list(pool.map(_collect, pids))
        time.sleep(_SETTLE_S)  # Spark cleans up what the collection has found, and so frees more
        held = list(pool.map(measured, pids))
    directories = request.get("directories", {})
    return {
        "processes": [
            {"role": role, "name": name, "pid": pid, "cpu_s": [before[pid], _cpu_s(pid)], **by_it}
            for (role, name, pid), by_it in zip(jvms, held, strict=True)
        ],
        "directories": {name: counted(Path(path)) for name, path in directories.items()},
    }


def _collect(pid: int) -> None:
    ask(pid, "GC.run")


def measured(pid: int) -> dict[str, Any]:
    """Return what a JVM holds after a full collection; JvmError if it does not answer."""
    heap, classes = histogram(ask(pid, "GC.class_histogram"))
    layout = ask(pid, "GC.heap_info")
    metaspace, code = _METASPACE.search(layout), _CODE.findall(ask(pid, "Compiler.codecache"))
    other = _OTHER.search(ask(pid, "VM.native_memory summary scale=KB"))
    place = _PROC / str(pid)
    outside = outside_heap((place / "smaps").read_bytes(), layout)
    threads = _counts(_thread_name(path) for path in (place / "task").iterdir())
    files = _counts(_file_place(path) for path in (place / "fd").iterdir())
    return {
        "heap_bytes": heap,
        "classes": classes,
        "metaspace_bytes": 1024 * int(metaspace[1]) if metaspace else None,
        "code_cache_bytes": 1024 * sum(map(int, code)) if code else None,
        "other_memory_bytes": 1024 * int(other[1]) if other else None,
        "outside_heap_bytes": outside,
        "threads": sum(threads.values()),
        "thread_names": threads,
        "open_files": sum(files.values()),
        "file_places": files,
    }


def _counts(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in filter(None, names):
        counts[name] = counts.get(name, 0) + 1
    return counts


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and of its children that have ended."""
    fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _thread_name(path: Path) -> str:
    """Return the name of a thread without digits; "" if it has ended."""
    try:
        return _DIGITS.sub("", (path / "comm").read_text().strip()).strip(" -#") or "?"
    except OSError:
        return ""


def _file_place(path: Path) -> str:
    """Return the directory of an open file, or its kind: socket, pipe, anon_inode; "" if closed."""
    try:
        target = str(path.readlink())
    except OSError:
        return ""
    return str(Path(target).parent) if target.startswith("/") else target.partition(":")[0]


def histogram(text: str) -> tuple[int, dict[str, int]]:
    """Return the bytes of all objects, and of each large class, from a class histogram.

    JvmError if the text is none.
    """
    by_class: dict[str, int] = {}
    for line in text.splitlines():
        if entry := _CLASS.match(line):
            name = class_name(entry[2])
            by_class[name] = by_class.get(name, 0) + int(entry[1])
    total = _TOTAL.search(text)
    if total is None:
        said = (text.strip().splitlines() or ["nothing"])[0][:200]
        raise JvmError(f"the JVM gave no class histogram, but: {said}")
    large = {name: size for name, size in by_class.items() if size >= _LEAST_BYTES}
    return int(total[1]), dict(sorted(large.items(), key=lambda each: -each[1]))


def class_name(name: str) -> str:
    """Return the name of a class as Java's source has it: `byte[]` for `[B`; no address in it."""
    name = _HIDDEN.sub("", name)
    depth = len(name) - len(name.lstrip("["))
    if not depth:
        return name
    inner = name[depth:]
    inner = inner[1:].rstrip(";") if inner.startswith("L") else _PRIMITIVES.get(inner, inner)
    return inner + "[]" * depth


def outside_heap(smaps: bytes, layout: str) -> int | None:
    """Return the resident bytes of a process that are not in the heap of the JVM.

    Args:
        smaps: /proc/PID/smaps.
        layout: the JVM's `GC.heap_info`, which has the addresses of the heap.
    """
    lines = [line for line in layout.splitlines() if "Metaspace" not in line]
    ranges = [(int(low, 16), int(high, 16)) for low, high in _RANGE.findall("\n".join(lines))]
    if not ranges:
        return None
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    total, inside = 0, False
    for line in smaps.splitlines():
        if line.startswith(b"Rss:"):
            total += 0 if inside else 1024 * int(line.split()[1])
        elif b"-" in (words := line.split(None, 1))[0]:
            inside = low <= int(words[0].partition(b"-")[0], 16) < high
    return total


def counted(directory: Path) -> list[int]:
    """Return the number of files below a directory, and their bytes; files may go meanwhile."""
    files = size = 0
    for root, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118 - in a hurry
                files += 1
    return [files, size]


def ask(pid: int, command: str) -> str:
    """Return what a JVM answers to a diagnostic command, as jcmd prints it; JvmError if nothing."""
    try:
        path = _attached(pid)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_ANSWER_S)
            connection.connect(str(path))
            connection.sendall(b"1\0jcmd\0" + command.encode() + b"\0\0\0")
            answer = bytearray()
            while received := connection.recv(1 << 16):
                answer += received
    except OSError as error:
        why = error.strerror or str(error)
        raise JvmError(f"JVM {pid} does not answer {command!r}: {why}") from None
    return answer.decode(errors="replace").partition("\n")[2]


def _attached(pid: int) -> Path:
    """Return the socket on which a JVM takes commands; it opens it when it is asked to."""
    place, inner = _PROC / str(pid) / "root" / "tmp", _inner_pid(pid)
    path, request = place / f".java_pid{inner}", place / f".attach_pid{inner}"
    if path.exists():
        return path
    request.touch()
    try:
        os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + _ATTACH_S
        while not path.exists():
            if time.monotonic() > deadline:
                why = f"it opened no attach socket in {_ATTACH_S:g} s; is attaching disabled?"
                raise JvmError(f"JVM {pid} does not answer: {why}")
            time.sleep(_POLL_S)
    finally:
        request.unlink(missing_ok=True)
    return path


def _inner_pid(pid: int) -> int:
    """Return the pid that a process has in its own namespace."""
    for line in (_PROC / str(pid) / "status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return pid


def _words(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _after(words: list[bytes], option: bytes) -> str:
    return words[words.index(option) + 1].decode(errors="replace") if option in words else "?"
