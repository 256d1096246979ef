"""From a flight recording to samples: what `jfr print` says, line by line.

The text form and not `--json`: of one recording of 16 MB that was 17 MB against 480 MB, and it is
printed in less than half the time. Nothing but the current sample is in memory.

*Which samples are CPU time.* `jdk.ExecutionSample` is of threads that run Java code.
`jdk.NativeMethodSample` is of threads in native code, of which most only wait there (for the
network, for a child process); by the innermost method these are left out.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nexmark.engines.prerequisites import java_program
from nexmark.errors import NexmarkError
from nexmark.flames.frames import NATIVE_SUFFIX, TRUNCATED, frame_name, thread_name

EVENTS = "jdk.ExecutionSample,jdk.NativeMethodSample"
#: Frames of a stack; those of generated code and of the optimiser are deeper than the JDK's 64.
STACK_DEPTH = 256
TIMEOUT_S = 300

#: Frames of a recursion that counts as one; that of Java's deserialization has 8.
_ROUND = 12
_TOO_MANY_FRAMES = "..."
_HEADER = re.compile(r"jdk\.(Execution|NativeMethod)Sample \{")
_TIME = re.compile(r"startTime = (\d+):(\d+):(\d+(?:[.,]\d+)?)")
_WAITING = re.compile(
    r"\.(epollWait\w*|epoll_?pwait\w*|kevent\w*|poll\w*|accept\w*|waitForProcessExit0|"
    r"socketRead0|park|sleep\w*|wait0?|force0|forceInternal)$"
    r"|\b(SocketDispatcher|DatagramDispatcher|UnixDomainSockets?|Net)\.\w+$"
)


@dataclass(frozen=True)
class Sample:
    """One stack that was seen running, the outermost frame first, below the name of its thread.

    `second` is the time of day (UTC, seconds). A sample that `waits` used no CPU time.
    """

    second: float
    stack: tuple[str, ...]
    waits: bool = False


def read_samples(recording: Path) -> Iterator[Sample]:
    """The samples of a recording; NexmarkError if it cannot be read."""
    command = [
        *(str(java_program("jfr")), "print", "-J-Duser.timezone=UTC", "-J-Duser.language=en"),
        *("-J-Xmx512m", "--events", EVENTS, "--stack-depth", str(STACK_DEPTH), str(recording)),
    ]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        try:
            process = subprocess.Popen(
                ["timeout", str(TIMEOUT_S), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise NexmarkError(f"{command[0]} does not run: {error.strerror}") from None
        assert process.stdout is not None
        try:
            yield from parse(process.stdout)
            status = process.wait()
        finally:
            process.kill()
            process.stdout.close()
            process.wait()
        if status:
            errors.seek(0)
            said = " ".join(errors.read().split())[-200:] or f"exit code {status}"
            raise NexmarkError(f"{recording}: jfr cannot read it: {said}")


def parse(lines: Iterable[str]) -> Iterator[Sample]:
    """The samples in the lines that `jfr print` puts out."""
    native, second, thread, frames, inside = False, 0.0, "", list[str](), False
    for line in lines:
        text = line.strip()
        if header := _HEADER.match(line):
            native, second, thread, frames = header[1] == "NativeMethod", 0.0, "", []
        elif inside:
            inside = text != "]"
            if inside:
                frames.append(text)
        elif time := _TIME.match(text):
            second = _seconds(time)
        elif text.startswith("sampledThread = "):
            thread = _quoted(text)
        elif text == "stackTrace = [":
            inside = True
        elif line.startswith("}") and frames:
            yield _sample(native, second, thread, frames)
            frames = []


def _seconds(time: re.Match[str]) -> float:
    return int(time[1]) * 3600 + int(time[2]) * 60 + float(time[3].replace(",", "."))


def _quoted(text: str) -> str:
    """The name in `sampledThread = "name" (javaThreadId = 7)`; it may have quotes itself."""
    first, last = text.find('"'), text.rfind('"')
    return text[first + 1 : last] if first < last else ""


def _sample(native: bool, second: float, thread: str, frames: list[str]) -> Sample:
    whole = frames[-1] != _TOO_MANY_FRAMES
    names = [frame_name(frame.partition("(")[0]) for frame in frames if frame != _TOO_MANY_FRAMES]
    waits = native and bool(names) and _waits(names)
    if native and names:
        names[0] += NATIVE_SUFFIX
    outer = [thread_name(thread), *([] if whole else [TRUNCATED])]
    return Sample(second, tuple(_once([*outer, *reversed(names)])), waits)


def _waits(names: list[str]) -> bool:
    """Whether a thread in native code only waits there; `names` has the innermost frame first."""
    if _WAITING.search(names[0]):
        return True
    from_child = names[0].endswith("FileInputStream.readBytes")
    return from_child and any(".util.Shell" in name for name in names)


def _once(names: list[str]) -> list[str]:
    """`names` with one round of each recursion, so that its depth is no difference.

    A round has up to `_ROUND` frames; bridges of a method are one of a single frame.
    """
    kept: list[str] = []
    for name in names:
        kept.append(name)
        for size in range(1, min(_ROUND, len(kept) // 2) + 1):
            if kept[-1] == kept[-1 - size] and kept[-size:] == kept[-2 * size : -size]:
                del kept[-size:]
                break
    return kept


__all__ = ["STACK_DEPTH", "Sample", "parse", "read_samples"]
