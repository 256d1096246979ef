"""The evidence of a night: whether it is green, why, and what to do next; then a line per query."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeAlias

from nexmark.attribution.explained import Attribution
from nexmark.commits.source_changes import SourceChange
from nexmark.evidence import gate_health
from nexmark.evidence.alarms import (
    Acknowledged,
    accepted_lines,
    acks_for,
    alarm_groups,
    alarm_lines,
)
from nexmark.evidence.changed_source import changed_source
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
from nexmark.night.night_progress import duration
from nexmark.secrets import shown_build
from nexmark.store import Store, history
from nexmark.store.accepting import confs_of_candidate
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import NightRow, RepetitionRow, SelfTestRow, ValidationRow
from nexmark.verdict.verdict import Verdict

NOTABLE = 0.02
"""The smallest relative difference of the size of the state that a line shows."""
PENDING = SignOffDecision()
"""The decision on a sign-off before a person has decided."""
_NOTABLE = frozenset({Value.WATCH, Value.FASTER})
"""The verdicts on the wall-clock time that a line of a night shows."""
_GATE = "Gate: "
"""The begin of the lines of a report that say how far the measurement can be trusted."""
STATE_BYTES = "state_bytes_max"
"""The column of a repetition that has the largest size of its state, in bytes."""


@dataclass(frozen=True)
class Report:
    """A night with its rows; ``failed``: whether the night is red.

    ``lines`` say what happened, why, and what to do next. Between them is a line on each red query
    that can be explained; the last ones say how far the measurement can be trusted. ``alarms`` say
    with which build each alarm began, ``source_changes`` what changed in its source, ``upgrades``
    whether running queries survive an upgrade to the candidate, ``accepted`` what a person accepted
    that matters tonight. The page of the night, the terminal
    and every message begin with the ``answer`` and the ``statements``.
    """

    night: NightRow
    rows: tuple[Row, ...]
    lines: tuple[str, ...]
    failed: bool
    alarms: tuple[str, ...] = ()
    source_changes: tuple[SourceChange, ...] = ()
    upgrades: Upgrades = field(default_factory=Upgrades)
    accepted: tuple[str, ...] = ()

    @property
    def colour(self) -> str:
        """The colour of the night: GREEN, RED, NOT COMPARED or NOT JUDGED."""
        if not any(row.verdict for row in self.rows):
            return NOT_JUDGED
        if self.failed:
            return RED
        return NOT_COMPARED if nothing_compared(self.rows) else GREEN

    @property
    def answer(self) -> str:
        """What happened, as a sentence without the word for the colour."""
        what = self.lines[0].partition(": ")[2]
        return what[:1].upper() + what[1:]

    @property
    def statements(self) -> tuple[tuple[str, str], ...]:
        """Why it happened, what to do next, since when, and who accepted: topics with texts."""
        topics = (line.partition(": ") for line in self.lines[1:] if not line.startswith(_GATE))
        since = (("Since", line.removeprefix("since ")) for line in self.alarms)
        accepted = (("Accepted", line) for line in self.accepted)
        return (*((topic, text) for topic, _, text in topics), *since, *accepted)

    @property
    def first_lines(self) -> tuple[str, ...]:
        """The answer, the statements and what changed in the source, as lines of a text."""
        changed = [line for change in self.source_changes for line in change.lines]
        return (self.lines[0], *(f"{topic}: {text}" for topic, text in self.statements), *changed)

    @property
    def trust(self) -> tuple[str, ...]:
        """How far the measurement can be trusted, in sentences."""
        return tuple(line.removeprefix(_GATE) for line in self.lines if line.startswith(_GATE))

    @property
    def text_lines(self) -> tuple[str, ...]:
        """All that a text says below the table: the first lines, the trust, and the upgrades."""
        trust = [_GATE + line for line in self.trust]
        return (*self.first_lines, *trust, *self.upgrades.lines)

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
class Cost:
    """What the timed repetitions of a night cost.

    ``wall_s`` are the seconds from the start of the first to the end of the last of them,
    ``steady_s`` the seconds of their steady states: the rest is the start of applications, other
    measurements between them, and waiting. ``cpu_s`` is the CPU time of their executors and
    drivers, in seconds; None if it is not known of each of them. ``sampled_s`` are the seconds
    for which the queries of a soak were held to take samples.
    """

    repetitions: int
    wall_s: float
    steady_s: float
    cpu_s: float | None = None
    sampled_s: float = 0.0

    @property
    def words(self) -> str:
        """The cost in words: time, its share of steady measured work, and CPU time.

        Such as ``96 timed applications in 2:13:00, 61% of it steady measured work; 5.2 CPU-hours``.
        """
        share = f"{self.steady_s / max(self.wall_s, 1.0):.0%} of it steady measured work"
        if self.sampled_s:
            share += f" and {self.sampled_s / max(self.wall_s, 1.0):.1%} samples"
        cpu = "" if self.cpu_s is None else f"; {_cpu_time(self.cpu_s)}"
        return f"{self.repetitions} timed applications in {duration(self.wall_s)}, {share}{cpu}"


def cost_of(repetitions: Iterable[RepetitionRow]) -> Cost | None:
    """Return the cost of a night from its repetitions; None if none was measured."""
    spans = [
        (row.start, row.end, row.steady_wall_s or 0.0, row.cpu_application_s, _sampled_s(row))
        for row in repetitions
        if row.start is not None and row.end is not None
    ]
    if not spans:
        return None
    starts, ends, steady, cpu, sampled = zip(*spans, strict=True)
    known = [each for each in cpu if each is not None]
    cpu_s = sum(known) if len(known) == len(spans) else None
    return Cost(len(spans), max(ends) - min(starts), sum(steady), cpu_s, sum(sampled))


def _sampled_s(row: RepetitionRow) -> float:
    """Return the seconds that the samples of a repetition in a soak took."""
    spans = [sample["at"] for sample in row.ageing or ()]
    return float(sum(ended - began for began, ended in spans))


def _cpu_time(seconds: float) -> str:
    """Return CPU time in words: ``5.2 CPU-hours``, or ``12.5 CPU-minutes`` below an hour."""
    if seconds < 3600:
        return f"{seconds / 60:.1f} CPU-minutes"
    return f"{seconds / 3600:.1f} CPU-hours"


@dataclass(frozen=True)
class BuildRole:
    """A build of a night: the candidate, or a baseline of some ``queries``.

    ``run`` is the accepted run with which the queries are compared, if the night has no baseline
    arm. ``revision`` is the commit that the build was made from, None if that is not known.
    """

    role: str
    id: str
    version: str
    source: str
    queries: tuple[str, ...]
    run: str | None = None
    revision: str | None = None

    @property
    def name(self) -> str:
        """The build for people: version and origin first, then the id, without secrets."""
        return shown_build(self.version, self.source, self.id)


@dataclass(frozen=True)
class QueryLine:
    """The line of a query in a night.

    ``wall`` is the ratio of the wall-clock time; ``wall_look`` is how the verdict on it looks, if
    the line shows it. ``state_bytes`` is the size of the state in bytes, ``state`` its ratio
    candidate / baseline, None if the difference is not notable. ``place`` is the place of the query
    in the order in which the queries were asked for.
    """

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
    """The fields that the evidence of a night and the evidence of a query have in common.

    In the evidence of a query, ``verdicts``, ``validations``, ``builds``, ``canary`` and ``acks``
    have only what belongs to the query. ``before`` and ``after`` are the runs of the same DAG just
    before and just after this one.
    """

    night: NightRow
    written: datetime = field(default_factory=lambda: datetime.now(UTC))
    verdicts: tuple[Verdict, ...]
    validations: tuple[ValidationRow, ...]
    builds: tuple[BuildRole, ...]
    host_names: tuple[str, ...]
    host_facts: Mapping[str, Mapping[str, object]]
    canary: tuple[gate_health.CanaryMedian, ...]
    confs: Mapping[str, Mapping[str, str | tuple[str, ...]]]
    acks: tuple[Acknowledged, ...]
    before: str | None
    after: str | None

    @property
    def gate_version(self) -> int | None:
        """The newest version of the gate that judged the night; None if it is not judged."""
        return max((row.gate_version for row in self.verdicts), default=None)


@dataclass(frozen=True, kw_only=True)
class NightEvidence(CommonEvidence):
    """The evidence of a night; only a sign-off has a ``decision``.

    ``colour`` is GREEN, RED, NOT COMPARED or NOT JUDGED. ``reproduce`` has by red query the command
    that measures it again. ``attributions`` say by query why it changed; they are empty if nobody
    asked for them.
    """

    report: Report
    decision: SignOffDecision | None
    colour: str
    lines: tuple[QueryLine, ...]
    hosts: tuple[gate_health.NightHost, ...]
    self_tests: gate_health.SelfTests
    reproduce: Mapping[str, str]
    attributions: Mapping[str, Attribution]
    cost: Cost | None

    @property
    def metric(self) -> Metric:
        """The metric that decides."""
        return metric_of(next((line.row.metric for line in self.lines), CPU))

    @property
    def tabled(self) -> list[Metric]:
        """The metrics that have a column of their own in the table of this night."""
        figures = (figure for line in self.lines for figure in line.row.figures.items())
        measured = {name for name, value in figures if value}
        return [metric for name, metric in METRICS.items() if name in measured]

    @property
    def tonight(self) -> tuple[SelfTestRow, ...]:
        """The self-tests of this night, in the order in which they were recorded."""
        return self.self_tests.rows[::-1]

    @property
    def done(self) -> int:
        """The number of queries that have rows."""
        return sum(line.row.result != "not run" for line in self.lines)


_SortKey: TypeAlias = Callable[[QueryLine], tuple[float, ...]]
"""Returns the key by which a line is sorted."""


def _largest_first(value: Callable[[QueryLine], float | None]) -> _SortKey:
    """Return the key that puts the largest value first, and lines without a value last."""
    return lambda line: (value(line) is None, -(value(line) or 0), line.place)


SORTS: Mapping[str, _SortKey] = {
    "attention": lambda line: (line.look.rank, -abs((line.row.ratio or 1) - 1), line.place),
    "query": lambda line: (line.place,),
    "cpu": _largest_first(lambda line: line.row.ratio),
    "wall": _largest_first(lambda line: line.wall),
    "state": _largest_first(lambda line: line.state_bytes),
}
"""The keys of the orders that a page offers for its lines."""


@of_one_moment
def make_report(store: Store, run: str) -> Report:
    """Return the report of a run; StoreError if the run is not known."""
    stored = night_rows(store, store.find_run(run), leave_out=("batch_list", "confs"))
    return report_of(store, stored)


def report_of(
    store: Store,
    stored: NightRows,
    tests: gate_health.SelfTests | None = None,
    acks: Sequence[Acknowledged] | None = None,
) -> Report:
    """Return the report of a night from its rows.

    Args:
        store: The results database.
        stored: The rows of the night.
        tests: What ``self_tests_of`` returns for them; None to call it.
        acks: What ``acks_for`` returns for them; None to call it.
    """
    rows, suite = rows_of(stored), stored.suite
    tests = gate_health.self_tests_of(store, stored) if tests is None else tests
    upgraded = store.build_names(row.baseline_build for row in stored.compatibility)
    upgrades = Upgrades(tuple(stored.compatibility), upgraded)
    names = store.build_names((stored.night.baselines or {}).values())
    what, why, after = summary(stored.night, rows, suite, upgrades.red, names)
    explained = attribution_lines(store, stored, rows)
    watched = watch_lines(rows, suite)
    lines = (what, why, *explained, *watched, after, *health(stored.night, rows, tests, names))
    groups = alarm_groups(store, stored.night, stored.verdicts)
    return Report(
        night=stored.night,
        rows=tuple(rows),
        lines=lines,
        failed=failed(rows, suite),
        alarms=tuple(alarm_lines(store, groups)),
        source_changes=tuple(changed_source(store, stored, groups)),
        upgrades=upgrades,
        accepted=tuple(accepted_lines(stored, acks)),
    )


@of_one_moment
def night_evidence(
    store: Store,
    night: NightRow,
    decision: SignOffDecision | None = None,
    deep: bool = True,
    stored: NightRows | None = None,
) -> NightEvidence:
    """Return all evidence on a night.

    Args:
        store: The results database.
        night: The night.
        decision: The decision, if the night is a sign-off.
        deep: Whether to find out why each query changed; this takes much longer.
        stored: The rows of the night; None to read them.
    """
    stored = night_rows(store, night) if stored is None else stored
    repetitions, verdicts = stored.repetitions, stored.verdicts
    tests = gate_health.self_tests_of(store, stored)
    acks = acks_for(stored)
    report = report_of(store, stored, tests, acks)
    arms = arms_of(repetitions, accepted_arms(store, verdicts))
    before, after = history.neighbours(store, night)
    return NightEvidence(
        night=night,
        report=report,
        decision=decision,
        colour=report.colour,
        lines=tuple(lines_of(report.rows, verdicts, arms)),
        builds=tuple(builds_of(store, night, verdicts)),
        verdicts=tuple(verdicts),
        validations=tuple(stored.validations),
        hosts=tuple(gate_health.hosts_of(stored.canaries, night.grade_reason)),
        host_names=tuple(sorted({host for row in repetitions for host in row.hosts or ()})),
        host_facts=gate_health.host_facts(night),
        canary=tuple(gate_health.canary_of(stored.canaries)),
        confs=confs_by_arm(row for row in repetitions if row.stage != PROFILED),
        self_tests=tests,
        acks=tuple(acks),
        reproduce={
            row.query: reproduce(store, stored, row.query) for row in report.rows if row.red
        },
        attributions=attributions(store, stored, night.queries) if deep else {},
        cost=cost_of(repetitions),
        before=before,
        after=after,
    )


def lines_of(
    rows: Sequence[Row], verdicts: Iterable[Verdict], arms: Mapping[str, Arms]
) -> Iterator[QueryLine]:
    """Return a line per query, in the order of the rows."""
    walls = {verdict.query: verdict for verdict in verdicts if verdict.metric == WALL}
    for place, row in enumerate(rows):
        of_query, wall = arms.get(row.query, Arms()), walls.get(row.query)
        state = of_query.ratio(STATE_BYTES)
        yield QueryLine(
            row=row,
            look=look(row.value, known=row.accepted),
            wall=wall.ratio if wall and wall.ratio else of_query.ratio(WALL),
            wall_look=look(wall.value) if wall and wall.value in _NOTABLE else None,
            plan=of_query.plan,
            state_bytes=of_query.median(STATE_BYTES),
            state=state if state is not None and abs(state - 1) >= NOTABLE else None,
            place=place,
        )


def builds_of(store: Store, night: NightRow, verdicts: Iterable[Verdict]) -> list[BuildRole]:
    """Return the builds of a night: the candidate, then the baselines of its queries."""
    compared: dict[tuple[str, str | None], list[str]] = {}
    for query, build in (night.baselines or {}).items():
        compared.setdefault((str(build), None), []).append(query)
    for verdict in verdicts:
        if verdict.baseline_run and verdict.decides:
            build = store.night(verdict.baseline_run).build_id
            compared.setdefault((build, verdict.baseline_run), []).append(verdict.query)
    rows = store.builds({night.build_id, *(build for build, _ in compared)})
    builds = {row.id: row for row in rows}

    def role_of(role: str, build: str, queries: Iterable[str], run: str | None) -> BuildRole:
        row = builds.get(build)
        known = (row.version, row.source) if row else ("", "")
        revision = row.revision if row else None
        return BuildRole(role, build, *known, tuple(queries), run, revision)

    return [
        role_of("candidate", night.build_id, night.queries, None),
        *(role_of("baseline", build, queries, run) for (build, run), queries in compared.items()),
    ]


def accepted_arms(store: Store, verdicts: Iterable[Verdict]) -> dict[str, list[RepetitionRow]]:
    """Return by query the repetitions of the accepted run with which it is compared by bounds."""
    deciding = (verdict for verdict in verdicts if verdict.decides and verdict.query != SUITE)
    compared = (verdict for verdict in deciding if verdict.baseline_run)
    rows: list[RepetitionRow] = []
    for run, of_run in grouped(compared, lambda verdict: verdict.baseline_run).items():
        queries = {verdict.query for verdict in of_run}
        rows += store.repetitions(str(run), queries, leave_out=("batch_list", "confs"))
    return grouped(rows, lambda row: row.query)
