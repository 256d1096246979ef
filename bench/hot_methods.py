"""Record where the CPU time of a session's JVM goes, and print the methods that take most of it.

The JDK's flight recorder looks at the Java threads every 10 or 20 ms. In local mode these are the
threads of the driver and of the tasks; the collector and the compilers are not among them.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from nexmark.flames.jfr import STACK_DEPTH, label, read_recording
from nexmark.flames.tree import collapse, write_stacks

JAVA_OPTIONS = (
    f"-XX:FlightRecorderOptions=stackdepth={STACK_DEPTH} "
    "-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints"
)
"""The options that the JVM of the session needs, for whole stacks and exact methods."""
_MAIN, _PIPE = "main", "java.io.FileInputStream.readBytes"
"""The main thread of PySpark's JVM, and where it waits until Python closes a pipe."""
TOP = 12
"""The number of methods in a list."""


@contextmanager
def recorded(spark: SparkSession) -> Iterator[Counter[tuple[str, ...]]]:
    """Record the session's JVM; after the context, the counter has the samples of each stack."""
    counts: Counter[tuple[str, ...]] = Counter()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    recording = jvm.jdk.jfr.Recording(jvm.jdk.jfr.Configuration.getConfiguration("profile"))
    recording.start()
    try:
        yield counts
        recording.stop()
        with tempfile.TemporaryDirectory(prefix="nexmark-hot-methods-") as directory:
            path = Path(directory, "recording.jfr")
            recording.dump(jvm.java.io.File(str(path)).toPath())
            stacks = collapse(read_recording(path), None, str(path))
        counts.update({stack: count for stack, count in stacks.items() if not _waits(stack)})
    finally:
        recording.close()


def _waits(stack: tuple[str, ...]) -> bool:
    return stack[0] == _MAIN and stack[-1].startswith(_PIPE)


def write(directory: Path, query: str, counts: Mapping[tuple[str, ...], int]) -> None:
    """Write the stacks of a query, as flame graph tools read them, to `directory`/`query`.txt."""
    directory.mkdir(parents=True, exist_ok=True)
    write_stacks(directory / f"{query}.txt", counts)


def lines(counts: Mapping[tuple[str, ...], int]) -> Iterator[str]:
    """Yield the methods with the largest own time, and with the largest time of all they call.

    Each line has both as a percentage of all samples.
    """
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for stack, count in counts.items():
        own[stack[-1]] += count
        for frame in set(stack):
            whole[frame] += count
    samples = sum(counts.values())
    yield f"  {samples} samples of Java threads: own time, and with all methods that it calls"
    for name, count in own.most_common(TOP):
        yield f"  {count / samples:7.1%} {whole[name] / samples:7.1%}  {label(name)}"
