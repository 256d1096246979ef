"""CPU time of the JVM behind a session, for the benchmarks in local mode (Linux only)."""

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
        """CPU-seconds since the JVM began."""
        user, system = self._stat.read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / self._ticks


class CpuRecorder:
    """Notes a clock every 20 ms while it is entered, so that any moment can be asked for later."""

    def __init__(self, clock: JvmClock) -> None:
        """Record nothing yet."""
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
        """CPU-seconds at `moment` (seconds since 1970), between the readings around it."""
        after = min(max(bisect_left(self._times, moment), 1), len(self._times) - 1)
        (t0, t1), (c0, c1) = (
            self._times[after - 1 : after + 1],
            self._readings[after - 1 : after + 1],
        )
        return c0 + (c1 - c0) * (moment - t0) / (t1 - t0)

    def _record(self) -> None:
        while True:
            self._times.append(time.time())
            self._readings.append(self._clock.cpu_s())
            if self._stop.wait(0.02):
                return
