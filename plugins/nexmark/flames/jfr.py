"""The options of the flight recorder of executors, and the samples in its recordings.

Samples come from the text that `jfr print` writes, not from its `--json`: for one recording of
16 MB, the text had 17 MB and the JSON 480 MB, and the text took less than half the time. The text
is read line by line, so that only the current sample is in memory.

*Which samples are CPU time.* `jdk.ExecutionSample` comes from threads that run Java code.
`jdk.NativeMethodSample` comes from threads in native code. Most of them only wait there (for the
network, for a child process); the innermost method shows this, and their samples are left out.

*Names of frames* are the same in both arms, and readable. They leave out the numbers that the JVM
and Spark assign, which differ from run to run: of generated code, lambda and hidden classes,
accessors, proxies, threads. They also leave out the bridges that compilers put in front of a method
(`name$`, `name$adapted`).
"""

import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from nexmark.cluster.hosts.samplers import RECORDING
from nexmark.engines.prerequisites import java_program
from nexmark.errors import NexmarkError
from nexmark_jobs.cause import failure_cause
from nexmark_jobs.host.processes import plain_environment

TRUNCATED = "[deeper than the recorder looks]"
NATIVE_SUFFIX = " (native)"

_NUMBERED = (
    (re.compile(r"(GeneratedIteratorForCodegenStage)\d+"), r"\1"),
    (re.compile(r"(\$\$Lambda)(?:\$\d+)?(?:[/.+]0x[0-9a-f]+)?"), r"\1"),
    (re.compile(r"[/+]0x[0-9a-f]+|\.0x[0-9a-f]+(?=\.)"), ""),
    (re.compile(r"(Generated\w*Accessor)\d+"), r"\1"),
    (re.compile(r"(\$Proxy)\d+"), r"\1"),
    (re.compile(r"jdk\.proxy\d+\."), "jdk.proxy."),
    (re.compile(r"(\$anonfun\$\w+?)(?:\$\d+)+(?=$|\$)"), r"\1"),
    (re.compile(r"\$adapted$"), ""),
    (re.compile(r"(?<=[A-Za-z0-9_])\$$"), ""),
)
_THREAD_NUMBERS = re.compile(r"[-_# ]?\d+(?:[-_.]\d+)*$")
_SPECIAL = re.compile(r"[;\n\r\t]")

EVENTS = "jdk.ExecutionSample,jdk.NativeMethodSample"
#: Frames of a stack. Stacks in generated code and in the optimiser exceed the JDK's default of 64.
STACK_DEPTH = 256
TIMEOUT_S = 300
#: The most frames of one round of a recursion; a round of Java's deserialization has 8.
_ROUND = 12
_TOO_MANY_FRAMES = "..."
_HEADER = re.compile(r"jdk\.(Execution|NativeMethod)Sample \{")
_TIME = re.compile(r"startTime = (\d+):(\d+):(\d+(?:[.,]\d+)?)")
#: The name in `sampledThread = "name" (javaThreadId = 7)`; it may have quotes itself.
_QUOTED = re.compile(r'"(.*)"')
_WAITING = re.compile(
    r"\.(epollWait\w*|epoll_?pwait\w*|kevent\w*|poll\w*|accept\w*|waitForProcessExit0|"
    r"socketRead0|park|sleep\w*|wait0?|force0|forceInternal)$"
    r"|\b(SocketDispatcher|DatagramDispatcher|UnixDomainSockets?|Net)\.\w+$"
)

#: Events that are not recorded: environment, properties and JVM options may contain passwords.
_LEFT_OUT = ("InitialEnvironmentVariable", "InitialSystemProperty", "JVMInformation")
#: The options of a JVM that records. All paths are relative to the executor's own directory, so
#: nothing in them has to be quoted, and the files are deleted with the cluster's directory.
#: DebugNonSafepoints gives debug information at every instruction: without it, all samples would be
#: at the few places where the JVM can stop. A recording larger than maxsize loses its older data.
RECORDER = (
    f"-XX:FlightRecorderOptions=stackdepth={STACK_DEPTH},repository=.",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:+DebugNonSafepoints",
    "-XX:StartFlightRecording=name=nexmark,settings=profile,disk=true,dumponexit=true,"
    f"maxsize=128m,filename={RECORDING},"
    + ",".join(f"jdk.{event}#enabled=false" for event in _LEFT_OUT),
)


@lru_cache(maxsize=1 << 16)  # a recording has few methods, each of them in thousands of samples
def frame_name(method: str) -> str:
    """Return `package.Class.method` of a method as `jfr print` names it, without the numbers."""
    name = method
    for pattern, replacement in _NUMBERED:
        name = pattern.sub(replacement, name)
    return plain(name)


@lru_cache(maxsize=1 << 12)
def thread_name(name: str) -> str:
    """Return the purpose of a thread: its name without its number and its task."""
    name = name.partition(" for task ")[0]
    return plain(_THREAD_NUMBERS.sub("", name)) or "thread"


def plain(text: str) -> str:
    """Return a text without the characters that separate entries in a file of collapsed stacks."""
    return _SPECIAL.sub(" ", text).strip()


def label(name: str) -> str:
    """Return the short name of a frame for its box: `Class.method`.

    Generated code loses the name of its outer class.
    """
    if name.startswith("[") or " " in name.removesuffix(NATIVE_SUFFIX):
        return name
    parts = name.split(".")
    if len(parts) < 3:
        return name
    return f"{parts[-2].removeprefix('GeneratedClass$')}.{parts[-1]}"


def kind(name: str) -> str:
    """Return the owner of the code of a frame: thread, generated, spark, jdk or other."""
    if "GeneratedClass$" in name:
        return "generated"
    if name.startswith(("org.apache.spark.", "org.sparkproject.")):
        return "spark"
    if name.startswith(("java.", "javax.", "jdk.", "sun.", "com.sun.")):
        return "jdk"
    return "other" if "." in name and not name.startswith("[") else "thread"


@dataclass(frozen=True)
class StackSample:
    """One sampled stack, the outermost frame first, below the name of its thread.

    `second` is the time of day (UTC, seconds). A sample that `waits` used no CPU time.
    """

    second: float
    stack: tuple[str, ...]
    waits: bool = False


def read_recording(recording: Path) -> Iterator[StackSample]:
    """Return the samples of a recording; NexmarkError if it cannot be read."""
    command = [
        str(java_program("jfr")),
        "print",
        "-J-Duser.timezone=UTC",
        "-J-Duser.language=en",
        "-J-Xmx512m",
        "--events",
        EVENTS,
        "--stack-depth",
        str(STACK_DEPTH),
        str(recording),
    ]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        try:
            process = subprocess.Popen(
                ["timeout", str(TIMEOUT_S), *command],
                env=plain_environment(),
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
            reason = failure_cause(errors.read(), status)[:200]
            raise NexmarkError(f"{recording}: jfr cannot read it: {reason}")


def parse(lines: Iterable[str]) -> Iterator[StackSample]:
    """Return the samples in the lines that `jfr print` writes."""
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
            hours, minutes, seconds = int(time[1]), int(time[2]), time[3].replace(",", ".")
            second = hours * 3600 + minutes * 60 + float(seconds)
        elif text.startswith("sampledThread = "):
            thread = quoted[1] if (quoted := _QUOTED.search(text)) else ""
        elif text == "stackTrace = [":
            inside = True
        elif line.startswith("}") and frames:
            yield _sample(native, second, thread, frames)
            frames = []


def _sample(native: bool, second: float, thread: str, frames: list[str]) -> StackSample:
    """Return a sample.

    Args:
        native: Whether the thread ran native code.
        second: The time of day (UTC, seconds).
        thread: The name of the thread.
        frames: The lines of the stack as `jfr print` writes them, the innermost frame first.
    """
    whole = frames[-1] != _TOO_MANY_FRAMES
    names = [frame_name(frame.partition("(")[0]) for frame in frames if frame != _TOO_MANY_FRAMES]
    waits = native and bool(names) and _waits(names)
    if native and names:
        names[0] += NATIVE_SUFFIX
    outer = [thread_name(thread), *([] if whole else [TRUNCATED])]
    return StackSample(second, tuple(_once([*outer, *reversed(names)])), waits)


def _waits(names: list[str]) -> bool:
    """Return whether a thread in native code only waits; the innermost of the `names` is first."""
    if _WAITING.search(names[0]):
        return True
    from_child = names[0].endswith("FileInputStream.readBytes")
    return from_child and any(".util.Shell" in name for name in names)


def _once(names: list[str]) -> list[str]:
    """Return the names with one round of each recursion, so that its depth makes no difference.

    A round has up to `_ROUND` frames; the bridges of a method make a recursion of single frames.
    """
    kept: list[str] = []
    for name in names:
        kept.append(name)
        for size in range(1, min(_ROUND, len(kept) // 2) + 1):
            if kept[-1] == kept[-1 - size] and kept[-size:] == kept[-2 * size : -size]:
                del kept[-size:]
                break
    return kept
