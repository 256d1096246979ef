"""The evidence on one query of a night: the figures behind its verdict, and possible reasons."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nexmark_jobs
from nexmark.attribution.explained import Attribution
from nexmark.commits.source_changes import SourceChange
from nexmark.config import KNOWN_QUERIES
from nexmark.evidence import explaining
from nexmark.evidence import pairs as paired
from nexmark.evidence.ageing import AgedLine, aged_lines
from nexmark.evidence.alarms import acks_for, alarm_groups, since_of
from nexmark.evidence.changed_source import changed_source
from nexmark.evidence.creep import Creep, creeps_of
from nexmark.evidence.gate_health import canary_around, host_facts
from nexmark.evidence.night_evidence import CommonEvidence, accepted_arms, builds_of
from nexmark.evidence.night_list import ValueLook, look
from nexmark.evidence.night_rows import NightRows, night_rows
from nexmark.evidence.rows import ArmLatency, latencies_of
from nexmark.expectations.checks import reference_sql
from nexmark.flames.flame_files import Flames, flames_of
from nexmark.model import ARMS, CPU, PROFILED, SUITE, Metric, metric_of
from nexmark.night.run_directory import RunDirectory
from nexmark.store import Store, history
from nexmark.store.query_history import LevelChange, RatioPoint, lasting_changes, trail
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import NightRow, RepetitionRow
from nexmark.verdict.acks import Group
from nexmark.verdict.verdict import Verdict

NIGHTS = 400
"""The largest number of verdicts in the history of a query."""


@dataclass(frozen=True)
class QuerySource:
    """The reference SQL of a query, and the source of our formulation with the path of its file.

    The reference of a person's own job may be empty.
    """

    reference: str
    formulation: str
    name: str
    title: str
    is_own: bool = False


@dataclass(frozen=True, kw_only=True)
class QueryEvidence(CommonEvidence):
    """A query of a night; what does not exist (yet) is None or empty.

    ``since`` names the build with which the alarm on the query began, ``source_changes`` say what
    changed in the source with it. ``runs`` are all repetitions of the query in the night.
    ``points`` are its history up to this night, the oldest night first, and ``changes`` the lasting
    changes in it. ``creeps`` sum up the changes of accepted builds.
    """

    query: str
    since: str
    source_changes: tuple[SourceChange, ...]
    reproduce: str
    runs: tuple[RepetitionRow, ...]
    pairs: tuple[paired.PairOfRuns, ...]
    points: tuple[RatioPoint, ...]
    changes: tuple[LevelChange, ...]
    creeps: tuple[Creep, ...]
    plans: explaining.PlansCompared
    conf_differences: Sequence[explaining.ConfOfArms] | None
    latencies: tuple[ArmLatency, ...]
    ageing: tuple[AgedLine, ...]
    batches: tuple[paired.BatchMedian, ...]
    cpu: tuple[paired.CpuCurve, ...]
    attribution: Attribution | None
    flames: Flames | None
    source: QuerySource | None

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that decides."""
        return next((row for row in self.verdicts if row.decides), None)

    @property
    def metric(self) -> Metric:
        """The metric that decides."""
        return metric_of(self.verdict.metric if self.verdict else CPU)

    @property
    def look(self) -> ValueLook:
        """How the verdict that decides looks."""
        row = self.verdict
        return look(row.value, known=row.acceptance is not None) if row else look(None)


@of_one_moment
def query_evidence(
    store: Store,
    night: NightRow,
    query: str,
    stored: NightRows | None = None,
    group: Group | None = None,
) -> QueryEvidence:
    """Return all evidence on one query of a night.

    Args:
        store: The results database.
        night: The night.
        query: The query, or the suite.
        stored: The rows of the night with their batches; None to read them.
        group: The group of alarms to which an alarm on the query belongs; None to look it up.
    """
    suite = query == SUITE
    if stored is None:
        repetitions = store.repetitions(night.id, None if suite else [query])
        stored = night_rows(store, night, repetitions, query=query)
    runs = [row for row in stored.repetitions if suite or row.query == query]
    judged = [row for row in runs if row.stage != PROFILED]
    of_query = () if suite else judged
    verdicts = [row for row in stored.verdicts if row.query == query]
    deciding = stored.deciding(query)
    arms = paired.arms_of(of_query, accepted_arms(store, verdicts)).get(query, paired.Arms())
    metric = deciding.metric if deciding else CPU
    sides = explaining.compared_arms(store, night.id, query, verdicts)
    confs = explaining.confs_of_suite(judged) if suite else explaining.confs_of(sides)
    pairs = paired.pairs_of(of_query, deciding.basis if deciding else None, metric)
    points = trail(store, night, query, metric, NIGHTS)
    before, after = history.neighbours(store, night)
    builds = builds_of(store, night, stored.verdicts)
    group = _group_of(store, stored, verdicts) if group is None else group
    return QueryEvidence(
        night=night,
        query=query,
        since=since_of(store, group) if group else "",
        source_changes=tuple(changed_source(store, stored, [group] if group else [])),
        verdicts=tuple(verdicts),
        validations=tuple(row for row in stored.validations if row.query == query),
        builds=tuple(build for build in builds if query in (*build.queries, SUITE)),
        reproduce=explaining.reproduce(store, stored, query),
        runs=() if suite else tuple(runs),
        pairs=tuple(pairs),
        points=tuple(points),
        changes=tuple(lasting_changes(points)),
        creeps=tuple(creeps_of(store, night, query, metric)),
        acks=tuple(ack for ack in acks_for(stored) if ack.row.query == query),
        plans=explaining.plans_of(store, of_query, sides),
        confs=explaining.confs_by_arm([row for row in judged if row.arm in ARMS], most=None),
        conf_differences=explaining.confs_compared(*confs),
        host_names=tuple(sorted({host for row in judged for host in row.hosts or ()})),
        host_facts=host_facts(night),
        canary=tuple(canary_around(stored.canaries, query, {row.stage for row in of_query})),
        latencies=tuple(latencies_of(of_query)),
        ageing=tuple(aged_lines(of_query)),
        batches=tuple(paired.batch_medians(of_query)),
        cpu=tuple(paired.cpu_curves(store, pairs, arms)),
        attribution=explaining.attribution_between(sides, query, verdicts),
        flames=flames_of(RunDirectory(Path(night.directory)).flames, query),
        source=source_of(query) or _own_source(RunDirectory(Path(night.directory)), query),
        before=before,
        after=after,
    )


@cache
def source_of(query: str) -> QuerySource | None:
    """Return the sources of a query; None for a query that this package does not have."""
    number = re.match(r"q(\d+)", query)
    if query not in KNOWN_QUERIES or number is None:
        return None
    directory = Path(nexmark_jobs.__path__[0]) / "queries"
    files = sorted(directory.glob(f"q{int(number[1]):02d}_*.py"))
    if not files:
        return None
    text = files[0].read_text(encoding="utf-8")
    title = text.strip('"').partition("\n")[0].rstrip('".').removeprefix(query).strip()
    path = f"nexmark_jobs/queries/{files[0].name}"
    return QuerySource(reference_sql(query), text, path, title)


def _own_source(files: RunDirectory, query: str) -> QuerySource | None:
    """Return the sources of a person's own job as a night ran it; None if its plan has none."""
    try:
        job = json.loads(files.night.read_text(encoding="utf-8"))["jobs"][query]
        if application := job.get("application"):
            text = json.dumps(application, indent=1)
            return QuerySource("", text, application["main"], "", is_own=True)
        file = job["sql"] or job["python"]
        return QuerySource(job["reference_text"], job["text"], file, "", is_own=True)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _group_of(store: Store, stored: NightRows, verdicts: Sequence[Verdict]) -> Group | None:
    """Return the group of alarms to which red verdicts on a query belong; None if none is red."""
    red = {verdict.key for verdict in verdicts if verdict.red}
    groups = alarm_groups(store, stored.night, stored.verdicts) if red else []
    return next((one for one in groups if red & {alarm.verdict.key for alarm in one.alarms}), None)
