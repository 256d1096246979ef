"""Hold a streaming query between two batches, so that what its JVMs hold can be measured."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from nexmark_jobs.errors import JobError
from nexmark_jobs.host.whole_files import READABLE, write_whole
from nexmark_jobs.options import PauseOptions
from nexmark_jobs.progress import Batch

_POLL_S = 0.005
_DRAINED_MS = 10_000
_QUEUES = ("shared", "appStatus", "executorManagement", "eventLog", "streams")


@dataclass
class Pauses:
    """Holds a query after some of its batches until somebody removes the file `pause.json`.

    Who cannot do what the pause is for writes the reason to `failed` before; then the query fails.

    Spark's `StreamExecution` holds a fair lock, `awaitProgressLock`, while it constructs a batch
    and while it commits one. Who else holds it stops the query at one of the two. The pause begins
    at the first: the progress of a batch has been reported, and the next one is not constructed.

    Attributes:
        running: the query.
        options: after which batches it is held, and the directory of the file.
        facts: returns what the file has beside the number of the batch, when the query is held.
    """

    running: StreamingQuery
    options: PauseOptions
    facts: Callable[[], dict[str, Any]]

    def __post_init__(self) -> None:
        """Note the lock, and that no pause has been yet."""
        self._lock = self.running._jsq.streamingQuery().awaitProgressLock()
        self._next = self.options.first
        self._held: dict[int, float] = {}

    def corrected(self, batch: Batch) -> Batch:
        """Return a finished batch without the time that the query was held before it began."""
        held = self._held.pop(batch.id, None)
        if held is None:
            return batch
        milliseconds = round(1000 * held)
        left = max(batch.duration_ms - milliseconds, 0)
        steps = {**batch.steps_ms, "triggerExecution": left}
        start = batch.start + timedelta(milliseconds=batch.duration_ms - left)
        return replace(batch, start=start, duration_ms=left, steps_ms=steps)

    def after(self, batch: int) -> None:
        """Hold the query if a pause is due after a batch; JobError if nobody ends the pause."""
        if batch < self._next:
            return
        self._lock.lock()
        try:
            last = self._between()
            if last is not None:
                began = time.monotonic()
                self._wait(last)
                self._held[last + 1] = time.monotonic() - began
                first, every = self.options.first, self.options.every
                self._next = first + ((last - first) // every + 1) * every
        finally:
            self._lock.unlock()

    def _between(self) -> int | None:
        """Go on until the query waits between two batches.

        Returns:
            The number of the batch before; None if the query has ended.
        """
        before = None
        while True:
            while not self._lock.hasQueuedThreads():
                if not self.running.isActive:
                    return None
                time.sleep(_POLL_S)
            progress = self.running._jsq.lastProgress()
            last = None if progress is None else int(progress.batchId())
            if before is not None and last is not None and last > before:
                return last
            before = -1 if last is None else last
            self._lock.unlock()  # the query waits longer, so it has the lock before the next line
            self._lock.lock()

    def _wait(self, batch: int) -> None:
        """Write the file of a pause, and wait until it is removed."""
        path = self.options.directory / "pause.json"
        write_whole(path, json.dumps({"batch": batch, **self.facts()}), READABLE)
        deadline = time.monotonic() + self.options.seconds
        while path.exists():
            if time.monotonic() > deadline:
                path.unlink(missing_ok=True)
                wrong = f"nobody removed {path} in {self.options.seconds:g} s"
                raise JobError(f"the pause after batch {batch}: {wrong}")
            time.sleep(_POLL_S)
        failed = self.options.directory / "failed"
        if failed.exists():
            raise JobError(failed.read_text().strip())


def facts_of(context: Any) -> dict[str, Any]:
    """Return the id of an application, and how many events its listener bus has dropped so far.

    Spark works off the events of its bus before: events that wait there are no growth.

    Args:
        context: the SparkContext of the query.
    """
    bus = context._jsc.sc().listenerBus()
    bus.waitUntilEmpty(_DRAINED_MS)
    registry = bus.metrics().metricRegistry()
    dropped = {name: _dropped(registry, name) for name in _QUEUES}
    return {"application_id": context.applicationId, "dropped": sum(dropped.values())}


def _dropped(registry: Any, queue: str) -> int:
    name = f"queue.{queue}.numDroppedEvents"
    return int(registry.counter(name).getCount()) if registry.getNames().contains(name) else 0
