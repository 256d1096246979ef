"""What is measured beside an application: its threads, and a fixed piece of work.

The piece is the same each time and has nothing to do with Spark, so how long it takes says how fast
the machine is while the application runs. It takes less than 1 % of a core.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from statistics import median

from bench.thread_times import ThreadSeries, ThreadTimes
from nexmark_jobs.host.processes import Process, with_word

EXECUTOR = "CoarseGrainedExecutorBackend"
INTERVAL_S = 1.0
PIECE_EVERY = 4
"""A piece of work is done at every fourth reading."""
_LOOPS = 60_000
_BUFFER = 64 * 2**20
_LEAST_PIECES = 3


class Beside:
    """Reads threads and does pieces of work while an application runs.

    `mark` is the one of the cluster, by which its executors are recognised.
    """

    def __init__(self, mark: str, executors: int) -> None:
        """Remember the executors that are there already: they are another application's."""
        self._mark, self._count = mark, executors
        self._before: set[Process] = set(with_word(mark, EXECUTOR))
        self._executors: dict[int, ThreadTimes] = {}
        self._driver: ThreadTimes | None = None
        self._pieces: list[tuple[float, float, float]] = []
        self._stop = threading.Event()
        # Written buffers, since an unwritten one is a single page, which a cache holds.
        self._source = memoryview(bytearray(b"\x5a") * _BUFFER)
        self._target = memoryview(bytearray(b"\xa5") * _BUFFER)

    @contextlib.contextmanager
    def watching(self, driver: int) -> Iterator[None]:
        """Watch the application of a driver, by its pid, while the block runs."""
        self._driver = ThreadTimes(driver)
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    @property
    def executors(self) -> list[ThreadSeries]:
        """The threads of each executor."""
        return [times.series() for times in self._executors.values()]

    @property
    def driver(self) -> ThreadSeries | None:
        """The threads of the driver."""
        return self._driver.series() if self._driver else None

    def pieces(self, start: float, end: float) -> dict[str, float]:
        """Return the median CPU-seconds of the pieces of a period (epoch seconds).

        Nothing, if fewer than three were done in it.
        """
        inside = [each for each in self._pieces if start <= each[0] <= end]
        if len(inside) < _LEAST_PIECES:
            return {}
        return {
            "cpu_s": median(loop for _, loop, _ in inside),
            "cpu_memory_s": median(copy for _, _, copy in inside),
            "pieces": float(len(inside)),
        }

    def _watch(self) -> None:
        number = 0
        while not self._stop.wait(INTERVAL_S):
            if len(self._executors) < self._count:
                for process in set(with_word(self._mark, EXECUTOR)) - self._before:
                    self._executors.setdefault(process.pid, ThreadTimes(process.pid))
            for times in (*self._executors.values(), *([self._driver] if self._driver else [])):
                times.read(time.time())
            number += 1
            if number % PIECE_EVERY == 0:
                self._pieces.append((time.time(), self._loop(), self._copy()))

    def _loop(self) -> float:
        begin, value = time.thread_time(), 1
        for number in range(_LOOPS):
            value = (value * 69069 + number) & 0xFFFFFFFF
        return time.thread_time() - begin

    def _copy(self) -> float:
        begin = time.thread_time()
        self._target[:] = self._source
        return time.thread_time() - begin
