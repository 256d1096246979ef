"""The figures of a night: a row per query with medians over repetitions, and latencies by arm."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nexmark.evidence.night_rows import NightRows
from nexmark.model import (
    ARMS,
    CPU,
    FIRST_ROUND,
    METRICS,
    SUITE,
    TASK_CPU,
    Arm,
    Basis,
    Value,
    common_basis,
    grouped,
    median_of,
    metric_of,
)
from nexmark.store.table_rows import RepetitionRow, ValidationRow
from nexmark.verdict.verdict import Verdict


@dataclass(frozen=True)
class Row:
    """One query of a night with its deciding ``verdict``; a field without a figure is None.

    ``wall_s`` and ``cpu_s`` are medians over the ``repetitions`` that count, in seconds from the
    start of the query to its last batch; ``cores`` and ``throughput_per_core`` follow from them.
    ``cpu_s_per_mevent`` is the CPU time of the executors in seconds per million events, on
    ``basis``. It is the figure of the verdict if the verdict compares it. ``figures`` has the
    medians of the metrics that are ``tabled``. ``result`` is right, agrees (no reference says what
    is right), ran (an application whose rows are not compared), WRONG, unmeasured, unverified or
    not run; or pruned if the rows that said it were deleted.
    """

    query: str
    verdict: Verdict | None = None
    repetitions: int = 0
    events: int | None = None
    wall_s: float | None = None
    cpu_s: float | None = None
    result: str = "not run"
    cpu_s_per_mevent: float | None = None
    basis: Basis | None = None
    figures: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def cores(self) -> float | None:
        """The cores in use: seconds of CPU time per second of wall-clock time."""
        return self.cpu_s / self.wall_s if self.cpu_s is not None and self.wall_s else None

    @property
    def throughput_per_core(self) -> float | None:
        """Events per second and core: events per second of CPU time."""
        return self.events / self.cpu_s if self.events is not None and self.cpu_s else None

    @property
    def value(self) -> Value | None:
        """The value of the verdict; None if the query was not judged."""
        return self.verdict.value if self.verdict else None

    @property
    def reason(self) -> str:
        """The reason of the verdict; "" if the query was not judged."""
        return self.verdict.reason if self.verdict else ""

    @property
    def metric(self) -> str:
        """The metric that decides."""
        return self.verdict.metric if self.verdict else CPU

    @property
    def figure(self) -> float | None:
        """The CPU time that is compared, in seconds per million events; by default, all of it."""
        if self.verdict and self.verdict.candidate is not None and self.metric == TASK_CPU:
            return self.verdict.candidate
        return self.cpu_s_per_mevent

    @property
    def ratio(self) -> float | None:
        """The ratio candidate / baseline."""
        return self.verdict.ratio if self.verdict else None

    @property
    def lo(self) -> float | None:
        """The lower end of the 95 % interval of the ratio."""
        return self.verdict.lo if self.verdict else None

    @property
    def hi(self) -> float | None:
        """The upper end of the 95 % interval of the ratio."""
        return self.verdict.hi if self.verdict else None

    @property
    def mde(self) -> float | None:
        """The smallest slowdown that the night could have seen (0.07 is 7 %)."""
        return self.verdict.mde if self.verdict else None

    @property
    def pairs(self) -> int:
        """The number of pairs of the first round; 0 in a night by bounds."""
        return self.verdict.pairs if self.verdict else 0

    @property
    def baseline_run(self) -> str | None:
        """In a night by bounds, the accepted run with which the query was compared."""
        return self.verdict.baseline_run if self.verdict else None

    @property
    def red(self) -> bool:
        """Whether the query fails the night."""
        return self.verdict is not None and self.verdict.red

    @property
    def accepted(self) -> bool:
        """Whether an acceptance covers the verdict."""
        return self.verdict is not None and self.verdict.acceptance is not None


def rows_of(stored: NightRows) -> list[Row]:
    """Return the rows of a night, in the order in which its queries were asked for."""
    night = stored.night
    verdicts = {row.query: row for row in stored.verdicts if row.decides}
    validations = {row.query: row for row in stored.validations if row.arm == Arm.CANDIDATE}
    of_candidate = (row for row in stored.repetitions if row.arm == Arm.CANDIDATE)
    first_round = (row for row in of_candidate if row.stage == FIRST_ROUND)
    measured = grouped(first_round, lambda row: row.query)
    rows = [
        _row(query, measured.get(query, ()), verdicts.get(query), validations.get(query))
        for query in dict.fromkeys([*night.queries, *verdicts, *measured])
        if query != SUITE
    ]
    if night.rows_pruned:
        rows = [replace(row, result=_result_of_pruned(row)) for row in rows]
    return rows


def _row(
    query: str,
    repetitions: Sequence[RepetitionRow],
    verdict: Verdict | None,
    validation: ValidationRow | None,
) -> Row:
    """Return the row of a query.

    Args:
        query: The query.
        repetitions: The repetitions of the candidate in the first round.
        verdict: The verdict that decides, if the query is judged.
        validation: The outcome of the expectations, if they were evaluated.
    """
    right = [row for row in repetitions if row.ok]
    cpu: float | None
    if verdict and verdict.candidate is not None and verdict.metric == CPU:
        basis, cpu = verdict.basis, verdict.candidate
    else:
        basis = common_basis(row.cpu_s_per_mevent_steady for row in right) if right else None
        column = metric_of(CPU).column(basis)
        cpu = median_of(row.figure(column) for row in right)
    return Row(
        query=query,
        verdict=verdict,
        repetitions=len(right),
        events=right[0].events if right else None,
        wall_s=median_of(row.wall_s for row in right),
        cpu_s=median_of(row.cpu_s for row in right),
        result=_result(repetitions, validation),
        cpu_s_per_mevent=cpu,
        basis=basis,
        figures={
            name: median_of([(row.figures or {}).get(name) for row in right])
            for name, metric in METRICS.items()
            if metric.tabled
        },
    )


def _result(repetitions: Sequence[RepetitionRow], validation: ValidationRow | None) -> str:
    """Return the ``result`` of a row from the repetitions and the expectations of its query."""
    invalid = [row for row in repetitions if row.status == "invalid"]
    # A repetition that was measured is invalid only because its result is wrong.
    wrong = any(row.wall_s is not None for row in invalid)
    if wrong or (validation is not None and not validation.success):
        return "WRONG"
    if invalid:
        return "unmeasured"
    if validation is not None:
        if validation.statistics.get("compared") == 0:
            return "ran"
        return "agrees" if validation.statistics.get("proven") == 0 else "right"
    return "unverified" if repetitions else "not run"


def _result_of_pruned(row: Row) -> str:
    """Return the result of a query whose repetitions were deleted, if its verdict proves it."""
    known = row.result == "WRONG" or row.value not in (None, Value.INVALID, Value.MISSING)
    return row.result if known else "pruned"


PERCENTILES = (50.0, 90.0, 99.0, 99.9)
"""The percentiles of the latency that are shown, in percent."""
_CURVE = (
    0.0,
    25.0,
    50.0,
    60.0,
    70.0,
    75.0,
    80.0,
    85.0,
    90.0,
    92.5,
    95.0,
    96.0,
    97.0,
    98.0,
    99.0,
    99.25,
    99.5,
    99.75,
    99.9,
    99.95,
    99.99,
)
"""The percentiles of the latency that are drawn, in percent."""
_LONGEST_MS, _DIGITS = 3_600_000, 3
"""The longest latency that a histogram holds, and its number of exact decimal digits."""


@dataclass(frozen=True)
class ArmLatency:
    """The latencies of an arm, in milliseconds.

    ``percentiles`` are the latencies at 50, 90, 99 and 99.9 percent of the events. ``curve`` has
    pairs of a percentile and its latency, up to the last percentile above which there are events.
    """

    arm: str
    repetitions: int
    events: int
    percentiles: tuple[int, ...]
    longest: int
    curve: tuple[tuple[float, int], ...]


def latencies_of(rows: Iterable[RepetitionRow]) -> list[ArmLatency]:
    """Return the latencies of each arm, over the repetitions that count; [] without latencies."""
    counting = [row for row in rows if row.counts and row.latency]
    if not counting:
        return []
    from hdrh.histogram import HdrHistogram

    latencies, by_arm = [], grouped(counting, lambda row: row.arm)
    for arm in [arm for arm in ARMS if arm in by_arm]:
        total = HdrHistogram(1, _LONGEST_MS, _DIGITS)
        for row in by_arm[arm]:
            total.add(HdrHistogram.decode(row.latency))
        events = int(total.get_total_count())
        percentiles = tuple(int(total.get_value_at_percentile(at)) for at in PERCENTILES)
        percents = [at for at in _CURVE if (100 - at) * events >= 100]
        curve = tuple((at, int(total.get_value_at_percentile(at))) for at in percents)
        longest = int(total.get_max_value())
        latencies.append(ArmLatency(arm, len(by_arm[arm]), events, percentiles, longest, curve))
    return latencies
