"""Records what a night measured, as it was measured."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from nexmark.measure.measurement import Measurement
from nexmark.store.connecting import writing
from nexmark.store.errors import StoreError
from nexmark.store.models import (
    Acceptance,
    Build,
    Night,
    Plan,
    Repetition,
    SampleSeries,
    Validation,
)
from nexmark.store.parts import part_rows
from nexmark.store.reading import Reader
from nexmark.store.records import NightRecord, RepetitionRecord, ValidationRecord
from nexmark.store.series import pack
from nexmark.store.shape import shape


class Recorder(Reader):
    """Records nights and gives them back; every method that records is one transaction."""

    def record_night(self, record: NightRecord) -> None:
        """Record a run, or bring what is recorded of it up to date.

        StoreError when repetitions are already recorded and the workload or cluster is another
        one by now: a night is measured on one.
        """
        night = Night(
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
            baselines=_plain(record.baselines),
            seed=record.seed,
            gate_spec=_plain(record.gate_spec),
            candidate_conf=dict(record.candidate_conf) if record.candidate_conf else None,
        )
        with self._writing() as session:
            before = session.get(Night, record.run)
            if before is not None and before.shape != night.shape and self._rows(session, night.id):
                raise StoreError(
                    f"run {record.run}: it was measured on another workload or cluster before;"
                    " start a new run"
                )
            if session.get(Build, record.build.id) is None:
                session.add(Build(**asdict(record.build), first_seen=now()))
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
            where = (
                Repetition.night_id == record.run,
                Repetition.query == record.query,
                Repetition.arm == record.arm,
                Repetition.stage == record.stage,
                Repetition.number == record.number,
            )
            before = session.scalar(select(Repetition).where(*where))
            if self._is_baseline(session, record.run, record.query):
                if before is not None and _same(before, row):
                    return
                raise StoreError(
                    f"run {record.run} is an accepted baseline of {record.query} and is not"
                    " measured again; start a new run"
                )
            row.plan_id = self._plan(session, record.result)
            session.execute(delete(Repetition).where(*where))
            session.add(row)
            session.flush()
            session.add_all(part_rows(row.id, record.parts))
            for item in record.series:
                session.add(
                    SampleSeries(
                        repetition_id=row.id,
                        host=item.series.host,
                        path=str(item.path),
                        interval_s=item.series.interval_s,
                        readings=len(item.series.times),
                        series=pack(item.series),
                    )
                )

    def record_validation(self, record: ValidationRecord) -> None:
        """Record what the expectations said of a query, replacing what they said before."""
        with self._writing() as session:
            self._known(session, record.run)
            session.execute(
                delete(Validation).where(
                    Validation.night_id == record.run,
                    Validation.query == record.query,
                    Validation.arm == record.arm,
                )
            )
            session.add(
                Validation(
                    night_id=record.run,
                    query=record.query,
                    arm=record.arm,
                    success=record.success,
                    evaluated=record.evaluated,
                    failures=list(record.failures),
                    statistics=dict(record.statistics),
                    recorded=now(),
                )
            )

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        with self._session(writing(self._engine)) as session:
            yield session

    @staticmethod
    def _rows(session: Session, run: str) -> bool:
        where = Repetition.night_id == run
        return session.scalar(select(Repetition.id).where(where).limit(1)) is not None

    @staticmethod
    def _is_baseline(session: Session, run: str, query: str) -> bool:
        where = (Acceptance.night_id == run, Acceptance.query == query)
        return session.scalar(select(Acceptance.id).where(*where).limit(1)) is not None

    @staticmethod
    def _plan(session: Session, result: Mapping[str, Any]) -> str | None:
        plan = result.get("plan")
        if not plan:
            return None
        key = hashlib.sha256(plan["text"].encode()).hexdigest()
        if session.get(Plan, key) is None:
            fields = {name: plan[name] for name in ("text", "skeleton", "skeleton_hash")}
            session.add(Plan(id=key, **fields))
            session.flush()
        return key


def now() -> datetime:
    """Return the moment, in UTC."""
    return datetime.now(UTC)


def _plain(mapping: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return dict(mapping) if mapping is not None else None


def _row(record: RepetitionRecord) -> Repetition:
    fields: dict[str, Any] = asdict(record.measurement) if record.measurement else {}
    fields.pop("query", None)
    if "hosts" in fields:
        fields["hosts"] = list(fields["hosts"])
    paths = {"result_path": record.result_path, "event_log_path": record.event_log_path}
    return Repetition(
        night_id=record.run,
        query=record.query,
        arm=record.arm,
        stage=record.stage,
        number=record.number,
        position=record.position,
        status=record.status,
        reason=record.failed or record.invalid,
        recorded=now(),
        **{name: str(path) if path else None for name, path in paths.items()},
        event_log_bytes=record.event_log_bytes,
        batch_list=record.result.get("batches"),
        confs=record.result.get("confs"),
        parts_problem=record.parts_problem,
        **fields,
    )


def _same(before: Repetition, after: Repetition) -> bool:
    names = ["status", *Measurement.__dataclass_fields__]
    return all(getattr(before, name) == getattr(after, name) for name in names)


__all__ = ["Recorder", "now"]
