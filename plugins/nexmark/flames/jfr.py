"""The flight recorder of executors, and from its recordings to samples, line by line.

Samples come from the text form of `jfr print`, not from `--json`: of one recording of 16 MB that
was 17 MB against 480 MB, printed in less than half the time. Only the current sample is in memory.

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
from nexmark_jobs.cause import last_words
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

#: Recordings leave out environment, properties and options: these may hold passwords.
_LEFT_OUT = ("InitialEnvironmentVariable", "InitialSystemProperty", "JVMInformation")
#: The options of a JVM that records. All paths are relative to the executor's own directory, so
#: nothing in them has to be quoted, and what is left there goes with the cluster. Debug information
#: at every instruction: else samples would pile up at the few places where the JVM can stop. Of a
#: recording that is larger than maxsize, older data is dropped.
RECORDER = (
    f"-XX:FlightRecorderOptions=stackdepth={STACK_DEPTH},repository=.",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:+DebugNonSafepoints",
    "-XX:StartFlightRecording=name=nexmark,settings=profile,disk=true,dumponexit=true,"
    f"maxsize=128m,filename={RECORDING},"
    + ",".join(f"jdk.{event}#enabled=false" for event in _LEFT_OUT),
)


@lru_cache(maxsize=1 << 16)  # a recording has few methods, and each of them thousands of times
def frame_name(method: str) -> str:
    """`package.Class.method` of a method as `jfr print` names it, without the numbers."""
    name = method
    for pattern, replacement in _NUMBERED:
        name = pattern.sub(replacement, name)
    return plain(name)


@lru_cache(maxsize=1 << 12)
def thread_name(name: str) -> str:
    """The purpose of a thread: its name without its number and its task."""
    name = name.partition(" for task ")[0]
    return plain(_THREAD_NUMBERS.sub("", name)) or "thread"


def plain(text: str) -> str:
    """`text` without the separators of a file of collapsed stacks."""
    return _SPECIAL.sub(" ", text).strip()


def label(name: str) -> str:
    """The short form for a box: `Class.method`, of generated code without its outer class."""
    if name.startswith("[") or " " in name.removesuffix(NATIVE_SUFFIX):
        return name
    parts = name.split(".")
    if len(parts) < 3:
        return name
    return f"{parts[-2].removeprefix('GeneratedClass$')}.{parts[-1]}"


def kind(name: str) -> str:
    """The owner of the code: thread, generated, spark, jdk or other."""
    if "GeneratedClass$" in name:
        return "generated"
    if name.startswith(("org.apache.spark.", "org.sparkproject.")):
        return "spark"
    if name.startswith(("java.", "javax.", "jdk.", "sun.", "com.sun.")):
        return "jdk"
    return "other" if "." in name and not name.startswith("[") else "thread"


@dataclass(frozen=True)
class Sample:
    """One sampled stack, the outermost frame first, below the name of its thread.

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
            said = last_words(errors.read(), status)[:200]
            raise NexmarkError(f"{recording}: jfr cannot read it: {said}")


def parse(lines: Iterable[str]) -> Iterator[Sample]:
    """The samples in the output of `jfr print`."""
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
            thread = found[1] if (found := _QUOTED.search(text)) else ""
        elif text == "stackTrace = [":
            inside = True
        elif line.startswith("}") and frames:
            yield _sample(native, second, thread, frames)
            frames = []


def _sample(native: bool, second: float, thread: str, frames: list[str]) -> Sample:
    whole = frames[-1] != _TOO_MANY_FRAMES
    names = [frame_name(frame.partition("(")[0]) for frame in frames if frame != _TOO_MANY_FRAMES]
    waits = native and bool(names) and _waits(names)
    if native and names:
        names[0] += NATIVE_SUFFIX
    outer = [thread_name(thread), *([] if whole else [TRUNCATED])]
    return Sample(second, tuple(_once([*outer, *reversed(names)])), waits)


def _waits(names: list[str]) -> bool:
    """Whether a thread in native code only waits; `names` has the innermost frame first."""
    if _WAITING.search(names[0]):
        return True
    from_child = names[0].endswith("FileInputStream.readBytes")
    return from_child and any(".util.Shell" in name for name in names)


def _once(names: list[str]) -> list[str]:
    """`names` with one round of each recursion, so that its depth makes no difference.

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
