"""The words of the house: arms, stages, values and metrics, and the rules that go with them.

Only the standard library; imports nothing of ours. The values are the strings and numbers of the
database, the CSV and the JSON, so they never change.
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


class Comparable(NamedTuple):
    """What nights have in common if they are comparable; the gate learns only from such nights."""

    engine: str
    workload: str
    cluster: str
    shape: str
    mode: str


MIN_PAIRS = 3
"""Below this no estimate sheds a single spike: no verdict."""


Say: TypeAlias = Callable[[str], None]
"""What a function calls with each line for the person who waits for it."""


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
"""The stage of a repetition is its round: 1 for the first pairs, 2 and on for those that follow."""

MOST_ROUNDS = 12
"""A night has no more rounds than this."""

PROFILED = 99
"""The stage of repetitions with a flight recorder, for the flame graphs. A recorder costs CPU time,
so these are never compared."""

FLAMES = "flames"
"""The group of the repetitions with a flight recorder."""


def round_group(number: int) -> str:
    """Return the group in which a later round is measured; in the first one a query is a group."""
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
    APPLICATION = "application"
    """The whole life of the executors, start-up included."""


def common_basis(steady: Iterable[object | None]) -> Basis:
    """Return the basis on which repetitions are compared, whoever compares them.

    The steady state if each of them has one, else the whole application. ``steady`` has the figure
    (or the window) of each repetition that counts, of all arms; None where its steady state was
    too short to be measured.
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
        """What the value means, as a part of a sentence."""
        return VALUE_MEANINGS[self].meaning

    @property
    def counted(self) -> str:
        """The words behind a number of queries that have this value."""
        return VALUE_MEANINGS[self].counted

    @property
    def attention(self) -> int:
        """The place of the value in the order in which a person looks at queries, from 0."""
        return list(VALUE_MEANINGS).index(self)


class ValueMeaning(NamedTuple):
    """The words for a value: behind a number of queries, and what it means."""

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

WITHOUT_SIZE = frozenset({Value.INVALID, Value.MISSING})
"""Red whatever the figures are."""

CONFIRMED = frozenset({Value.REGRESSION, Value.FASTER})

LOOKS_CHANGED = CONFIRMED | {Value.SUSPECT}
"""Queries with these values have flame graphs."""


def is_red(
    value: str, ratio: float | None, *, decides: bool = True, accepted: bool = False
) -> bool:
    """Tell whether a verdict fails the night: it decides, is bad, and nobody accepted it.

    A suspect fails it too, unless the suspicion is of being faster.

    Args:
        value: The value of the verdict.
        ratio: Candidate / baseline, None where nothing was compared.
        decides: Whether the metric of the verdict decides.
        accepted: Whether a person accepted it.
    """
    if not decides or accepted:
        return False
    if value == Value.SUSPECT:
        return ratio is None or ratio > 1
    return value in FAILING


class QueryKey(NamedTuple):
    """A night has one verdict for each."""

    query: str
    metric: str


class RunKey(NamedTuple):
    """A DAG run; its text is the name of the night everywhere in the store."""

    dag_id: str
    run_id: str

    def __str__(self) -> str:
        """Return ``<dag_id>/<run_id>``."""
        return f"{self.dag_id}/{self.run_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the key of a name; a DAG's id has no slash."""
        dag_id, _, run_id = text.partition("/")
        return cls(dag_id, run_id)


_Row = TypeVar("_Row")
_Key = TypeVar("_Key")


def grouped(rows: Iterable[_Row], key: Callable[[_Row], _Key]) -> dict[_Key, list[_Row]]:
    """Return the rows by key, in their order; they need not be sorted."""
    groups: dict[_Key, list[_Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def median_of(values: Iterable[float | None]) -> float | None:
    """Return the median of the values that are known; None where none is."""
    known = [float(value) for value in values if value is not None]
    return median(known) if known else None


@dataclass(frozen=True)
class Spread:
    """The median of some values, with the least and the greatest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        """Return the spread of at least one value."""
        known = list(values)
        return cls(median(known), min(known), max(known))

    def __str__(self) -> str:
        """Return the median, with the range."""
        return f"{self.median:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Metric:
    """One figure of a repetition that is compared between the arms.

    To measure something new, add an entry to ``METRICS`` and let ``measure`` put its value into
    ``Measurement.figures`` under the same name. Everything else takes it from here.

    ``unit`` is the text behind a value, ``title`` its heading. ``decides``: the verdict may turn
    the night red, and lower is better; the others inform. ``bases``: it is measured on each basis
    (columns ``<name>_steady`` and ``<name>_application``). ``positive``: 0 is no value, compared
    only where every repetition is above 0. ``waits``: it may be mostly waiting, for a disk or a
    turn, and has no verdict on an unsteady host. ``flush_widens``: fsync is only a part of it, so
    a disk whose fsync is unsteady widens its noise instead. ``tabled``: the result table has a
    column for it beside the usual ones. ``judged``: the arms are compared by it; what is not says
    how far the others can be believed.
    """

    name: str
    unit: str = ""
    title: str = ""
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
        """Its title, else its name."""
        return self.title or self.name

    def column(self, basis: Basis | None) -> str:
        """Return the name of its figure on a basis; None for a metric without one."""
        return f"{self.name}_{basis}" if self.bases else self.name

    def text(self, value: float | None) -> str:
        """Return a value as it is printed, with thousands separators; "-" for none."""
        return "-" if value is None else f"{value:,.{self.decimals}f}"

    def worse(self, shift: float) -> bool:
        """Tell whether a log ratio candidate / baseline is a change for the worse."""
        return shift < 0 if self.higher_is_better else shift > 0


CPU = "cpu_s_per_mevent"
WALL = "wall_s"
SOURCE_RATE = "source_rate"
"""The rate at which a lone consumer reads the topic of the query."""
READ_RATE = "read_rate"
"""The rate at which the query reads it, summed over its scans."""
BROKER_CPU = "broker_cpu_s"
P50, P99 = "latency_ms_p50", "latency_ms_p99"
"""Latency of a paced workload: from when an event was due to when its row was appended."""
COMMIT, RESTORE = "commit_ms_p50", "restore_s"
"""Of a recovery workload: the commit of a batch's state; until its stores were loaded again."""
INTERRUPTION, FIRST_COMMIT, CATCH_UP = "interruption_s", "first_commit_s", "catch_up_s"
"""Of a recovery workload: without a commit; to plan and run the first batch; behind its pace."""

_KNOWN = (
    Metric(
        CPU, "CPU-s per million events", "CPU s/M events", decides=True, bases=True, waits=False
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
)
METRICS: dict[str, Metric] = {one.name: one for one in _KNOWN}
"""All metrics, by name; the one that decides comes first."""


def metric_of(name: str) -> Metric:
    """Return the metric of a name; for a name that is not known, one that informs."""
    return METRICS.get(name) or Metric(name, waits=not name.startswith(("cpu_", "state_")))
