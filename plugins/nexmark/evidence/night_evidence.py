"""All that the verdict on a night rests on: is it green, why, what next; then a line per query."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from nexmark.attribution.explained import Attribution
from nexmark.evidence import gate_health
from nexmark.evidence.alarms import Acknowledged, acks_for, alarm_lines
from nexmark.evidence.explaining import attribution_lines, attributions, confs_by_arm, reproduce
from nexmark.evidence.night_list import GREEN, NOT_COMPARED, NOT_JUDGED, RED, ValueLook, look
from nexmark.evidence.night_rows import NightRows, night_rows
from nexmark.evidence.pairs import Arms, arms_of
from nexmark.evidence.rows import Row, rows_of
from nexmark.evidence.signoffs import SignOffDecision
from nexmark.evidence.summary import (
    Upgrades,
    failed,
    health,
    nothing_compared,
    summary,
    watch_lines,
)
from nexmark.model import CPU, METRICS, PROFILED, SUITE, WALL, Metric, Value, grouped, metric_of
from nexmark.store import Store, history
from nexmark.store.accepting import confs_of_candidate
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import NightRow, RepetitionRow, SelfTestRow, ValidationRow
from nexmark.verdict.verdict import Verdict

NOTABLE = 0.02  # a smaller difference in state is not shown
PENDING = SignOffDecision()
_NOTABLE = frozenset({Value.WATCH, Value.FASTER})
"""The verdicts on the wall-clock time that a line of a night shows."""


@dataclass(frozen=True)
class Report:
    """A night with its rows; ``failed``: whether it is red.

    ``lines`` are the three that matter, with one on each red query that can be explained, and how
    far to trust them; ``alarms`` tell since which build it is.
    ``upgrades``: whether running queries survive the candidate.
    """

    night: NightRow
    rows: tuple[Row, ...]
    lines: tuple[str, ...]
    failed: bool
    alarms: tuple[str, ...] = ()
    upgrades: Upgrades = field(default_factory=Upgrades)

    def heading(self) -> str:
        """Return what was measured, in one line."""
        night = self.night
        count = max((row.repetitions for row in self.rows), default=0)
        times = "1 repetition" if count == 1 else f"medians of {count} repetitions"
        if night.rows_pruned:
            times = f"raw rows pruned on {night.rows_pruned:%Y-%m-%d}"
        place = f"{night.engine}, workload {night.workload}, cluster {night.cluster}"
        tried = f"; {confs_of_candidate(night)}" if night.candidate_conf else ""
        when = f"{night.started:%Y-%m-%d %H:%M} UTC"
        return f"Nexmark on {place}, {when}, {times}{tried}. Run {night.id}"


@dataclass(frozen=True)
class BuildRole:
    """A build of a night: the candidate, or what some of the queries are compared with.

    ``run``: the accepted run that was compared with, where the night has no baseline arm.
    """

    role: str
    id: str
    version: str
    source: str
    queries: tuple[str, ...]
    run: str | None = None


@dataclass(frozen=True)
class QueryLine:
    """One query of a night; ``state`` is the ratio of the state's bytes, where it is notable."""

    row: Row
    look: ValueLook
    wall: float | None
    wall_look: ValueLook | None
    plan: str
    state_bytes: float | None
    state: float | None
    place: int


@dataclass(frozen=True, kw_only=True)
class CommonEvidence:
    """The evidence that a night and its queries share; ``before`` and ``after`` are runs.

    ``verdicts``, ``validations``, ``builds``, ``canary`` and ``acks`` of a query are its own.
    """

    night: NightRow
    written: datetime = field(default_factory=lambda: datetime.now(UTC))
    verdicts: tuple[Verdict, ...]
    validations: tuple[ValidationRow, ...]
    builds: tuple[BuildRole, ...]
    host_names: tuple[str, ...]
    host_facts: Mapping[str, Mapping[str, Any]]
    canary: tuple[gate_health.CanaryMedian, ...]
    confs: Mapping[str, Mapping[str, Any]]
    acks: tuple[Acknowledged, ...]
    before: str | None
    after: str | None

    @property
    def gate_version(self) -> int | None:
        """The newest version of the gate that judged it."""
        return max((row.gate_version for row in self.verdicts), default=None)


@dataclass(frozen=True, kw_only=True)
class NightEvidence(CommonEvidence):
    """A night; ``decision`` is of a sign-off only.

    ``colour`` is GREEN, RED, NOT COMPARED or NOT JUDGED.

    ``reproduce`` has the command that measures each red query again, ``attributions`` why each
    query changed (only where they were asked for).
    """

    report: Report
    decision: SignOffDecision | None
    colour: str
    lines: tuple[QueryLine, ...]
    hosts: tuple[gate_health.NightHost, ...]
    self_tests: gate_health.SelfTests
    reproduce: Mapping[str, str]
    attributions: Mapping[str, Attribution]

    @property
    def metric(self) -> Metric:
        """The metric that decides."""
        return metric_of(next((line.row.metric for line in self.lines), CPU))

    @property
    def tabled(self) -> list[Metric]:
        """The metrics that have a column of their own in this night."""
        measured = {x for line in self.lines for x, value in line.row.figures.items() if value}
        return [metric for name, metric in METRICS.items() if name in measured]

    @property
    def tonight(self) -> tuple[SelfTestRow, ...]:
        """The self-tests of this night, in order."""
        return tuple(x for x in self.self_tests.rows[::-1] if x.night_id == self.night.id)

    @property
    def done(self) -> int:
        """The number of queries that have rows."""
        return sum(line.row.result != "not run" for line in self.lines)


def _largest(value: Callable[[QueryLine], float | None]) -> Callable[[QueryLine], tuple[Any, ...]]:
    return lambda line: (value(line) is None, -(value(line) or 0), line.place)


SORTS: Mapping[str, Callable[[QueryLine], tuple[Any, ...]]] = {
    "attention": lambda line: (line.look.rank, -abs((line.row.ratio or 1) - 1), line.place),
    "query": lambda line: (line.place,),
    "cpu": _largest(lambda line: line.row.ratio),
    "wall": _largest(lambda line: line.wall),
    "state": _largest(lambda line: line.state_bytes),
}
"""The columns by which the lines can be sorted."""


@of_one_moment
def make_report(store: Store, run: str) -> Report:
    """Return the report of a run; StoreError when the run is not known."""
    stored = night_rows(store, store.find_run(run), leave_out=("batch_list", "confs"))
    return report_of(store, stored)


def report_of(
    store: Store, stored: NightRows, tests: gate_health.SelfTests | None = None
) -> Report:
    """Return the report of a night whose rows are read; ``tests``: its self-tests, if known."""
    rows, suite = rows_of(stored), stored.suite
    upgrades = Upgrades(tuple(stored.compatibility))
    tests = gate_health.self_tests_of(store, stored) if tests is None else tests
    what, why, after = summary(stored.night, rows, suite, upgrades.red)
    explained = attribution_lines(store, stored, rows)
    watched = watch_lines(rows, suite)
    lines = (what, why, *explained, *watched, after, *health(stored.night, rows, tests))
    return Report(
        night=stored.night,
        rows=tuple(rows),
        lines=lines,
        failed=failed(rows, suite),
        alarms=tuple(alarm_lines(store, stored)),
        upgrades=upgrades,
    )


def _colour(report: Report) -> str:
    if not any(row.verdict for row in report.rows):
        return NOT_JUDGED
    if report.failed:
        return RED
    return NOT_COMPARED if nothing_compared(report.rows) else GREEN


@of_one_moment
def night_evidence(
    store: Store, night: NightRow, decision: SignOffDecision | None = None, deep: bool = True
) -> NightEvidence:
    """Return what is known of a night; ``deep``: also why each of its queries changed."""
    stored = night_rows(store, night)
    repetitions, verdicts = stored.repetitions, stored.verdicts
    tests = gate_health.self_tests_of(store, stored)
    report = report_of(store, stored, tests)
    arms = arms_of(repetitions, accepted_arms(store, verdicts))
    before, after = history.neighbours(store, night)
    return NightEvidence(
        night=night,
        report=report,
        decision=decision,
        colour=_colour(report),
        lines=tuple(lines_of(report.rows, verdicts, arms)),
        builds=tuple(builds_of(store, night, verdicts)),
        verdicts=tuple(verdicts),
        validations=tuple(stored.validations),
        hosts=tuple(gate_health.hosts_of(stored.canaries)),
        host_names=tuple(sorted({host for row in repetitions for host in row.hosts or ()})),
        host_facts=gate_health.host_facts(night),
        canary=tuple(gate_health.canary_of(stored.canaries)),
        confs=confs_by_arm(row for row in repetitions if row.stage != PROFILED),
        self_tests=tests,
        acks=tuple(acks_for(stored)),
        reproduce={x.query: reproduce(store, stored, x.query) for x in report.rows if x.red},
        attributions=attributions(store, stored, night.queries) if deep else {},
        before=before,
        after=after,
    )


def lines_of(
    rows: Sequence[Row], verdicts: Iterable[Verdict], arms: Mapping[str, Arms]
) -> Iterator[QueryLine]:
    """Return a line per query, in the order of the rows."""
    walls = {row.query: row for row in verdicts if row.metric == WALL}
    for place, row in enumerate(rows):
        own, wall = arms.get(row.query, Arms()), walls.get(row.query)
        state = own.ratio("state_bytes_max")
        yield QueryLine(
            row=row,
            look=look(row.value, known=row.accepted),
            wall=wall.ratio if wall and wall.ratio else own.ratio(WALL),
            wall_look=look(wall.value) if wall and wall.value in _NOTABLE else None,
            plan=own.plan,
            state_bytes=own.median("state_bytes_max"),
            state=state if state is not None and abs(state - 1) >= NOTABLE else None,
            place=place,
        )


def builds_of(store: Store, night: NightRow, verdicts: Iterable[Verdict]) -> list[BuildRole]:
    """Return each build with its role: the candidate, and what the queries are compared with."""
    compared: dict[tuple[str, str | None], list[str]] = {}
    for query, build in (night.baselines or {}).items():
        compared.setdefault((str(build), None), []).append(query)
    for row in verdicts:
        if row.baseline_run and row.decides:
            build = store.night(row.baseline_run).build_id
            compared.setdefault((build, row.baseline_run), []).append(row.query)
    rows = store.builds({night.build_id, *(build for build, _ in compared)})
    known = defaultdict(lambda: ("", ""), {x.id: (x.version, x.source) for x in rows})
    return [
        BuildRole("candidate", night.build_id, *known[night.build_id], tuple(night.queries)),
        *(
            BuildRole("baseline", build, *known[build], tuple(own), run)
            for (build, run), own in compared.items()
        ),
    ]


def accepted_arms(store: Store, verdicts: Iterable[Verdict]) -> dict[str, list[RepetitionRow]]:
    """Return the rows of the accepted runs that queries are compared with by bounds."""
    compared = [row for row in verdicts if row.baseline_run and row.decides and row.query != SUITE]
    rows: list[RepetitionRow] = []
    for run, own in grouped(compared, lambda row: row.baseline_run).items():
        queries = {row.query for row in own}
        rows += store.repetitions(str(run), queries, leave_out=("batch_list", "confs"))
    return grouped(rows, lambda row: row.query)
