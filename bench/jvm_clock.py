"""Read the CPU time of a Spark session's JVM, for the benchmarks in local mode (Linux only)."""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_left
from pathlib import Path
from types import TracebackType

from pyspark.sql import SparkSession


class JvmClock:
    """Reads user and system time of the JVM, which in local mode is driver and executor."""

    def __init__(self, spark: SparkSession) -> None:
        """Find the process of the session's JVM."""
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        self._stat = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/stat")
        self._ticks = os.sysconf("SC_CLK_TCK")

    def cpu_s(self) -> float:
        """Return the CPU-seconds of the JVM since it was started."""
        user, system = self._stat.read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / self._ticks


class CpuRecorder:
    """Records a clock every 20 ms inside its context, and returns the reading of any moment."""

    def __init__(self, clock: JvmClock) -> None:
        """Prepare to record a clock; the context begins it."""
        self._clock = clock
        self._times: list[float] = []
        self._readings: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._record, daemon=True)

    def __enter__(self) -> CpuRecorder:
        """Begin to record."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop recording."""
        self._stop.set()
        self._thread.join()

    def cpu_s(self, moment: float) -> float:
        """Return the CPU-seconds at `moment`, in seconds since 1970.

        They are interpolated between the readings just before and just after it.
        """
        after = min(max(bisect_left(self._times, moment), 1), len(self._times) - 1)
        time_before, time_after = self._times[after - 1 : after + 1]
        cpu_before, cpu_after = self._readings[after - 1 : after + 1]
        part = (moment - time_before) / (time_after - time_before)
        return cpu_before + (cpu_after - cpu_before) * part

    def _record(self) -> None:
        while True:
            self._times.append(time.time())
            self._readings.append(self._clock.cpu_s())
            if self._stop.wait(0.02):
                return
