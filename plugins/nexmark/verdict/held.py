"""What the JVMs of a soak repetition hold, and what of it has a limit."""

from dataclasses import dataclass

from nexmark.model import BATCH_CPU_GROWTH, FILE_GROWTH, HEAP_GROWTH, THREAD_GROWTH

MEGABYTE = 1e6


@dataclass(frozen=True)
class Held:
    """Something that a JVM holds.

    Attributes:
        key: its key in a sample.
        title: what people call it.
        unit: the unit of a value, '' for a number.
        scale: what a value is multiplied with.
        limit: the key of its limit in ``soak_growth``; '' if it is only shown.
        metric: the metric of its growth.
        parts: the key of what it is made up of.
        relative: whether its growth is in percent of its median.
        least: the least growth in a whole repetition that counts, in its unit: pools have a thread
            or a connection more or less at times.
    """

    key: str
    title: str
    unit: str = ""
    scale: float = 1.0
    limit: str = ""
    metric: str = ""
    parts: str = ""
    relative: bool = False
    least: float = 0.0

    @property
    def growth_unit(self) -> str:
        """The unit of its growth."""
        return "%" if self.relative else self.unit


HELD = (
    Held(
        "heap_bytes",
        "live heap",
        "MB",
        1 / MEGABYTE,
        limit="live_heap_mb",
        metric=HEAP_GROWTH,
        parts="classes",
    ),
    Held(
        "threads",
        "threads",
        limit="threads",
        metric=THREAD_GROWTH,
        parts="thread_names",
        least=3.0,
    ),
    Held(
        "open_files",
        "open files",
        limit="open_files",
        metric=FILE_GROWTH,
        parts="file_places",
        least=3.0,
    ),
    Held("metaspace_bytes", "metaspace", "MB", 1 / MEGABYTE),
    Held("code_cache_bytes", "code cache", "MB", 1 / MEGABYTE),
    Held("other_memory_bytes", "direct memory", "MB", 1 / MEGABYTE),
    Held("outside_heap_bytes", "memory outside the heap", "MB", 1 / MEGABYTE),
)
CPU_OF_BATCH = Held(
    "cpu_s",
    "CPU time of a batch",
    "CPU-s",
    limit="batch_cpu_percent",
    metric=BATCH_CPU_GROWTH,
    relative=True,
)
DURATION_OF_BATCH = Held("batch_ms", "duration of a batch", "ms", relative=True)
ROLES = ("driver", "executor")
