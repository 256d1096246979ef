"""Define the words of the package: arms, stages, values and metrics, with the rules on them.

This file imports only the standard library. Its values are the strings and numbers in the database,
the CSV and the JSON, so they never change.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import NamedTuple, Self, TypeAlias, TypeVar

SUITE = "suite"
"""The query under which the suite as a whole has its verdict."""

CANARY = "canary"
"""The query under which the replay CSV has the readings of the hosts."""
CANDIDATE_JOB = "spark.nexmark.candidateJob"
"""The name under which a night records the directory of the candidate's changed jobs; a dot and the
name of a job follow it for the formulation of each."""
LATEST = "latest"
"""The name that stands for the newest run."""


def query_name(text: str) -> str:
    """Return the name of a query that a person has written: Q5 is q5."""
    return text.strip().lower()


class Comparable(NamedTuple):
    """What nights have in common if they are comparable; the gate learns only from such nights."""

    engine: str
    workload: str
    cluster: str
    shape: str
    mode: str


ID_DIGITS = 12
"""The number of digits of a build's id that are shown: enough to tell builds apart."""


def origin_of(source: str) -> str:
    """Return in a few words where a build comes from.

    Of a tarball, it is the name of the file; of a directory, the last two parts of its path. A
    release is ``pypi:4.3.0``, as in ``source``.
    """
    kind, _, value = source.partition(":")
    if kind == "tarball":
        address = value.rpartition("#sha512=")[0] or value
        return address.partition("?")[0].rpartition("/")[2]
    if kind == "directory":
        return "/".join(value.strip("/").split("/")[-2:])
    return source


def build_name(version: str, source: str, build: str) -> str:
    """Return the name of a build for people: ``4.3.0 pypi 190d4599466c``.

    Args:
        version: Its Spark version; "" if it is not known.
        source: Where it comes from, as a DAG's param names it; "" if it is not known.
        build: Its id, which is shortened.
    """
    origin = origin_of(source)
    origin = "pypi" if origin == f"pypi:{version}" else origin
    return " ".join(word for word in (version, origin, build[:ID_DIGITS]) if word)


MIN_PAIRS = 3
"""The least number of pairs for a verdict: with fewer, one spike decides the estimate."""


Say: TypeAlias = Callable[[str], None]
"""A function that is called with each line for the person who waits."""


class Arm(StrEnum):
    """A side of the comparison; the last two test the gate itself."""

    CANDIDATE = "candidate"
    BASELINE = "baseline"
    CONTROL = "control"
    """The baseline build once more: the gate must find no difference."""
    SLOWED = "slowed"
    """The baseline build with a seeded slowdown: the gate must find it."""


ARMS = (Arm.CANDIDATE, Arm.BASELINE)


FIRST_ROUND = 1
"""The stage of a repetition is its round: 1 for the first pairs, 2 and more for the later ones."""

MOST_ROUNDS = 12
"""The largest number of rounds of a night."""

PROFILED = 99
"""The stage of repetitions with a flight recorder, for the flame graphs. A recorder costs CPU time,
so these repetitions are never compared."""

FLAMES = "flames"
"""The group of the repetitions with a flight recorder."""


def round_group(number: int) -> str:
    """Return the name of the group of a later round; in the first round, each query is a group."""
    return f"round_{number}"


class Status(StrEnum):
    """The outcome of a repetition."""

    OK = "ok"
    INVALID = "invalid"
    """Its result is wrong, or it could not be measured."""
    FAILED = "failed"
    """It did not run to its end."""


class Basis(StrEnum):
    """The part of a run that its CPU time covers; figures of different bases are never compared."""

    STEADY = "steady"
    """The batches after the warm-up."""
    APPLICATION = "application"
    """The whole life of the executors, start-up included."""


def common_basis(steady: Iterable[object | None]) -> Basis:
    """Return the basis on which repetitions are compared; every comparison asks this function.

    It is the steady state if each of them has one, else the whole application. ``steady`` has the
    figure (or the window) of each repetition that counts, of all arms; None for a repetition whose
    steady state was too short to be measured.
    """
    return Basis.STEADY if all(figure is not None for figure in steady) else Basis.APPLICATION


class Mode(StrEnum):
    """How a night is judged."""

    BOUNDS = "bounds"
    """By the ratio to an accepted run."""
    PAIRED = "paired"
    """By pairs with a baseline build that was measured in the same night."""


class Value(StrEnum):
    """The gate's answer for one query; ``VALUE_MEANINGS`` says what each value means."""

    OK = "OK"
    FASTER = "FASTER"
    REGRESSION = "REGRESSION"
    INVALID = "INVALID"
    MISSING = "MISSING"
    NO_BASELINE = "NO BASELINE"
    SUSPECT = "SUSPECT"
    UNDECIDED = "UNDECIDED"
    SOURCE_BOUND = "SOURCE_BOUND"
    WATCH = "WATCH"

    @property
    def meaning(self) -> str:
        """Return what the value means, as a part of a sentence."""
        return VALUE_MEANINGS[self].meaning

    @property
    def counted(self) -> str:
        """Return the words that follow a number of queries with this value."""
        return VALUE_MEANINGS[self].counted

    @property
    def attention(self) -> int:
        """Return the place of the value, from 0, in the order in which a person looks at them."""
        return list(VALUE_MEANINGS).index(self)


class ValueMeaning(NamedTuple):
    """The words for a value: ``counted`` follows a number of queries, ``meaning`` explains it."""

    counted: str
    meaning: str


VALUE_MEANINGS: Mapping[Value, ValueMeaning] = {
    Value.INVALID: ValueMeaning(
        "invalid",
        "a wrong result, figures that cannot be trusted, or a running query that would not survive",
    ),
    Value.MISSING: ValueMeaning(
        "missing", "fewer than three whole pairs (by bounds: not all repetitions)"
    ),
    Value.REGRESSION: ValueMeaning(
        "slower", "slower, in the first pairs and in those that followed"
    ),
    Value.SUSPECT: ValueMeaning("suspect", "looks changed, and could not be measured again"),
    Value.NO_BASELINE: ValueMeaning(
        "without a baseline", "nothing to compare with: accept a run, or name a build"
    ),
    Value.WATCH: ValueMeaning(
        "to watch",
        "slow drift, a creep of accepted builds, or a change of a metric that does not decide: "
        "look at it",
    ),
    Value.SOURCE_BOUND: ValueMeaning(
        "bound by their source",
        "the source is hardly faster than the query, so the figures may be the source's; no "
        "evidence for a release",
    ),
    Value.UNDECIDED: ValueMeaning(
        "undecided", "a slowdown that matters is neither shown nor excluded: measure more pairs"
    ),
    Value.FASTER: ValueMeaning("faster", "better, by the same test in the other direction"),
    Value.OK: ValueMeaning(
        "unchanged", "the interval excludes a slowdown that matters (by bounds: within the bound)"
    ),
}
"""The one place that says what a value means, in the order in which a person looks at them.

The pages and the summary of a night are made from it; a test compares the tables of README.md and
docs/read-the-result.md with it.
"""


FAILING = frozenset({Value.REGRESSION, Value.INVALID, Value.MISSING})
"""The values that fail a night."""

WITHOUT_SIZE = frozenset({Value.INVALID, Value.MISSING})
"""The values that fail a night whatever the figures are."""

CONFIRMED = frozenset({Value.REGRESSION, Value.FASTER})
"""The values of a change that later pairs have confirmed."""

LOOKS_CHANGED = CONFIRMED | {Value.SUSPECT}
"""The values of a query that has changed, or seems to have: it gets flame graphs."""


LEFT_OPEN = frozenset({Value.UNDECIDED, Value.SUSPECT})
"""The values of a query that more pairs of the same two builds would decide."""

MEASURED_ON = LEFT_OPEN | WITHOUT_SIZE
"""The values of a query that `nexmark build --continue RUN` measures.

Pairs of an INVALID one do not count, and a MISSING one has too few: they begin again.
"""


def is_red(
    value: str, ratio: float | None, *, decides: bool = True, accepted: bool = False
) -> bool:
    """Tell whether a verdict fails the night: it decides, is bad, and nobody accepted it.

    A suspect fails the night, too, unless it seems to be faster (``ratio`` up to 1).

    Args:
        value: The value of the verdict.
        ratio: The ratio candidate / baseline of the metric; None if it is not known.
        decides: Whether verdicts on this metric may fail a night.
        accepted: Whether a person accepted the verdict.
    """
    if not decides or accepted:
        return False
    if value == Value.SUSPECT:
        return ratio is None or ratio > 1
    return value in FAILING


class QueryKey(NamedTuple):
    """A query and a metric: a night has one verdict for each of these pairs."""

    query: str
    metric: str


class RunKey(NamedTuple):
    """The key of a DAG run; as text, it is the name of the night in the results database."""

    dag_id: str
    run_id: str

    def __str__(self) -> str:
        """Return ``<dag_id>/<run_id>``."""
        return f"{self.dag_id}/{self.run_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the key for the name of a night; the id of a DAG has no slash."""
        dag_id, _, run_id = text.partition("/")
        return cls(dag_id, run_id)


_Row = TypeVar("_Row")
_Key = TypeVar("_Key")


def grouped(rows: Iterable[_Row], key: Callable[[_Row], _Key]) -> dict[_Key, list[_Row]]:
    """Return the rows by key, each list in the order of the rows, which need not be sorted."""
    groups: dict[_Key, list[_Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def median_of(values: Iterable[float | None]) -> float | None:
    """Return the median of the values that are known; None if none is."""
    known = [float(value) for value in values if value is not None]
    return median(known) if known else None


@dataclass(frozen=True)
class Spread:
    """The median of some values, with the smallest (``low``) and the largest (``high``)."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        """Return the spread of at least one value."""
        known = list(values)
        return cls(median(known), min(known), max(known))

    def __str__(self) -> str:
        """Return the median, then the smallest and the largest value in brackets."""
        return f"{self.median:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Metric:
    """A figure of a repetition that is compared between the arms.

    To measure something new, add an entry to ``METRICS`` and let ``measure`` put its value into
    ``Measurement.figures`` under the same name. Everything else takes it from here.

    Attributes:
        name: The name of the metric, and of its column in the database.
        unit: The text that follows a value.
        title: The heading of a column; '' for the name.
        decimals: The number of decimals of a printed value.
        higher_is_better: Whether a higher value is better.
        decides: Whether its verdict may fail the night; lower is better then. Other metrics inform.
        bases: Whether it is measured on each basis (columns ``<name>_steady`` and
            ``<name>_application``).
        positive: Whether 0 means that there is no value: arms are compared only if every
            repetition is above 0.
        waits: Whether a large part of it may be time in which the query waits for a disk or a CPU:
            then it has no verdict on an unsteady host.
        flush_widens: Whether fsync is only a part of it: a disk with an unsteady fsync then widens
            its noise, and does not take its verdict away.
        tabled: Whether the result table has a column for it beside the usual ones.
        judged: Whether the arms are compared by it. A metric that is not judged says how far the
            others can be believed.
    """

    name: str
    unit: str = ""
    title: str = ""
    word: str = ""
    decimals: int = 3
    higher_is_better: bool = False
    decides: bool = False
    bases: bool = False
    positive: bool = False
    waits: bool = True
    flush_widens: bool = False
    tabled: bool = False
    judged: bool = True

    @property
    def heading(self) -> str:
        """Return the title of the metric, or its name if it has no title."""
        return self.title or self.name

    @property
    def short(self) -> str:
        """Return the word for the metric in a sentence, or its heading if it has none."""
        return self.word or self.heading

    def column(self, basis: Basis | None) -> str:
        """Return the name of the figure on a basis; None is the basis of a metric without bases."""
        return f"{self.name}_{basis}" if self.bases else self.name

    def text(self, value: float | None) -> str:
        """Return a value as it is printed, with thousands separators; "-" for None."""
        return "-" if value is None else f"{value:,.{self.decimals}f}"

    def worse(self, shift: float) -> bool:
        """Tell whether a log ratio candidate / baseline is a change for the worse."""
        return shift < 0 if self.higher_is_better else shift > 0


CPU = "cpu_s_per_mevent"
"""The executors' CPU-seconds per million events: the metric that decides by bounds."""
TASK_CPU = "task_cpu_s_per_mevent"
"""The CPU-seconds of the tasks with their Python workers per million events.

It is the work of the query itself, without garbage collection, compilation and other threads.
"""
FALLS_BACK = {TASK_CPU: CPU}
"""The metric that decides a query where the first one was not measured in every repetition."""
CPU_METRICS = (TASK_CPU, CPU)
"""The metrics by which a night is judged whose events are not paced, the first by pairs."""
WALL = "wall_s"
"""The seconds from the start of the streaming query to the end of its last batch."""
SOURCE_RATE = "source_rate"
"""The rate at which a lone consumer reads the topic of the query."""
READ_RATE = "read_rate"
"""The rate at which the query reads its topic, summed over its scans."""
BROKER_CPU = "broker_cpu_s"
"""The CPU-seconds of the broker of a repetition."""
P50, P99 = "latency_ms_p50", "latency_ms_p99"
"""Percentiles of the latency of a paced workload.

The latency of an event is the time from the moment when it was due until its row was appended.
"""
COMMIT, RESTORE = "commit_ms_p50", "restore_s"
"""Of a recovery workload: the median time in which the state of a batch is committed, and the time
in which the stores load their state again after a kill."""
INTERRUPTION, FIRST_COMMIT, CATCH_UP = "interruption_s", "first_commit_s", "catch_up_s"
"""Of a recovery workload, after a kill: the seconds without a commit, the seconds in which the
first batch is planned and run, and the seconds until the query keeps its pace again."""
GROWTH = "growth"
"""Of a soak workload: the largest growth, in multiples of its limit (`soak_growth`)."""
HEAP_GROWTH, THREAD_GROWTH, FILE_GROWTH = "heap_growth_mb", "thread_growth", "file_growth"
BATCH_CPU_GROWTH = "batch_cpu_growth_percent"
"""Of a soak workload, in 1,000 batches: the growth of the live heap, of the number of threads and
of open files, each in the role where it is largest, and the growth of the CPU time of a batch."""
BATCH_CPU = "batch_cpu_s"
"""Of a soak workload: the CPU-seconds of a batch with next to no rows, of driver and executors."""

_KNOWN = (
    Metric(
        TASK_CPU,
        "CPU-s of tasks per million events",
        "task CPU s/M",
        word="CPU of tasks",
        decides=True,
        positive=True,
        waits=False,
    ),
    Metric(
        CPU,
        "CPU-s per million events",
        "CPU s/M events",
        word="CPU",
        decides=True,
        bases=True,
        waits=False,
    ),
    Metric(WALL, "s", "Time(s)"),
    Metric("batch_ms_p99", "ms", "batch p99", decimals=0),
    Metric("state_bytes_max", "bytes", "state", decimals=0, positive=True, waits=False),
    Metric(SOURCE_RATE, "records/s", "source", decimals=0, higher_is_better=True, judged=False),
    Metric(READ_RATE, "records/s", "read", decimals=0, higher_is_better=True, judged=False),
    Metric(P50, "ms", "p50 ms", decimals=1, tabled=True),
    Metric(P99, "ms", "p99 ms", decimals=1, tabled=True),
    Metric(RESTORE, "s", "restore s", tabled=True, positive=True, flush_widens=True),
    Metric(COMMIT, "ms", "commit ms", decimals=0, tabled=True, positive=True),
    Metric(INTERRUPTION, "s", "away s", decimals=1, tabled=True, positive=True),
    Metric(FIRST_COMMIT, "s", "first commit s", decimals=1, tabled=True, positive=True),
    Metric(CATCH_UP, "s", "behind s", decimals=1, tabled=True, positive=True),
    Metric(BROKER_CPU, "s", "CPU of the broker", positive=True, waits=False),
    Metric(GROWTH, "of the limit", "growth", decimals=2, tabled=True, waits=False, judged=False),
    Metric(HEAP_GROWTH, "MB", "heap MB/1,000", decimals=2, tabled=True, waits=False, judged=False),
    Metric(THREAD_GROWTH, "", "threads/1,000", decimals=2, tabled=True, waits=False, judged=False),
    Metric(FILE_GROWTH, "", "files/1,000", decimals=2, tabled=True, waits=False, judged=False),
    Metric(
        BATCH_CPU_GROWTH,
        "%",
        "batch CPU %/1,000",
        decimals=1,
        tabled=True,
        waits=False,
        judged=False,
    ),
    Metric(
        BATCH_CPU,
        "CPU-s per batch",
        "CPU s/batch",
        decimals=3,
        tabled=True,
        positive=True,
        waits=False,
    ),
)
METRICS: dict[str, Metric] = {one.name: one for one in _KNOWN}
"""All metrics, by name; those that decide come first."""


def metric_of(name: str) -> Metric:
    """Return the metric with a name; for an unknown name, return a new metric that informs."""
    return METRICS.get(name) or Metric(name, waits=not name.startswith(("cpu_", "state_")))
