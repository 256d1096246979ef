"""Records what a night measured, as it was measured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from nexmark.measure.cpu_series import pack
from nexmark.measure.measurement import Measurement
from nexmark.store.connecting import writing
from nexmark.store.parts import part_rows
from nexmark.store.reading import Reader
from nexmark.store.records import NightRecord, RepetitionRecord, ValidationRecord
from nexmark.store.store_error import StoreError
from nexmark.store.table_base import Base
from nexmark.store.table_rows import (
    AcceptanceRow,
    BuildRow,
    NightRow,
    PlanRow,
    RepetitionRow,
    SeriesRow,
    ValidationRow,
)

#: How often and how finely something is measured, and how it is reached, does not change it.
NOT_SHAPE = frozenset(
    {"name", "queries", "repetitions", "verify", "compatibility"}
    | {"sampling_interval_s", "spark_connection"}
    | {"master_port", "master_ui_port", "worker_port", "worker_ui_port", "start_timeout_s"}
    | {"baseline_ports", "history_server", "kafka_port", "kafka"}
)
#: Keys that specs of earlier versions lack, and the values that applied then.
_LATER = (
    *(("source", "datagen"), ("partitions", None), ("kind", "bounded")),
    *((name, None) for name in ("rate", "seconds", "warm_up", "trigger", "recovery")),
)

_REPETITION = ("night_id", "query", "arm", "stage", "number")


def shape(workload: Mapping[str, Any], cluster: Mapping[str, Any]) -> str:
    """Return the hash of everything in a workload and a cluster that changes what is measured."""
    kept = [
        {k: v for k, v in spec.items() if k not in NOT_SHAPE and (k, v) not in _LATER}
        for spec in (workload, cluster)
    ]
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Recorder(Reader):
    """Records nights and gives them back; every method that records is one transaction."""

    def record_night(self, record: NightRecord) -> None:
        """Record a run, or bring what is recorded of it up to date.

        StoreError when repetitions are already recorded and the workload or cluster is another
        one by now: a night is measured on one.
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
            if before is not None and before.shape != night.shape and self._rows(session, night.id):
                raise StoreError(
                    f"run {record.run}: it was measured on another workload or cluster before;"
                    " start a new run"
                )
            for build in (record.build, *record.baseline_builds):
                if session.get(BuildRow, build.id) is None:
                    session.add(BuildRow(**asdict(build), first_seen=now()))
                    session.flush()
            session.merge(night)

    def record_repetition(self, record: RepetitionRecord) -> None:
        """Record a repetition; one recorded before under the same number is replaced.

        StoreError when the run is unknown, or when it is the accepted baseline of the query and
        the figures are others: a baseline does not change under the nights compared with it.
        """
        row = _row(record)
        with self._writing() as session:
            self._known(session, record.run)
            before = session.scalar(select(RepetitionRow).where(*_where(row, _REPETITION)))
            if self._is_baseline(session, record.run, record.query):
                if before is not None and _same(before, row):
                    return
                raise StoreError(
                    f"run {record.run} is an accepted baseline of {record.query} and is not"
                    " measured again; start a new run"
                )
            row.plan_id = self._plan(session, record.result)
            replace_row(session, row, _REPETITION)
            session.flush()
            session.add_all(part_rows(row.id, record.parts))
            for item in record.series:
                own = {"host": item.series.host, "interval_s": item.series.interval_s}
                own |= {"readings": len(item.series.times), "series": pack(item.series)}
                session.add(SeriesRow(repetition_id=row.id, path=str(item.path), **own))

    def record_validation(self, record: ValidationRecord) -> None:
        """Record what the expectations said of a query, replacing what they said before."""
        with self._writing() as session:
            self._known(session, record.run)
            columns = {name: _plain(value) for name, value in asdict(record).items()}
            row = ValidationRow(night_id=columns.pop("run"), recorded=now(), **columns)
            replace_row(session, row, ("night_id", "query", "arm"))

    def _writing(self) -> AbstractContextManager[Session]:
        return self._session(writing(self._engine))

    @staticmethod
    def _rows(session: Session, run: str) -> bool:
        where = RepetitionRow.night_id == run
        return session.scalar(select(RepetitionRow.id).where(where).limit(1)) is not None

    @staticmethod
    def _is_baseline(session: Session, run: str, query: str) -> bool:
        where = (AcceptanceRow.night_id == run, AcceptanceRow.query == query)
        return session.scalar(select(AcceptanceRow.id).where(*where).limit(1)) is not None

    @staticmethod
    def _plan(session: Session, result: Mapping[str, Any]) -> str | None:
        plan = result.get("plan")
        if not plan:
            return None
        key = hashlib.sha256(plan["text"].encode()).hexdigest()
        if session.get(PlanRow, key) is None:
            fields = {name: plan[name] for name in ("text", "skeleton", "skeleton_hash")}
            session.add(PlanRow(id=key, **fields))
            session.flush()
        return key


def replace_row(session: Session, row: Base, key: Sequence[str]) -> None:
    """Add a row in place of the one with the same values in the columns of ``key``."""
    session.execute(delete(type(row)).where(*_where(row, key)))
    session.add(row)


def _where(row: Base, key: Sequence[str]) -> list[ColumnElement[bool]]:
    return [getattr(type(row), name) == getattr(row, name) for name in key]


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


def _same(before: RepetitionRow, after: RepetitionRow) -> bool:
    names = ["status", *Measurement.__dataclass_fields__]
    return all(getattr(before, name) == getattr(after, name) for name in names)
