"""The results database as the tasks and commands use it."""

import hashlib
import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, select, tuple_
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from nexmark.measure.cpu_series import pack
from nexmark.measure.measurement import Measurement
from nexmark.model import Arm, Value
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
from nexmark.store.records import Accepted, NightRecord, RepetitionRecord, ValidationRecord, plan_id
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

#: How often and how finely something is measured, and how it is reached, does not change it.
NOT_SHAPE = frozenset(
    {"name", "queries", "repetitions", "verify", "compatibility"}
    | {"sampling_interval_s", "spark_connection"}
    | {"master_port", "master_ui_port", "worker_port", "worker_ui_port", "start_timeout_s"}
    | {"baseline_ports", "history_server", "kafka_port", "kafka"}
)
_REPETITION = ("night_id", "query", "arm", "stage", "number")


def shape(workload: Mapping[str, Any], cluster: Mapping[str, Any]) -> str:
    """Return the hash of everything in a workload and a cluster that changes what is measured."""
    kept = [{k: v for k, v in spec.items() if k not in NOT_SHAPE} for spec in (workload, cluster)]
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


MOST_ROWS = 2**31 - 1  # no table has an id beyond that


def open_store(url: str, *, create: bool = True, patience_s: float | None = None) -> "Store":
    """Return the store at a database URL; as ``open_engine``."""
    return Store(open_engine(url, create=create, patience_s=patience_s))


class Store(Reader):
    """Records nights and what came of them; every method that records is one transaction."""

    def record_night(self, record: NightRecord) -> None:
        """Record a run, or bring it up to date.

        StoreError if the workload was another one, or if it was measured in another home: two that
        share a database may have runs of the same name, at the same time of their schedules.
        """
        names = {field.name for field in fields(record)} - {"build", "baseline_builds"}
        night = NightRow(
            **{name: _plain(getattr(record, name)) for name in names},
            id=record.run,
            build_id=record.build.id,
            shape=shape(record.workload_spec, record.cluster_spec),
        )
        night.candidate_conf = night.candidate_conf or None
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
                if session.get(BuildRow, build.id) is None:
                    session.add(BuildRow(**asdict(build), first_seen=now()))
                    session.flush()
            session.merge(night)

    def record_repetition(self, record: RepetitionRecord) -> None:
        """Record a repetition, in place of one under the same number.

        StoreError when the run is unknown, or is the accepted baseline of the query and the figures
        are others: a baseline does not change under the nights compared with it.
        """
        row = _row(record)
        with self._writing() as session:
            check_rows(self._known(session, record.run))
            before = session.scalar(select(RepetitionRow).where(*_where(row, _REPETITION)))
            accepted = (AcceptanceRow.night_id == record.run, AcceptanceRow.query == record.query)
            if session.scalar(select(exists().where(*accepted))):
                figures = ("status", *Measurement.__dataclass_fields__)
                if before and all(getattr(before, x) == getattr(row, x) for x in figures):
                    return
                raise StoreError(
                    f"run {record.run} is an accepted baseline of {record.query} and is not"
                    " measured again; start a new run"
                )
            row.plan_id = self._plan(session, record.result)
            replace_row(session, row, _REPETITION)
            session.flush()
            session.add_all(PartRow(repetition_id=row.id, **asdict(x)) for x in record.parts)
            for series, path in record.series:
                own = {"host": series.host, "interval_s": series.interval_s, "path": str(path)}
                own |= {"readings": len(series.times), "series": pack(series)}
                session.add(SeriesRow(repetition_id=row.id, **own))

    def record_validation(self, record: ValidationRecord) -> None:
        """Record the expectations' outcome on a query in place of the one before."""
        with self._writing() as session:
            self._known(session, record.run)
            columns = {name: _plain(value) for name, value in asdict(record).items()}
            row = ValidationRow(night_id=columns.pop("run"), recorded=now(), **columns)
            replace_row(session, row, ("night_id", "query", "arm"))

    def _writing(self) -> AbstractContextManager[Session]:
        return self._session(writing(self._engine))

    @staticmethod
    def _plan(session: Session, result: Mapping[str, Any]) -> str | None:
        plan = result.get("plan")
        if not plan:
            return None
        key = plan_id(plan["text"])
        if session.get(PlanRow, key) is None:
            fields = {name: plan[name] for name in ("text", "skeleton", "skeleton_hash")}
            session.add(PlanRow(id=key, **fields))
            session.flush()
        return key

    def record_canary(self, run: str, rows: Sequence[CanaryRow]) -> None:
        """Record readings; each replaces one of the same host, group, moment and metric."""
        with self._writing() as session:
            self._known(session, run)
            what = tuple_(CanaryRow.host, CanaryRow.group, CanaryRow.moment, CanaryRow.metric)
            given = {(x.host, x.group, x.moment, x.metric) for x in rows}
            session.execute(delete(CanaryRow).where(CanaryRow.night_id == run, what.in_(given)))
            for row in rows:
                row.night_id = run
            session.add_all(rows)

    def record_grade(self, run: str, grade: str, reason: str = "") -> None:
        """Record how far the hosts of a night can be trusted, and why not further."""
        with self._writing() as session:
            night = self._known(session, run)
            night.grade, night.grade_reason = grade, reason or None

    def record_broker_bench(self, cluster: str, figures: Mapping[str, Any]) -> None:
        """Record what the benchmark of a Kafka found."""
        with self._writing() as session:
            session.add(BrokerBenchRow(cluster=cluster, measured=now(), figures=dict(figures)))

    def record_compatibility(self, run: str, rows: Sequence[CompatibilityRow]) -> None:
        """Record whether running queries survive, in place of all that was recorded before."""
        with self._writing() as session:
            self._known(session, run)
            session.execute(delete(CompatibilityRow).where(CompatibilityRow.night_id == run))
            checked = now()
            for row in rows:
                row.night_id, row.checked = run, checked
            session.add_all(rows)

    def record_experiment(self, run: str, rows: Sequence[ExperimentRow]) -> None:
        """Record a measurement of an experiment, in place of what was recorded of it before."""
        with self._writing() as session:
            session.execute(delete(ExperimentRow).where(ExperimentRow.run == run))
            measured = now()
            for row in rows:
                row.run, row.measured = run, measured
            session.add_all(rows)

    def record_self_test(self, run: str, row: SelfTestRow) -> None:
        """Record a gate version's verdict on a known change; replaces its earlier verdict."""
        with self._writing() as session:
            self._known(session, run)
            row.night_id, row.judged = run, now()
            replace_row(session, row, ("night_id", "kind", "query", "gate_version"))

    def record_verdicts(self, run: str, verdicts: Sequence[Verdict]) -> None:
        """Record verdicts in place of the ones that this version of the gate gave before."""
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
    ) -> Accepted:
        """Make a run (any name that ``find_run`` knows) the baseline of its place, query by query.

        Only queries that were measured and proven right are accepted, of all or of ``queries``;
        the baselines of others stay. At ``expires`` the baseline before counts again; ``link`` is
        where it was decided. Refused when nothing of it can be accepted.
        """
        check_words("reason", reason)
        check_words("by", who)
        link = check_link(link)
        night = self.find_run(run)
        check_rows(night)
        measured = [row.query for row in self.repetitions(night.id)]
        check_request(night, measured, queries or (), reason, expires, now())
        asked = list(dict.fromkeys(queries or night.queries))
        left_out = self._not_acceptable(night, asked)
        accepted = tuple(query for query in asked if query not in left_out)
        if not accepted:
            why = "; ".join(f"{query}: {text}" for query, text in left_out.items())
            raise Refused(f"run {night.id}: nothing to accept: {why}; accept another run")
        verdicts = {row.query: row for row in self.verdicts(night.id) if row.decides}
        with self._writing() as session:
            check_rows(self._known(session, night.id))
            moment = now()
            for query in accepted:
                verdict = verdicts.get(query)
                of_night = ("engine", "workload", "cluster", "build_id")
                row = AcceptanceRow(
                    **{name: getattr(night, name) for name in of_night},
                    **{"query": query, "night_id": night.id, "accepted": moment},
                    **{"who": who, "reason": reason, "link": link, "expires": expires},
                    **({"metric": verdict.metric, "size": verdict.ratio} if verdict else {}),
                )
                session.add(row)
        return Accepted(night.id, accepted, left_out)

    def raw_sizes(self) -> dict[str, RawSize]:
        """Return the size of the raw rows by night; see ``raw_rows``."""
        with self.reading() as session:
            return raw_sizes(session)

    def compared_runs(self, runs: Collection[str]) -> set[str]:
        """Return the accepted runs that nights were compared with by bounds."""
        with self.reading() as session:
            return compared_runs(session, runs)

    def prune_raw_rows(self, run: str) -> int:
        """Delete the raw rows of a night, all or none of them; returns how many went.

        0 where they are gone already, or where the night is a baseline (by now).
        """
        with self._writing() as session:
            return delete_raw_rows(session, run, now())

    def prune_plans(self) -> int:
        """Delete the executed plans that no repetition refers to; returns how many went."""
        with self._writing() as session:
            return delete_lost_plans(session)

    def shrink(self) -> int:
        """Give free room of an SQLite file back; returns the bytes. Others wait meanwhile."""
        try:
            return shrink(self._engine)
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            raise database_error(self._engine, error) from error

    def withdraw(self, number: int, who: str, reason: str) -> AcceptanceRow:
        """Take an acceptance back, by its id; it stays on record. Refused when there is none."""
        check_words("reason", reason)
        check_words("by", who)
        with self._writing() as session:
            found = session.get(AcceptanceRow, number) if 0 < number <= MOST_ROWS else None
            row = check_withdrawal(found, number, reason)
            row.withdrawal = WithdrawalRow(who=who, reason=reason, withdrawn=now())
        return row

    def _not_acceptable(self, night: NightRow, queries: Sequence[str]) -> dict[str, str]:
        """Return why a query cannot be a baseline; not surviving the upgrade is no reason."""
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
    """Add a row in place of the one with the same values in the columns of ``key``."""
    session.execute(delete(type(row)).where(*_where(row, key)))
    session.add(row)


def _where(row: Base, key: Sequence[str]) -> list[ColumnElement[bool]]:
    return [getattr(type(row), name) == getattr(row, name) for name in key]


def check_rows(night: NightRow | None) -> None:
    """Refuse to measure, judge or accept a night whose raw rows were pruned."""
    if night is not None and night.rows_pruned:
        raise Refused(
            f"run {night.id}: its raw rows were pruned on {night.rows_pruned:%Y-%m-%d}, so it can"
            " only be read; start a new run"
        )


def now() -> datetime:
    """Return the moment, in UTC."""
    return datetime.now(UTC)


def _plain(value: Any) -> Any:
    """Return a value as a column takes it: mappings, sequences and paths are no types of SQL."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple | list) else value


def _row(record: RepetitionRecord) -> RepetitionRow:
    measured = asdict(record.measurement) if record.measurement else {}
    given = ("query", "arm", "stage", "number", "position", "status", "parts_problem")
    own = (*given, "result_path", "event_log_path", "event_log_bytes")
    columns = measured | {name: getattr(record, name) for name in own}
    columns["figures"] = measured.get("figures") or None
    return RepetitionRow(
        **{name: _plain(value) for name, value in columns.items()},
        night_id=record.run,
        reason=record.failed or record.invalid,
        recorded=now(),
        batch_list=record.result.get("batches"),
        confs=record.result.get("confs"),
    )
