"""One query of a night in depth: the figures behind its verdict, and possible reasons."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nexmark_jobs
from nexmark.attribution.explained import Attribution
from nexmark.config import KNOWN_QUERIES
from nexmark.evidence import explaining
from nexmark.evidence import pairs as paired
from nexmark.evidence.alarms import acks_for, alarm_groups, since_of
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
from nexmark.verdict.verdict import Verdict

NIGHTS = 400  # so far back a query is followed


@dataclass(frozen=True)
class QuerySource:
    """The reference SQL, and the file with our formulation."""

    reference: str
    formulation: str
    name: str
    title: str


@dataclass(frozen=True, kw_only=True)
class QueryEvidence(CommonEvidence):
    """A query of a night; what is not there (yet) is None or empty.

    ``since`` names the build with which an alarm began. ``runs`` are all repetitions of the
    night; ``points`` go back from this night, oldest first; ``creeps`` are what the accepted builds
    come to.
    """

    query: str
    since: str
    reproduce: str
    runs: tuple[RepetitionRow, ...]
    pairs: tuple[paired.PairOfRuns, ...]
    points: tuple[RatioPoint, ...]
    changes: tuple[LevelChange, ...]
    creeps: tuple[Creep, ...]
    plans: explaining.PlansCompared
    conf_differences: Sequence[explaining.ConfOfArms] | None
    latencies: tuple[ArmLatency, ...]
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
    since: str | None = None,
) -> QueryEvidence:
    """Return all evidence on one query of a night.

    Args:
        store: the results database.
        night: the night.
        query: the query, or the suite.
        stored: the rows of the night with their batches; read where they are not given.
        since: the build with which an alarm on the query began; looked up where it is not given.
    """
    suite = query == SUITE
    if stored is None:
        repetitions = store.repetitions(night.id, None if suite else [query])
        stored = night_rows(store, night, repetitions)
    runs = [row for row in stored.repetitions if suite or row.query == query]
    own = [row for row in runs if row.stage != PROFILED]
    alone = () if suite else own
    verdicts = [row for row in stored.verdicts if row.query == query]
    deciding = stored.deciding(query)
    arms = paired.arms_of(alone, accepted_arms(store, verdicts)).get(query, paired.Arms())
    metric = deciding.metric if deciding else CPU
    sides = explaining.compared_arms(store, night.id, query, verdicts)
    confs = explaining.confs_of_suite(own) if suite else explaining.confs_of(sides)
    found = paired.pairs_of(alone, deciding.basis if deciding else None, metric)
    points = trail(store, night, query, metric, NIGHTS)
    before, after = history.neighbours(store, night)
    builds = builds_of(store, night, stored.verdicts)
    return QueryEvidence(
        night=night,
        query=query,
        since=_since(store, stored, verdicts) if since is None else since,
        verdicts=tuple(verdicts),
        validations=tuple(x for x in stored.validations if x.query == query),
        builds=tuple(x for x in builds if query in (*x.queries, SUITE)),
        reproduce=explaining.reproduce(store, stored, query),
        runs=() if suite else tuple(runs),
        pairs=tuple(found),
        points=tuple(points),
        changes=tuple(lasting_changes(points)),
        creeps=tuple(creeps_of(store, night, query, metric)),
        acks=tuple(x for x in acks_for(stored) if x.row.query == query),
        plans=explaining.plans_of(store, alone, sides),
        confs=explaining.confs_by_arm([x for x in own if x.arm in ARMS], most=None),
        conf_differences=explaining.confs_compared(*confs),
        host_names=tuple(sorted({host for row in own for host in row.hosts or ()})),
        host_facts=host_facts(night),
        canary=tuple(
            canary_around(stored.canaries, query, {row.stage for row in own if not suite})
        ),
        latencies=tuple(latencies_of(alone)),
        batches=tuple(paired.batch_medians(alone)),
        cpu=tuple(paired.cpu_curves(store, found, arms)),
        attribution=explaining.attribution_between(sides, query, verdicts),
        flames=flames_of(RunDirectory(Path(night.directory)).flames, query),
        source=source_of(query),
        before=before,
        after=after,
    )


@cache
def source_of(query: str) -> QuerySource | None:
    """Return the texts of a query; None for one that this package does not know."""
    number = re.match(r"q(\d+)", query)
    if query not in KNOWN_QUERIES or number is None:
        return None
    directory = Path(nexmark_jobs.__path__[0]) / "queries"
    found = sorted(directory.glob(f"q{int(number[1]):02d}_*.py"))
    if not found:
        return None
    text = found[0].read_text(encoding="utf-8")
    title = text.strip('"').partition("\n")[0].rstrip('".').removeprefix(query).strip()
    place = f"nexmark_jobs/queries/{found[0].name}"
    return QuerySource(reference_sql(query), text, place, title)


def _since(store: Store, stored: NightRows, verdicts: Sequence[Verdict]) -> str:
    red = {verdict.key for verdict in verdicts if verdict.red}
    for group in alarm_groups(store, stored.night, stored.verdicts) if red else ():
        if any(alarm.verdict.key in red for alarm in group.alarms):
            return since_of(store, group)
    return ""
