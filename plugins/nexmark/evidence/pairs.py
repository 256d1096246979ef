"""The repetitions of a query: both arms, the pairs, the micro-batches, and the CPU over time."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from nexmark.attribution.differences import PlanKey, PlanState, plan_state, usual
from nexmark.measure.cpu_series import CpuSeries, unpack
from nexmark.model import (
    ARMS,
    CPU,
    FIRST_ROUND,
    PROFILED,
    WALL,
    Arm,
    Basis,
    common_basis,
    grouped,
    median_of,
    metric_of,
)
from nexmark.store import Store
from nexmark.store.table_rows import RepetitionRow

Run = TypeVar("Run")

MOST_POINTS = 240
"""The largest number of points of a curve."""
_BEFORE_S, _AFTER_S = 10, 5
"""How long before and after a query a curve still has readings, in seconds."""
OF_BATCH = (
    "input_rows",
    "duration_ms",
    "state_rows",
    "state_bytes",
    "state_commit_ms",
    "state_restore_ms",
)
"""The figures of a micro-batch, by the names that they have in result files."""


@dataclass(frozen=True)
class Arms:
    """The repetitions of one query in the first round that count, of both arms.

    ``plan`` compares the most frequent plan of each arm, over the repetitions of all rounds that
    count.
    """

    candidate: tuple[RepetitionRow, ...] = ()
    baseline: tuple[RepetitionRow, ...] = ()
    plan: PlanState = PlanState.UNKNOWN

    def ratio(self, metric: str) -> float | None:
        """Return the ratio candidate / baseline of the medians of a metric."""
        baseline = median_of(row.figure(metric) for row in self.baseline)
        return _ratio(self.median(metric), baseline)

    def median(self, metric: str) -> float | None:
        """Return the median of a metric over the repetitions of the candidate."""
        return median_of(row.figure(metric) for row in self.candidate)


@dataclass(frozen=True)
class PairOfRuns:
    """Both repetitions of a pair; None for a repetition that does not exist.

    A night without a baseline arm has no repetitions of the baseline. The figures are by the metric
    that decides, on the basis of the verdict; a repetition that is not ok has none.
    """

    stage: int
    number: int
    candidate: RepetitionRow | None
    baseline: RepetitionRow | None
    candidate_figure: float | None
    baseline_figure: float | None

    @property
    def label(self) -> str:
        """The name of the pair in a chart: 3, or 2.1 for the first pair of round 2."""
        return f"{self.number}" if self.stage == FIRST_ROUND else f"{self.stage}.{self.number}"

    @property
    def ratio(self) -> float | None:
        """The ratio candidate / baseline of the figures."""
        return _ratio(self.candidate_figure, self.baseline_figure)

    @property
    def wall_ratio(self) -> float | None:
        """The ratio candidate / baseline of the wall-clock time."""
        return _ratio(_figure(self.candidate, WALL), _figure(self.baseline, WALL))

    @property
    def runs(self) -> tuple[RepetitionRow | None, RepetitionRow | None]:
        """The repetition of the candidate, and the repetition of the baseline."""
        return self.candidate, self.baseline


@dataclass(frozen=True)
class BatchMedian:
    """One micro-batch of an arm: medians over its repetitions; None if nothing was recorded."""

    arm: str
    id: int
    phase: str | None
    input_rows: float | None
    duration_ms: float | None
    state_rows: float | None
    state_bytes: float | None
    commit_ms: float | None
    restore_ms: float | None


@dataclass(frozen=True)
class CpuCurve:
    """The cores that a repetition used on one host; ``seconds`` are from the start of the query."""

    arm: str
    stage: int
    number: int
    host: str
    interval_s: float
    seconds: tuple[float, ...]
    cores: tuple[float, ...]


def arms_of(
    rows: Iterable[RepetitionRow], others: Mapping[str, Sequence[RepetitionRow]] | None = None
) -> dict[str, Arms]:
    """Return both arms of each query.

    ``others`` has by query the rows of the accepted run; its candidate is the baseline of a query
    that has no baseline arm in the night.
    """
    by_arm = {
        arm: grouped((row for row in of_arm if row.counts), lambda row: row.query)
        for arm, of_arm in grouped(rows, lambda row: row.arm).items()
    }
    candidates, baselines = (dict(by_arm.get(arm, {})) for arm in ARMS)
    for query, accepted in (others or {}).items():
        counting = [row for row in accepted if row.counts and row.arm == Arm.CANDIDATE]
        baselines.setdefault(query, counting)
    return {
        query: _arms(candidates.get(query, ()), baselines.get(query, ()))
        for query in [*candidates, *(baselines.keys() - candidates.keys())]
    }


def _arms(candidate: Sequence[RepetitionRow], baseline: Sequence[RepetitionRow]) -> Arms:
    """Return both arms of a query, from its repetitions of all rounds that count."""
    state = plan_state(usual(map(_plan_key, candidate)), usual(map(_plan_key, baseline)))
    return Arms(
        candidate=tuple(row for row in candidate if row.stage == FIRST_ROUND),
        baseline=tuple(row for row in baseline if row.stage == FIRST_ROUND),
        plan=state,
    )


def _plan_key(row: RepetitionRow) -> PlanKey | None:
    if row.plan_skeleton_hash is None or row.plan_id is None:
        return None
    return PlanKey(row.plan_skeleton_hash, row.plan_id)


def pairs_of(
    rows: Iterable[RepetitionRow], basis: Basis | None = None, metric: str = CPU
) -> list[PairOfRuns]:
    """Return the pairs of one query, by stage and number, with the figures of a metric.

    If ``basis`` is None, the figures are on the basis that all repetitions have in common, as the
    figures of the gate are.
    """
    judged = [row for row in rows if row.arm in ARMS and row.stage != PROFILED]
    if basis is None:
        basis = common_basis(row.cpu_s_per_mevent_steady for row in judged if row.ok)
    column = metric_of(metric).column(basis)
    pairs = []
    by_pair = grouped(judged, lambda row: (row.stage, row.number))
    for (stage, number), runs in sorted(by_pair.items()):
        by_arm = {row.arm: row for row in runs}
        candidate, baseline = by_arm.get(Arm.CANDIDATE), by_arm.get(Arm.BASELINE)
        pairs.append(
            PairOfRuns(
                stage=stage,
                number=number,
                candidate=candidate,
                baseline=baseline,
                candidate_figure=_figure(candidate, column),
                baseline_figure=_figure(baseline, column),
            )
        )
    return pairs


def batch_medians(rows: Iterable[RepetitionRow]) -> list[BatchMedian]:
    """Return the medians of each micro-batch over the repetitions that count, candidate first."""
    batches: dict[tuple[int, int], list[Mapping[str, float]]] = {}
    for row in rows:
        if row.arm in ARMS and row.counts:
            for batch in row.batch_list or ():
                batches.setdefault((ARMS.index(row.arm), int(batch["id"])), []).append(batch)
    return [
        BatchMedian(
            ARMS[arm],
            number,
            str(same[0].get("phase") or "") or None,
            *(median_of(batch.get(name) for batch in same) for name in OF_BATCH),
        )
        for (arm, number), same in sorted(batches.items())
    ]


def cpu_curves(store: Store, pairs: Sequence[PairOfRuns], arms: Arms) -> list[CpuCurve]:
    """Return the cores that executors and their Python workers used over time, by host.

    The curves are of the pair with the median ratio. If this pair has no samples, they are of the
    pair with samples whose ratio is next to the median. If no pair is complete, they are of the
    median repetition of each arm.
    """
    complete = [pair for pair in pairs if pair.ratio is not None]
    for pair in _nearest(complete, lambda one: one.ratio):
        runs = zip(ARMS, pair.runs, strict=True)
        of_pair = [
            curve for arm, row in runs if row is not None for curve in _curves(store, arm, row)
        ]
        if of_pair:
            return of_pair
    curves: list[CpuCurve] = []
    for arm, rows in zip(ARMS, (arms.candidate, arms.baseline), strict=True):
        for row in () if complete else _nearest(rows, lambda one: one.cpu_s_per_mevent):
            if of_repetition := list(_curves(store, arm, row)):
                curves += of_repetition
                break
    return curves


def cores(series: CpuSeries, start: float, end: float = math.inf) -> list[tuple[float, float]]:
    """Return the cores that were used between neighbouring readings, at most ``MOST_POINTS`` times.

    A series covers all repetitions of a query. Only the readings around one repetition count.

    Args:
        series: The CPU time on a host.
        start: The start of the repetition, in seconds since 1970; the times that are returned are
            in seconds from it.
        end: The end of the repetition, in seconds since 1970.
    """
    used = [a + b for a, b in zip(series.executors, series.python, strict=True)]
    first = bisect_left(series.times, start - _BEFORE_S)
    last = bisect_right(series.times, end + _AFTER_S)
    step = max(1, math.ceil((last - first) / MOST_POINTS))
    points = []
    for left in range(first, last - 1, step):
        right = min(left + step, last - 1)
        seconds = series.times[right] - series.times[left]
        if seconds > 0:
            middle = (series.times[left] + series.times[right]) / 2 - start
            points.append((round(middle, 2), round((used[right] - used[left]) / seconds, 3)))
    return points


def _curves(store: Store, arm: str, row: RepetitionRow) -> Iterator[CpuCurve]:
    """Yield the curve of a repetition on each host that has samples of it."""
    if row.start is None:
        return
    for sampled in store.sample_series(row.id):
        series = unpack(sampled.series)
        if points := cores(series, row.start, row.end or math.inf):
            seconds, used = zip(*points, strict=True)
            place = (row.stage, row.number, series.host, series.interval_s)
            yield CpuCurve(arm, *place, seconds, used)


def _nearest(rows: Sequence[Run], figure: Callable[[Run], float | None]) -> list[Run]:
    """Return the rows that have a figure; the row next to the median figure comes first."""
    known = [(value, row) for row in rows if (value := figure(row)) is not None]
    middle = median(value for value, _ in known) if known else 0.0
    return [row for _, row in sorted(known, key=lambda one: abs(one[0] - middle))]


def _figure(row: RepetitionRow | None, column: str) -> float | None:
    """Return the figure in a column, or of a metric without one; None if the run is not ok."""
    return row.figure(column) if row is not None and row.ok else None


def _ratio(candidate: float | None, baseline: float | None) -> float | None:
    return candidate / baseline if candidate is not None and baseline else None
