"""What the tasks of a stage took together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_NS, _MS = 1e9, 1e3


@dataclass
class StageTotals:
    """The tasks of one stage of the plan, summed over batches; seconds of task threads.

    ``cpu_s`` is that of running, ``deserialise_cpu_s`` that of unpacking the task before,
    ``run_s`` the time it ran for, ``gc_s`` the time its JVM collected garbage meanwhile (which
    every task of the JVM counts for itself), ``fetch_wait_s`` the time it waited for shuffle data.
    """

    tasks: int = 0
    cpu_s: float = 0.0
    deserialise_cpu_s: float = 0.0
    run_s: float = 0.0
    gc_s: float = 0.0
    fetch_wait_s: float = 0.0

    def add(self, metrics: Mapping[str, Any]) -> None:
        """Count a task, by the task metrics that Spark logs at its end."""
        self.tasks += 1
        self.cpu_s += metrics.get("Executor CPU Time", 0) / _NS
        self.deserialise_cpu_s += metrics.get("Executor Deserialize CPU Time", 0) / _NS
        self.run_s += metrics.get("Executor Run Time", 0) / _MS
        self.gc_s += metrics.get("JVM GC Time", 0) / _MS
        self.fetch_wait_s += metrics.get("Shuffle Read Metrics", {}).get("Fetch Wait Time", 0) / _MS

    def merge(self, more: StageTotals) -> None:
        """Count the tasks of the same stage in another batch."""
        for name, value in vars(more).items():
            setattr(self, name, getattr(self, name) + value)


__all__ = ["StageTotals"]
