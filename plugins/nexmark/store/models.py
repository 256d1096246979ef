"""The tables of the results database. One row per repetition; nothing is only an aggregate."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

RUN = String(400)
NAME = String(100)


class Utc(TypeDecorator[datetime]):
    """A moment; always UTC, also where the database keeps no time zone (SQLite)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Store UTC."""
        return value.astimezone(UTC) if value is not None else None

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Base of all tables; constraint names are the same on every database."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it from the class
        datetime: Utc,
        dict[str, Any]: JSON,
        list[Any]: JSON,
        int: BigInteger,
        str: String(255),
    }


class Build(Base):
    """A concrete Spark artifact, named by its content."""

    __tablename__ = "build"

    id: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[str]
    source: Mapped[str] = mapped_column(Text)
    first_seen: Mapped[datetime]


class Night(Base):
    """One DAG run; ``id`` is ``<dag_id>/<run_id>``, the name a user gives it by.

    ``shape`` is the hash of what must be the same for two nights to be compared.
    """

    __tablename__ = "night"

    id: Mapped[str] = mapped_column(RUN, primary_key=True)
    dag_id: Mapped[str]
    run_id: Mapped[str]
    engine: Mapped[str] = mapped_column(NAME, index=True)
    workload: Mapped[str] = mapped_column(NAME)
    cluster: Mapped[str] = mapped_column(NAME)
    build_id: Mapped[str] = mapped_column(ForeignKey("build.id"))
    jobs: Mapped[str]
    shape: Mapped[str] = mapped_column(String(32))
    workload_spec: Mapped[dict[str, Any]]
    cluster_spec: Mapped[dict[str, Any]]
    queries: Mapped[list[Any]]
    repetitions: Mapped[int]
    directory: Mapped[str] = mapped_column(Text)
    started: Mapped[datetime] = mapped_column(index=True)


class Plan(Base):
    """An executed plan, normalised; ``id`` is the hash of its text."""

    __tablename__ = "plan"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    skeleton_hash: Mapped[str] = mapped_column(String(64), index=True)
    skeleton: Mapped[str] = mapped_column(Text)
    text: Mapped[str] = mapped_column(Text)


class Repetition(Base):
    """One fresh application run of a query. Every figure of ``measure.Measurement`` is a column.

    ``status``: ok; invalid (its result is wrong); failed (it did not end, or was not measured).
    ``reason`` says why it is not ok, and then figures may be NULL.
    """

    __tablename__ = "repetition"
    __table_args__ = (UniqueConstraint("night_id", "query", "arm", "number"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    night_id: Mapped[str] = mapped_column(ForeignKey("night.id"))
    query: Mapped[str] = mapped_column(NAME)
    arm: Mapped[str] = mapped_column(NAME)
    number: Mapped[int]
    status: Mapped[str] = mapped_column(NAME)
    reason: Mapped[str | None] = mapped_column(Text)
    recorded: Mapped[datetime]
    result_path: Mapped[str | None] = mapped_column(Text)
    event_log_path: Mapped[str | None] = mapped_column(Text)
    event_log_bytes: Mapped[int | None]
    plan_id: Mapped[str | None] = mapped_column(ForeignKey("plan.id"))
    batch_list: Mapped[list[Any] | None]
    confs: Mapped[dict[str, Any] | None]

    formulation: Mapped[str | None]
    build: Mapped[str | None]
    spark_version: Mapped[str | None]
    conf_profile: Mapped[str | None]
    application_id: Mapped[str | None]
    start: Mapped[float | None]
    end: Mapped[float | None]
    events: Mapped[int | None]
    wall_s: Mapped[float | None]
    cores: Mapped[float | None]
    cpu_s: Mapped[float | None]
    cpu_executors_s: Mapped[float | None]
    cpu_python_s: Mapped[float | None]
    cpu_driver_s: Mapped[float | None]
    cpu_application_s: Mapped[float | None]
    throughput: Mapped[float | None]
    throughput_per_core: Mapped[float | None]
    basis: Mapped[str | None]
    cpu_s_per_mevent: Mapped[float | None]
    cpu_s_per_mevent_steady: Mapped[float | None]
    cpu_s_per_mevent_application: Mapped[float | None]
    warmup_batches: Mapped[int | None]
    steady_events: Mapped[int | None]
    steady_wall_s: Mapped[float | None]
    steady_cpu_s: Mapped[float | None]
    steady_throughput: Mapped[float | None]
    steady_throughput_per_core: Mapped[float | None]
    batches: Mapped[int | None]
    batch_ms_p50: Mapped[float | None]
    batch_ms_p95: Mapped[float | None]
    batch_ms_p99: Mapped[float | None]
    state_rows_max: Mapped[int | None]
    state_rows_final: Mapped[int | None]
    state_bytes_max: Mapped[int | None]
    state_commit_ms: Mapped[float | None]
    late_rows: Mapped[int | None]
    input_rows: Mapped[int | None]
    output_rows: Mapped[int | None]
    digest: Mapped[str | None]
    digest_kind: Mapped[str | None]
    plan_skeleton_hash: Mapped[str | None]
    exchanges: Mapped[int | None]
    stateful_operators: Mapped[int | None]
    hosts: Mapped[list[Any] | None]
    sampling_interval_s: Mapped[float | None]
    sampler_cores: Mapped[float | None]
    other_cores: Mapped[float | None]
    steal_cores: Mapped[float | None]

    @property
    def ok(self) -> bool:
        """Tell whether the repetition counts."""
        return self.status == "ok"


class SampleSeries(Base):
    """The CPU of one repetition on one host; ``series`` is packed (``store.series``)."""

    __tablename__ = "sample_series"
    __table_args__ = (UniqueConstraint("repetition_id", "host"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    repetition_id: Mapped[int] = mapped_column(ForeignKey("repetition.id", ondelete="CASCADE"))
    host: Mapped[str]
    path: Mapped[str] = mapped_column(Text)
    interval_s: Mapped[float]
    readings: Mapped[int]
    series: Mapped[bytes] = mapped_column(LargeBinary)


class Validation(Base):
    """What the expectations said of the verified result of a query; a line per failure."""

    __tablename__ = "validation"
    __table_args__ = (UniqueConstraint("night_id", "query", "arm"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    night_id: Mapped[str] = mapped_column(ForeignKey("night.id"))
    query: Mapped[str] = mapped_column(NAME)
    arm: Mapped[str] = mapped_column(NAME)
    success: Mapped[bool]
    evaluated: Mapped[int]
    failures: Mapped[list[Any]]
    statistics: Mapped[dict[str, Any]]
    recorded: Mapped[datetime]


class VerdictRow(Base):
    """A verdict as it was given, with the version of the gate that gave it."""

    __tablename__ = "verdict"
    __table_args__ = (UniqueConstraint("night_id", "query", "metric", "gate_version"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    night_id: Mapped[str] = mapped_column(ForeignKey("night.id"))
    query: Mapped[str] = mapped_column(NAME)
    metric: Mapped[str] = mapped_column(NAME)
    gate_version: Mapped[int]
    value: Mapped[str] = mapped_column(NAME)
    reason: Mapped[str] = mapped_column(Text)
    bound: Mapped[float]
    ratio: Mapped[float | None]
    candidate: Mapped[float | None]
    baseline: Mapped[float | None]
    basis: Mapped[str | None]
    baseline_run: Mapped[str | None] = mapped_column(RUN)
    repetitions: Mapped[int]
    judged: Mapped[datetime]


class Acceptance(Base):
    """A person's acceptance of a night's figures of one query as the baseline from then on.

    Rows are only ever added: the newest one of an engine, workload, cluster and query counts, the
    older ones tell how it came to that.
    """

    __tablename__ = "acceptance"
    __table_args__ = (Index(None, "engine", "workload", "cluster", "query"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    engine: Mapped[str] = mapped_column(NAME)
    workload: Mapped[str] = mapped_column(NAME)
    cluster: Mapped[str] = mapped_column(NAME)
    query: Mapped[str] = mapped_column(NAME)
    night_id: Mapped[str] = mapped_column(ForeignKey("night.id"))
    who: Mapped[str]
    reason: Mapped[str] = mapped_column(Text)
    accepted: Mapped[datetime]
