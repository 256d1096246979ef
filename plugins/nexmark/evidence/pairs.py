"""The repetitions of a query: both arms side by side, as pairs, batch by batch, and over time."""

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

MOST_POINTS = 240  # of one curve
_BEFORE_S, _AFTER_S = 10, 5
OF_BATCH = (
    *("input_rows", "duration_ms", "state_rows", "state_bytes"),
    *("state_commit_ms", "state_restore_ms"),
)


@dataclass(frozen=True)
class Arms:
    """The first repetitions of one query that count, of candidate and baseline.

    ``plan`` compares the usual plans of all repetitions that count, the fresh ones included.
    """

    candidate: tuple[RepetitionRow, ...] = ()
    baseline: tuple[RepetitionRow, ...] = ()
    plan: PlanState = PlanState.UNKNOWN

    def ratio(self, metric: str) -> float | None:
        """Return the ratio of the medians of a metric."""
        old = median_of(getattr(row, metric) for row in self.baseline)
        return _ratio(self.median(metric), old)

    def median(self, metric: str) -> float | None:
        """Return the median of a metric of the candidate."""
        return median_of(getattr(row, metric) for row in self.candidate)


@dataclass(frozen=True)
class PairOfRuns:
    """Both repetitions of a pair; None for one that is not there (a night of one arm has none).

    The figures are of the metric that decides, on the basis of the verdict, of repetitions that
    count.
    """

    stage: int
    number: int
    candidate: RepetitionRow | None
    baseline: RepetitionRow | None
    candidate_figure: float | None
    baseline_figure: float | None

    @property
    def label(self) -> str:
        """The name of the pair in a chart: 3, or 2.1 for the first one of round 2."""
        return f"{self.number}" if self.stage == FIRST_ROUND else f"{self.stage}.{self.number}"

    @property
    def ratio(self) -> float | None:
        """Candidate / baseline."""
        return _ratio(self.candidate_figure, self.baseline_figure)

    @property
    def wall_ratio(self) -> float | None:
        """Candidate / baseline of the wall-clock time."""
        return _ratio(_figure(self.candidate, WALL), _figure(self.baseline, WALL))

    @property
    def runs(self) -> tuple[RepetitionRow | None, RepetitionRow | None]:
        """The candidate's repetition, and the baseline's."""
        return self.candidate, self.baseline


@dataclass(frozen=True)
class BatchMedian:
    """One micro-batch of an arm: medians over its repetitions; None for what was not recorded."""

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
    """The cores in use of a repetition on one host; ``seconds`` from the start of the query."""

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
    """Return the arms by query; ``others`` has the baseline that is of another night."""
    by_query = {
        arm: grouped((row for row in own if row.counts), lambda row: row.query)
        for arm, own in grouped(rows, lambda row: row.arm).items()
    }
    ours, theirs = (dict(by_query.get(arm, {})) for arm in ARMS)
    for query, accepted in (others or {}).items():
        own = [row for row in accepted if row.counts and row.arm == Arm.CANDIDATE]
        theirs.setdefault(query, own)
    return {
        query: _arms(ours.get(query, ()), theirs.get(query, ()))
        for query in [*ours, *(theirs.keys() - ours.keys())]
    }


def _arms(candidate: Sequence[RepetitionRow], baseline: Sequence[RepetitionRow]) -> Arms:
    state = plan_state(usual(map(_plan_key, candidate)), usual(map(_plan_key, baseline)))
    ours, theirs = (
        tuple(row for row in arm if row.stage == FIRST_ROUND) for arm in (candidate, baseline)
    )
    return Arms(ours, theirs, state)


def _plan_key(row: RepetitionRow) -> PlanKey | None:
    if row.plan_skeleton_hash is None or row.plan_id is None:
        return None
    return PlanKey(row.plan_skeleton_hash, row.plan_id)


def pairs_of(
    rows: Iterable[RepetitionRow], basis: Basis | None = None, metric: str = CPU
) -> list[PairOfRuns]:
    """Return the pairs of one query, by stage and number, with the figures of a metric.

    Without a ``basis``, the figures are on the one that all repetitions have, as the gate's are.
    """
    own = [row for row in rows if row.arm in ARMS and row.stage != PROFILED]
    if basis is None:
        basis = common_basis(row.cpu_s_per_mevent_steady for row in own if row.ok)
    column = metric_of(metric).column(basis)
    pairs = []
    for (stage, number), runs in sorted(grouped(own, lambda x: (x.stage, x.number)).items()):
        arms = {row.arm: row for row in runs}
        ours, theirs = arms.get(Arm.CANDIDATE), arms.get(Arm.BASELINE)
        figures = _figure(ours, column), _figure(theirs, column)
        pairs.append(PairOfRuns(stage, number, ours, theirs, *figures))
    return pairs


def batch_medians(rows: Iterable[RepetitionRow]) -> list[BatchMedian]:
    """Return each micro-batch of both arms, over the repetitions that count; ours first."""
    found: dict[tuple[int, int], list[Mapping[str, float]]] = {}
    for row in rows:
        if row.arm in ARMS and row.counts:
            for batch in row.batch_list or ():
                found.setdefault((ARMS.index(row.arm), int(batch["id"])), []).append(batch)
    return [
        BatchMedian(
            ARMS[arm],
            number,
            str(own[0].get("phase") or "") or None,
            *(median_of(batch.get(name) for batch in own) for name in OF_BATCH),
        )
        for (arm, number), own in sorted(found.items())
    ]


def cpu_curves(store: Store, pairs: Sequence[PairOfRuns], arms: Arms) -> list[CpuCurve]:
    """Return the cores in use over time, by host, of the pair whose ratio is the median one.

    Cores of executors and their Python workers. Where that pair has no samples, the next one to the
    median is taken; where there are no pairs, the median repetition of each arm.
    """
    complete = [pair for pair in pairs if pair.ratio is not None]
    for pair in _nearest(complete, lambda one: one.ratio):
        runs = zip(ARMS, pair.runs, strict=True)
        found = [x for arm, row in runs if row is not None for x in _curves(store, arm, row)]
        if found:
            return found
    curves: list[CpuCurve] = []
    for arm, rows in zip(ARMS, (arms.candidate, arms.baseline), strict=True):
        for row in () if complete else _nearest(rows, lambda one: one.cpu_s_per_mevent):
            if own := list(_curves(store, arm, row)):
                curves += own
                break
    return curves


def cores(series: CpuSeries, start: float, end: float = math.inf) -> list[tuple[float, float]]:
    """Return seconds from ``start`` and the cores used, between neighbouring readings.

    The samplers run for all repetitions: only the readings around this one are taken, at most
    ``MOST_POINTS`` of them.
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
    if row.start is None:
        return
    for sampled in store.sample_series(row.id):
        series = unpack(sampled.series)
        if points := cores(series, row.start, row.end or math.inf):
            seconds, used = zip(*points, strict=True)
            place = (row.stage, row.number, series.host, series.interval_s)
            yield CpuCurve(arm, *place, seconds, used)


def _nearest(rows: Sequence[Run], figure: Callable[[Run], float | None]) -> list[Run]:
    """Return what has a figure, that with the median one first."""
    known = [(value, row) for row in rows if (value := figure(row)) is not None]
    middle = median(value for value, _ in known) if known else 0.0
    return [row for _, row in sorted(known, key=lambda one: abs(one[0] - middle))]


def _figure(row: RepetitionRow | None, column: str) -> float | None:
    """Return the figure in a column, or of a metric without one; None if it does not count."""
    return row.figure(column) if row is not None and row.ok else None


def _ratio(candidate: float | None, baseline: float | None) -> float | None:
    return candidate / baseline if candidate is not None and baseline else None
