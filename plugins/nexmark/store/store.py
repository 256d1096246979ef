"""Records nights, verdicts and acceptances in the results database."""

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import UTC, datetime
from operator import attrgetter

from sqlalchemy import ColumnElement, delete, exists, select, tuple_
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from nexmark.measure.cpu_series import pack
from nexmark.measure.measurement import Measurement
from nexmark.model import CPU, Arm, Value
from nexmark.store.accepting import check_link, check_request, check_withdrawal, check_words
from nexmark.store.connecting import open_engine, writing
from nexmark.store.raw_rows import (
    RawSize,
    compared_runs,
    delete_lost_plans,
    delete_raw_rows,
    raw_sizes,
    shrink,
)
from nexmark.store.reading import Reader
from nexmark.store.records import (
    Accepted,
    NightRecord,
    RepetitionRecord,
    ValidationRecord,
    WholeNight,
    plan_id,
)
from nexmark.store.store_error import Refused, StoreError, database_error
from nexmark.store.table_base import Base
from nexmark.store.table_rows import (
    AcceptanceRow,
    BrokerBenchRow,
    BuildRow,
    CanaryRow,
    CompatibilityRow,
    ExperimentRow,
    NightRow,
    PartRow,
    PlanRow,
    RepetitionRow,
    SelfTestRow,
    SeriesRow,
    ValidationRow,
    VerdictRow,
    WithdrawalRow,
)
from nexmark.store.verdict_rows import row_of
from nexmark.verdict.verdict import Verdict

#: Keys of workloads and clusters that do not change what is measured: how often and how finely it
#: is measured, and by which ports and connections.
NOT_SHAPE = frozenset(
    {"name", "queries", "repetitions", "verify", "compatibility", "bounds_only"}
    | {"sampling_interval_s", "spark_connection"}
    | {"master_port", "master_ui_port", "worker_port", "worker_ui_port", "start_timeout_s"}
    | {"baseline_ports", "history_server", "kafka_port", "kafka"}
)
#: Keys that came later: left out where they are empty, so that earlier nights stay comparable.
ADDED_LATER = frozenset({"sizes", "soak", "formulations"})
_REPETITION = ("night_id", "query", "arm", "stage", "number")


def shape(workload: Mapping[str, object], cluster: Mapping[str, object]) -> str:
    """Return the hash of everything in a workload and a cluster that changes what is measured."""
    kept = [
        {
            key: value
            for key, value in spec.items()
            if key not in NOT_SHAPE and (value or key not in ADDED_LATER)
        }
        for spec in (workload, cluster)
    ]
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


MOST_ROWS = 2**31 - 1
"""The largest id that a row can have."""


def open_store(url: str, *, create: bool = True, patience_s: float | None = None) -> "Store":
    """Return the store at a database URL; the arguments and errors are as in ``open_engine``."""
    return Store(open_engine(url, create=create, patience_s=patience_s))


class Store(Reader):
    """Records nights and their results; each method that records is one transaction."""

    def record_night(self, record: NightRecord) -> None:
        """Record a run, or update it.

        StoreError if the run has repetitions of another workload or cluster, or of another home:
        two homes that share a database may start runs of the same name.
        """
        night = _night_row(record)
        with self._writing() as session:
            before = session.get(NightRow, record.run)
            measured = exists().where(RepetitionRow.night_id == night.id)
            if before and before.shape != night.shape and session.scalar(select(measured)):
                raise StoreError(
                    f"run {record.run}: it was measured on another workload or cluster before;"
                    " start a new run"
                )
            check_rows(before)
            if before and before.directory != night.directory and session.scalar(select(measured)):
                raise StoreError(
                    f"run {record.run}: it was measured in another home, {before.directory};"
                    " start a new run"
                )
            for build in (record.build, *record.baseline_builds):
                known = session.get(BuildRow, build.id)
                if known is None:
                    session.add(BuildRow(**asdict(build), first_seen=now()))
                    session.flush()
                elif known.revision is None:  # an earlier version of the package recorded it
                    known.revision = build.revision
            session.merge(night)

    def record_repetition(self, record: RepetitionRecord) -> None:
        """Record a repetition; it replaces a repetition with the same number.

        StoreError if the run is unknown. StoreError, too, if the run is the accepted baseline of
        the query and the figures differ: a baseline must not change, because nights were compared
        with it.
        """
        row = _row(record)
        with self._writing() as session:
            check_rows(self._known(session, record.run))
            before = session.scalar(select(RepetitionRow).where(*_where(row, _REPETITION)))
            accepted = (AcceptanceRow.night_id == record.run, AcceptanceRow.query == record.query)
            if session.scalar(select(exists().where(*accepted))):
                figures = attrgetter("status", *Measurement.__dataclass_fields__)
                if before and figures(before) == figures(row):
                    return
                raise StoreError(
                    f"run {record.run} is an accepted baseline of {record.query} and is not"
                    " measured again; start a new run"
                )
            row.plan_id = self._plan(session, record.result)
            replace_row(session, row, _REPETITION)
            session.flush()
            session.add_all(_rows_of_repetition(record, row.id))

    def record_whole_night(self, whole: WholeNight) -> None:
        """Record a night that is not in the database yet, with all of its rows."""
        self.record_night(whole.night)
        run = whole.night.run
        with self._writing() as session:
            night = self._known(session, run)
            night.grade, night.grade_reason = whole.grade, whole.grade_reason or None
            repetitions = [(record, _row(record, whole.judged)) for record in whole.repetitions]
            for record, row in repetitions:
                row.plan_id = self._plan(session, record.result)
            session.add_all(row for _, row in repetitions)
            session.flush()
            for record, row in repetitions:
                session.add_all(_rows_of_repetition(record, row.id))
            session.add_all(_validation_row(each, whole.judged) for each in whole.validations)
            for canary in whole.canaries:
                canary.night_id = run
            for test in whole.self_tests:
                test.night_id, test.judged = run, whole.judged
            session.add_all((*whole.canaries, *whole.self_tests))
            session.add_all(row_of(verdict, run, whole.judged) for verdict in whole.verdicts)

    def record_validation(self, record: ValidationRecord) -> None:
        """Record the outcome of the expectations on a query; it replaces the outcome before."""
        row = _validation_row(record, now())
        with self._writing() as session:
            self._known(session, record.run)
            replace_row(session, row, ("night_id", "query", "arm"))

    def _writing(self) -> AbstractContextManager[Session]:
        return self._session(writing(self._engine))

    @staticmethod
    def _plan(session: Session, result: Mapping[str, object]) -> str | None:
        """Record the executed plan of a result file unless it is recorded; return its id."""
        plan = result.get("plan")
        if not isinstance(plan, Mapping) or not plan:
            return None
        key = plan_id(plan["text"])
        if session.get(PlanRow, key) is None:
            session.add(
                PlanRow(
                    id=key,
                    skeleton_hash=plan["skeleton_hash"],
                    skeleton=plan["skeleton"],
                    text=plan["text"],
                )
            )
            session.flush()
        return key

    def record_canary(self, run: str, rows: Sequence[CanaryRow]) -> None:
        """Record readings; each replaces a reading of the same host, group, moment and metric."""
        with self._writing() as session:
            self._known(session, run)
            key = tuple_(CanaryRow.host, CanaryRow.group, CanaryRow.moment, CanaryRow.metric)
            given = {(row.host, row.group, row.moment, row.metric) for row in rows}
            session.execute(delete(CanaryRow).where(CanaryRow.night_id == run, key.in_(given)))
            for row in rows:
                row.night_id = run
            session.add_all(rows)

    def record_grade(self, run: str, grade: str, reason: str = "") -> None:
        """Record how far the hosts of a night can be trusted, and the reason."""
        with self._writing() as session:
            night = self._known(session, run)
            night.grade, night.grade_reason = grade, reason or None

    def record_broker_bench(self, cluster: str, figures: Mapping[str, object]) -> None:
        """Record the figures of a benchmark of a Kafka cluster."""
        with self._writing() as session:
            session.add(BrokerBenchRow(cluster=cluster, measured=now(), figures=dict(figures)))

    def record_compatibility(self, run: str, rows: Sequence[CompatibilityRow]) -> None:
        """Record which queries survived the upgrade of a run; replaces all rows of this run."""
        with self._writing() as session:
            self._known(session, run)
            session.execute(delete(CompatibilityRow).where(CompatibilityRow.night_id == run))
            checked = now()
            for row in rows:
                row.night_id, row.checked = run, checked
            session.add_all(rows)

    def record_experiment(self, run: str, rows: Sequence[ExperimentRow]) -> None:
        """Record a measurement of an experiment; replaces all rows of this measurement."""
        with self._writing() as session:
            session.execute(delete(ExperimentRow).where(ExperimentRow.run == run))
            measured = now()
            for row in rows:
                row.run, row.measured = run, measured
            session.add_all(rows)

    def record_self_test(self, run: str, row: SelfTestRow) -> None:
        """Record a verdict on a known change; replaces the verdict of the same gate version."""
        with self._writing() as session:
            self._known(session, run)
            row.night_id, row.judged = run, now()
            replace_row(session, row, ("night_id", "kind", "query", "gate_version"))

    def record_verdicts(self, run: str, verdicts: Sequence[Verdict]) -> None:
        """Record verdicts on a run; replaces the verdicts of the same version of the gate."""
        with self._writing() as session:
            check_rows(self._known(session, run))
            versions = {verdict.gate_version for verdict in verdicts}
            before = delete(VerdictRow).where(VerdictRow.night_id == run)
            session.execute(before.where(VerdictRow.gate_version.in_(versions)))
            session.add_all(row_of(verdict, run, now()) for verdict in verdicts)

    def accept(
        self,
        run: str,
        who: str,
        reason: str,
        queries: Sequence[str] | None = None,
        *,
        expires: datetime | None = None,
        link: str | None = None,
        at: datetime | None = None,
    ) -> Accepted:
        """Make a run the baseline of its place for each query that was measured and proven right.

        Other queries keep their baselines.

        Args:
            run: The name of the run, as ``find_run`` knows it.
            who: The person who accepts.
            reason: Why the person accepts.
            queries: The queries to accept; None for all queries of the run.
            expires: When the acceptance expires, so that the baseline before counts again; None
                for never.
            link: The web address of the discussion; None if there is none.
            at: When the person accepted; None for now.

        Returns:
            The accepted queries, and why the others were left out.

        Raises:
            Refused: The request is not valid, or no query can be accepted.
        """
        check_words("reason", reason)
        check_words("by", who)
        link = check_link(link)
        night = self.find_run(run)
        check_rows(night)
        measured = [row.query for row in self.repetitions(night.id)]
        moment = at or now()
        check_request(night, measured, queries or (), reason, expires, moment)
        asked = list(dict.fromkeys(queries or night.queries))
        left_out = self._not_acceptable(night, asked)
        accepted = tuple(query for query in asked if query not in left_out)
        if not accepted:
            why = "; ".join(f"{query}: {text}" for query, text in left_out.items())
            raise Refused(f"run {night.id}: nothing to accept: {why}; accept another run")
        verdicts = {row.query: row for row in self.verdicts(night.id) if row.decides}
        with self._writing() as session:
            check_rows(self._known(session, night.id))
            for query in accepted:
                verdict = verdicts.get(query)
                row = AcceptanceRow(
                    engine=night.engine,
                    workload=night.workload,
                    cluster=night.cluster,
                    query=query,
                    night_id=night.id,
                    who=who,
                    reason=reason,
                    accepted=moment,
                    metric=verdict.metric if verdict else CPU,
                    build_id=night.build_id,
                    size=verdict.ratio if verdict else None,
                    expires=expires,
                    link=link,
                )
                session.add(row)
        return Accepted(night.id, accepted, left_out)

    def raw_sizes(self) -> dict[str, RawSize]:
        """Return the size of the raw rows by night; see ``raw_rows.raw_sizes``."""
        with self.reading() as session:
            return raw_sizes(session)

    def compared_runs(self, runs: Collection[str]) -> set[str]:
        """Return the accepted runs with which nights without a baseline arm were compared."""
        with self.reading() as session:
            return compared_runs(session, runs)

    def prune_raw_rows(self, run: str) -> int:
        """Delete all raw rows of a night, and return how many rows were deleted.

        Deletes nothing and returns 0 if they were deleted before, or if the night is a baseline.
        """
        with self._writing() as session:
            return delete_raw_rows(session, run, now())

    def prune_plans(self) -> int:
        """Delete the executed plans to which no repetition refers, and return how many."""
        with self._writing() as session:
            return delete_lost_plans(session)

    def shrink(self) -> int:
        """Give the free pages of an SQLite file back to the disk, and return how many bytes.

        Other processes that use the database wait during this time.
        """
        try:
            return shrink(self._engine)
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            raise database_error(self._engine, error) from error

    def withdraw(
        self, number: int, who: str, reason: str, *, at: datetime | None = None
    ) -> AcceptanceRow:
        """Withdraw an acceptance, and return it; it stays in the database.

        Args:
            number: The id of the acceptance.
            who: The person who withdraws it.
            reason: Why the person withdraws it.
            at: When the person withdrew it; None for now.

        Raises:
            Refused: There is no acceptance with this id, or it was withdrawn before.
        """
        (row,) = self.withdraw_all([number], who, reason, at=at)
        return row

    def withdraw_all(
        self, numbers: Sequence[int], who: str, reason: str, *, at: datetime | None = None
    ) -> list[AcceptanceRow]:
        """Withdraw acceptances by their ids at one moment, all of them or none, as ``withdraw``."""
        check_words("reason", reason)
        check_words("by", who)
        rows = []
        with self._writing() as session:
            moment = at or now()
            for number in numbers:
                accepted = session.get(AcceptanceRow, number) if 0 < number <= MOST_ROWS else None
                row = check_withdrawal(accepted, number, reason)
                row.withdrawal = WithdrawalRow(who=who, reason=reason, withdrawn=moment)
                rows.append(row)
        return rows

    def _not_acceptable(self, night: NightRow, queries: Sequence[str]) -> dict[str, str]:
        """Return by query why it cannot be a baseline; queries that can be one are left out.

        A query that did not survive the upgrade can still be a baseline.
        """
        bound = {
            row.query: row.reason
            for row in self.verdicts(night.id)
            if row.decides and row.value == Value.SOURCE_BOUND
        }
        alone = self.paired_night(night.id, (Arm.CANDIDATE, Arm.CANDIDATE))
        problems = {**bound, **alone.missing, **alone.invalid}
        arms = self.arms(night.id)
        for query in queries:
            done = len(arms[query].repetitions) if query in arms else 0
            if done < night.repetitions:
                problems.setdefault(query, f"{done} of {night.repetitions} repetitions measured")
        return {query: problems[query] for query in queries if query in problems}


def replace_row(session: Session, row: Base, key: Sequence[str]) -> None:
    """Add a row; it replaces the row that has the same values in the columns of ``key``."""
    session.execute(delete(type(row)).where(*_where(row, key)))
    session.add(row)


def _where(row: Base, key: Sequence[str]) -> list[ColumnElement[bool]]:
    """Return the conditions that the columns of ``key`` have the same values as in a row."""
    return [getattr(type(row), name) == getattr(row, name) for name in key]


def check_rows(night: NightRow | None) -> None:
    """Refuse to measure, judge or accept a night whose raw rows were deleted."""
    if night is not None and night.rows_pruned:
        raise Refused(
            f"run {night.id}: its raw rows were pruned on {night.rows_pruned:%Y-%m-%d}, so it can"
            " only be read; start a new run"
        )


def now() -> datetime:
    """Return the current moment in UTC."""
    return datetime.now(UTC)


def _night_row(record: NightRecord) -> NightRow:
    return NightRow(
        id=record.run,
        dag_id=record.dag_id,
        run_id=record.run_id,
        engine=record.engine,
        workload=record.workload,
        cluster=record.cluster,
        build_id=record.build.id,
        jobs=record.jobs,
        shape=shape(record.workload_spec, record.cluster_spec),
        workload_spec=dict(record.workload_spec),
        cluster_spec=dict(record.cluster_spec),
        queries=list(record.queries),
        repetitions=record.repetitions,
        directory=str(record.directory),
        started=record.started,
        mode=record.mode,
        baselines=None if record.baselines is None else dict(record.baselines),
        seed=record.seed,
        gate_spec=None if record.gate_spec is None else dict(record.gate_spec),
        candidate_conf=dict(record.candidate_conf) if record.candidate_conf else None,
        teaches=record.teaches,
        started_by=record.started_by or None,
    )


def _validation_row(record: ValidationRecord, recorded: datetime) -> ValidationRow:
    return ValidationRow(
        night_id=record.run,
        query=record.query,
        arm=record.arm,
        success=record.success,
        evaluated=record.evaluated,
        failures=list(record.failures),
        statistics=dict(record.statistics),
        recorded=recorded,
    )


def _rows_of_repetition(record: RepetitionRecord, repetition: int) -> Iterator[PartRow | SeriesRow]:
    """Yield the parts and the series of a repetition; ``repetition`` is the id of its row."""
    for part in record.parts:
        yield PartRow(repetition_id=repetition, **vars(part))
    for series, path in record.series:
        yield SeriesRow(
            repetition_id=repetition,
            host=series.host,
            path=str(path),
            interval_s=series.interval_s,
            readings=len(series.times),
            series=pack(series),
        )


def _row(record: RepetitionRecord, recorded: datetime | None = None) -> RepetitionRow:
    """Return the row of a repetition; ``recorded`` is None for now."""
    measured = asdict(record.measurement) if record.measurement else {}
    if record.measurement:
        measured["hosts"] = list(record.measurement.hosts)
        measured["figures"] = dict(record.measurement.figures) or None
    return RepetitionRow(
        **(measured | {"query": record.query}),
        night_id=record.run,
        arm=record.arm,
        stage=record.stage,
        number=record.number,
        position=record.position,
        status=record.status,
        reason=record.failed or record.invalid,
        recorded=recorded or now(),
        result_path=None if record.result_path is None else str(record.result_path),
        event_log_path=None if record.event_log_path is None else str(record.event_log_path),
        event_log_bytes=record.event_log_bytes,
        batch_list=record.result.get("batches"),
        confs=record.result.get("confs"),
        parts_problem=record.parts_problem,
    )
