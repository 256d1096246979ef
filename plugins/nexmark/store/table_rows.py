"""The tables of the results database; each repetition has a row of its own."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.ext.hybrid import hybrid_property
from sqlalchemy.orm import Mapped, column_property, mapped_column, relationship

from nexmark.model import (
    CPU,
    FAILING,
    FIRST_ROUND,
    PROFILED,
    Basis,
    Comparable,
    Mode,
    Status,
    Value,
    is_red,
)
from nexmark.secrets import shown_build
from nexmark.store.table_base import (
    BASIS,
    MODE,
    NAME,
    RUN,
    VALUE,
    Base,
    Double,
    JsonObject,
    append_only,
)


class _Numbered:
    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, sort_order=-2)


class _OfNight(_Numbered):
    night_id: Mapped[str] = mapped_column(sa.ForeignKey("night.id"), sort_order=-1)


class BuildRow(Base):
    """A concrete Spark artifact; its ``id`` is made from its content.

    ``revision`` is the commit that it was made from, or the first digits of its hash.
    """

    __tablename__ = "build"

    id: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[str]
    source: Mapped[str] = mapped_column(sa.Text)
    first_seen: Mapped[datetime]
    revision: Mapped[str | None] = mapped_column(sa.String(64))

    @property
    def name(self) -> str:
        """The build for people: version and origin first, then the id, without secrets."""
        return shown_build(self.version, self.source, self.id)


class NightRow(Base):
    """One DAG run; its ``id`` is ``<dag_id>/<run_id>``, the name that commands take.

    ``shape`` is a hash; only nights with the same shape are compared. ``mode`` says how the night
    is judged. ``baselines`` has the build of the baseline arm by query. ``seed`` determines the
    order of the arms in the pairs. ``grade`` says how far the hosts can be trusted.

    ``candidate_conf`` has Spark confs that the candidate alone had: such a night tried a setting,
    and cannot be a baseline. ``teaches``: whether the gate learns from the night; this is decided
    when the night is planned. ``started_by`` is the user who started it, or the kind of run that
    Airflow started by itself; NULL if an earlier version recorded it. ``rows_pruned`` is the moment
    when its raw rows were deleted (``raw_rows``); its verdicts stay, and cannot be computed again.
    """

    __tablename__ = "night"
    __table_args__ = (
        sa.Index(None, "dag_id", "started"),
        sa.Index(None, "engine", "workload", "cluster", "started"),
    )

    id: Mapped[str] = mapped_column(RUN, primary_key=True)
    dag_id: Mapped[str]
    run_id: Mapped[str]
    engine: Mapped[str] = mapped_column(NAME)
    workload: Mapped[str] = mapped_column(NAME)
    cluster: Mapped[str] = mapped_column(NAME)
    build_id: Mapped[str] = mapped_column(sa.ForeignKey("build.id"))
    jobs: Mapped[str]
    shape: Mapped[str] = mapped_column(sa.String(32))
    workload_spec: Mapped[JsonObject]
    cluster_spec: Mapped[JsonObject]
    queries: Mapped[list[str]]
    repetitions: Mapped[int]
    directory: Mapped[str] = mapped_column(sa.Text)
    started: Mapped[datetime] = mapped_column(index=True)
    mode: Mapped[Mode] = mapped_column(MODE, default=Mode.BOUNDS, server_default=Mode.BOUNDS)
    baselines: Mapped[dict[str, str] | None]
    seed: Mapped[int | None]
    gate_spec: Mapped[JsonObject | None]
    grade: Mapped[str | None]
    grade_reason: Mapped[str | None] = mapped_column(sa.Text)
    candidate_conf: Mapped[dict[str, str] | None] = mapped_column(sa.JSON(none_as_null=True))
    teaches: Mapped[bool] = mapped_column(default=True, server_default=sa.true())
    rows_pruned: Mapped[datetime | None]
    started_by: Mapped[str | None]

    @property
    def comparable(self) -> Comparable:
        """What comparable nights have in common with this one."""
        return Comparable(self.engine, self.workload, self.cluster, self.shape, self.mode)

    def is_comparable(self) -> sa.ColumnElement[bool]:
        """Return the condition that is true of the nights that are comparable with this one."""
        return sa.and_(
            NightRow.engine == self.engine,
            NightRow.workload == self.workload,
            NightRow.cluster == self.cluster,
            NightRow.shape == self.shape,
            NightRow.mode == self.mode,
        )

    @property
    def same_build(self) -> bool:
        """Whether the candidate was compared with itself."""
        same = set((self.baselines or {}).values()) == {self.build_id}
        return same and not self.candidate_conf


class PlanRow(Base):
    """An executed plan, normalised; its ``id`` is the hash of its text."""

    __tablename__ = "plan"

    id: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    skeleton_hash: Mapped[str] = mapped_column(sa.String(64), index=True)
    skeleton: Mapped[str] = mapped_column(sa.Text)
    text: Mapped[str] = mapped_column(sa.Text)


class RepetitionRow(_OfNight, Base):
    """One run of a query in a fresh application; each field of ``Measurement`` is a column.

    ``number`` is the number of its pair. ``position`` is its place in the order in which the
    repetitions of its query and stage really ran, from 1; NULL if it never started. ``reason`` says
    why its ``status`` is not ok; then the columns of ``Measurement`` may be NULL. ``parts_problem``
    says why it has no parts.
    """

    __tablename__ = "repetition"
    __table_args__ = (sa.UniqueConstraint("night_id", "query", "arm", "stage", "number"),)

    query: Mapped[str] = mapped_column(NAME)
    arm: Mapped[str] = mapped_column(NAME)
    stage: Mapped[int] = mapped_column(default=FIRST_ROUND, server_default="1")
    number: Mapped[int]
    position: Mapped[int | None]
    status: Mapped[str] = mapped_column(NAME)
    reason: Mapped[str | None] = mapped_column(sa.Text)
    recorded: Mapped[datetime]
    result_path: Mapped[str | None] = mapped_column(sa.Text)
    event_log_path: Mapped[str | None] = mapped_column(sa.Text)
    event_log_bytes: Mapped[int | None]
    plan_id: Mapped[str | None] = mapped_column(sa.ForeignKey("plan.id"))
    batch_list: Mapped[list[JsonObject] | None]
    confs: Mapped[dict[str, str] | None]
    parts_problem: Mapped[str | None] = mapped_column(sa.Text)
    figures: Mapped[dict[str, float] | None] = mapped_column(sa.JSON(none_as_null=True))
    latency: Mapped[str | None] = mapped_column(sa.Text)
    ageing: Mapped[list[JsonObject] | None] = mapped_column(sa.JSON(none_as_null=True))
    formulation: Mapped[str | None]
    build: Mapped[str | None]
    spark_version: Mapped[str | None]
    conf_profile: Mapped[str | None]
    application_id: Mapped[str | None]
    start: Mapped[Double | None]
    end: Mapped[Double | None]
    input_rows: Mapped[int | None]
    output_rows: Mapped[int | None]
    digest: Mapped[str | None]
    digest_kind: Mapped[str | None]
    late_rows: Mapped[int | None]
    state_rows_max: Mapped[int | None]
    state_rows_final: Mapped[int | None]
    state_bytes_max: Mapped[int | None]
    state_commit_ms: Mapped[Double | None]
    plan_skeleton_hash: Mapped[str | None]
    exchanges: Mapped[int | None]
    stateful_operators: Mapped[int | None]
    events: Mapped[int | None]
    wall_s: Mapped[Double | None]
    cores: Mapped[Double | None]
    cpu_s: Mapped[Double | None]
    cpu_executors_s: Mapped[Double | None]
    cpu_python_s: Mapped[Double | None]
    cpu_driver_s: Mapped[Double | None]
    cpu_application_s: Mapped[Double | None]
    throughput: Mapped[Double | None]
    throughput_per_core: Mapped[Double | None]
    basis: Mapped[str | None]
    cpu_s_per_mevent: Mapped[Double | None]
    cpu_s_per_mevent_steady: Mapped[Double | None]
    cpu_s_per_mevent_application: Mapped[Double | None]
    warmup_batches: Mapped[int | None]
    steady_events: Mapped[int | None]
    steady_wall_s: Mapped[Double | None]
    steady_cpu_s: Mapped[Double | None]
    steady_throughput: Mapped[Double | None]
    steady_throughput_per_core: Mapped[Double | None]
    batches: Mapped[int | None]
    batch_ms_p50: Mapped[Double | None]
    batch_ms_p95: Mapped[Double | None]
    batch_ms_p99: Mapped[Double | None]
    hosts: Mapped[list[str] | None]
    sampling_interval_s: Mapped[Double | None]
    sampler_cores: Mapped[Double | None]
    other_cores: Mapped[Double | None]
    steal_cores: Mapped[Double | None]

    @property
    def ok(self) -> bool:
        """Tell whether the repetition is right and was measured."""
        return self.status == Status.OK

    @property
    def counts(self) -> bool:
        """Tell whether its figures may be compared: it is right, and ran without a flight recorder.

        A flight recorder costs CPU time.
        """
        return self.ok and self.stage != PROFILED

    @property
    def name(self) -> str:
        """The name of the repetition among the judged repetitions of its query."""
        round_ = "" if self.stage == FIRST_ROUND else f"round {self.stage} "
        return f"{self.arm} {round_}repetition {self.number}"

    def figure(self, column: str) -> float | None:
        """Return the figure in a column, or the figure of a metric that has no column."""
        if column in self.__table__.columns:
            value: float | None = getattr(self, column)
            return value
        return (self.figures or {}).get(column)


class PartRow(Base):
    """An operator, stage or other part of the work of a repetition (``executed_plan.Part``)."""

    __tablename__ = "part"

    repetition_id: Mapped[int] = mapped_column(
        sa.Integer, sa.ForeignKey("repetition.id", ondelete="CASCADE"), primary_key=True
    )
    place: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(NAME)
    name: Mapped[str] = mapped_column(sa.Text)
    cpu_s: Mapped[float | None]
    parent: Mapped[int | None] = mapped_column(sa.Integer)
    depth: Mapped[int] = mapped_column(sa.Integer)
    stage: Mapped[int | None] = mapped_column(sa.Integer)
    covers: Mapped[list[int]]
    metrics: Mapped[dict[str, float]]


class SeriesRow(_Numbered, Base):
    """The CPU time of one repetition on one host; ``measure.cpu_series`` unpacks ``series``."""

    __tablename__ = "sample_series"
    __table_args__ = (sa.UniqueConstraint("repetition_id", "host"),)

    repetition_id: Mapped[int] = mapped_column(sa.ForeignKey("repetition.id", ondelete="CASCADE"))
    host: Mapped[str]
    path: Mapped[str] = mapped_column(sa.Text)
    interval_s: Mapped[float]
    readings: Mapped[int]
    series: Mapped[bytes] = mapped_column(sa.LargeBinary)


class ValidationRow(_OfNight, Base):
    """The outcome of the expectations on a query's verified result; each failure is one line."""

    __tablename__ = "validation"
    __table_args__ = (sa.UniqueConstraint("night_id", "query", "arm"),)

    query: Mapped[str] = mapped_column(NAME)
    arm: Mapped[str] = mapped_column(NAME)
    success: Mapped[bool]
    evaluated: Mapped[int]
    failures: Mapped[list[str]]
    statistics: Mapped[JsonObject]
    recorded: Mapped[datetime]


class WithdrawalRow(_Numbered, Base):
    """A person's withdrawal of an acceptance, with its reason. Rows are only added."""

    __tablename__ = "withdrawal"

    acceptance_id: Mapped[int] = mapped_column(sa.ForeignKey("acceptance.id"), unique=True)
    who: Mapped[str]
    reason: Mapped[str] = mapped_column(sa.Text)
    withdrawn: Mapped[datetime]


class VerdictRow(_OfNight, Base):
    """A verdict as the gate gave it; in a paired night, the figures are medians over its pairs."""

    __tablename__ = "verdict"
    __table_args__ = (
        sa.UniqueConstraint("night_id", "query", "metric", "gate_version"),
        sa.Index(None, "query", "metric"),
        sa.Index(None, "value"),
    )

    query: Mapped[str] = mapped_column(NAME)
    metric: Mapped[str] = mapped_column(NAME)
    gate_version: Mapped[int]
    value: Mapped[Value] = mapped_column(VALUE)
    reason: Mapped[str] = mapped_column(sa.Text)
    mode: Mapped[Mode] = mapped_column(MODE, default=Mode.BOUNDS, server_default=Mode.BOUNDS)
    decides: Mapped[bool] = mapped_column(default=True, server_default=sa.true())
    bound: Mapped[float | None]
    ratio: Mapped[float | None]
    candidate: Mapped[float | None]
    baseline: Mapped[float | None]
    basis: Mapped[Basis | None] = mapped_column(BASIS)
    baseline_run: Mapped[str | None] = mapped_column(RUN)
    repetitions: Mapped[int]
    lo: Mapped[float | None]
    hi: Mapped[float | None]
    mde: Mapped[float | None]
    shift: Mapped[float | None]
    spread: Mapped[float | None]
    noise: Mapped[float | None]
    pairs: Mapped[int | None]
    fresh_pairs: Mapped[int | None]
    further_pairs: Mapped[int | None]
    drift_slower: Mapped[float] = mapped_column(default=0.0, server_default="0")
    drift_faster: Mapped[float] = mapped_column(default=0.0, server_default="0")
    baseline_build: Mapped[str | None] = mapped_column(sa.Text)
    acceptance_id: Mapped[int | None] = mapped_column(sa.ForeignKey("acceptance.id"))
    judged: Mapped[datetime]
    acceptance_withdrawn: Mapped[bool] = column_property(
        sa.exists().where(WithdrawalRow.acceptance_id == acceptance_id)
    )
    """Whether the acceptance that covered the verdict was withdrawn: the verdict is open again."""

    @hybrid_property
    def bad(self) -> bool:
        """Whether the verdict would fail the night if it decided and nobody accepted it."""
        return is_red(self.value, self.ratio)

    @bad.inplace.expression
    @classmethod
    def _bad(cls) -> sa.ColumnElement[bool]:
        slower = cls.ratio.is_(None) | (cls.ratio > 1)
        return cls.value.in_(FAILING) | ((cls.value == Value.SUSPECT) & slower)


class AcceptanceRow(_Numbered, Base):
    """A person's acceptance of a night's figures of one query as its baseline from then on.

    Rows are only added. For each place and query, the newest row counts that is neither expired nor
    withdrawn. ``build_id`` is the accepted build, ``size`` the ratio of its verdict, ``link`` the
    address of the discussion.
    """

    __tablename__ = "acceptance"
    __table_args__ = (sa.Index(None, "engine", "workload", "cluster", "query"),)

    engine: Mapped[str] = mapped_column(NAME)
    workload: Mapped[str] = mapped_column(NAME)
    cluster: Mapped[str] = mapped_column(NAME)
    query: Mapped[str] = mapped_column(NAME)
    night_id: Mapped[str] = mapped_column(sa.ForeignKey("night.id"))
    who: Mapped[str]
    reason: Mapped[str] = mapped_column(sa.Text)
    accepted: Mapped[datetime]
    metric: Mapped[str] = mapped_column(NAME, default=CPU, server_default=CPU)
    build_id: Mapped[str | None] = mapped_column(sa.ForeignKey("build.id"))
    size: Mapped[float | None]
    expires: Mapped[datetime | None]
    link: Mapped[str | None] = mapped_column(sa.Text)
    withdrawal: "Mapped[WithdrawalRow | None]" = relationship(lazy="joined")

    def over(self, at: datetime) -> bool:
        """Tell whether the acceptance has expired or was withdrawn, and so does not count."""
        return self.expired(at) or self.withdrawn(at)

    def expired(self, at: datetime) -> bool:
        """Tell whether the acceptance had expired at a moment."""
        return self.expires is not None and self.expires <= at

    def withdrawn(self, at: datetime) -> bool:
        """Tell whether the acceptance had been withdrawn at a moment."""
        return self.withdrawal is not None and self.withdrawal.withdrawn <= at


class CanaryRow(_OfNight, Base):
    """A reading of the canary, before or after a group of queries.

    ``group`` is "" for all queries; ``value`` is NULL if the metric could not be read.
    """

    __tablename__ = "canary"
    __table_args__ = (sa.Index(None, "night_id"),)

    host: Mapped[str]
    group: Mapped[str] = mapped_column(NAME)
    moment: Mapped[str] = mapped_column(NAME)
    metric: Mapped[str] = mapped_column(NAME)
    value: Mapped[float | None]
    taken: Mapped[datetime]


class CompatibilityRow(_OfNight, Base):
    """The result of checking whether a running query survives an upgrade and a downgrade.

    ``forward``: the candidate continues what the baseline began; ``backward``: the other way round.
    ``outcome`` is the class of the result, ``red`` whether it fails the night, ``plans`` says how
    the plans differ, ``checkpoint`` names the confs that the checkpoint has.
    """

    __tablename__ = "compatibility"
    __table_args__ = (sa.UniqueConstraint("night_id", "query"),)

    query: Mapped[str] = mapped_column(NAME)
    baseline_build: Mapped[str]
    outcome: Mapped[str] = mapped_column(NAME)
    red: Mapped[bool]
    plans: Mapped[str] = mapped_column(NAME, default="-")
    forward: Mapped[str] = mapped_column(sa.Text, default="-")
    backward: Mapped[str] = mapped_column(sa.Text, default="-")
    checkpoint: Mapped[str] = mapped_column(sa.Text, default="")
    reason: Mapped[str] = mapped_column(sa.Text)
    baseline_plan: Mapped[str | None] = mapped_column(sa.Text)
    candidate_plan: Mapped[str | None] = mapped_column(sa.Text)
    checked: Mapped[datetime]


class ExperimentRow(_Numbered, Base):
    """An arm of an experiment for one query at one size, in events per micro-batch.

    Rows are in the order of measuring. ``run`` names one measurement of the experiment. ``saves``
    is the share of the first arm's CPU time that this arm saves, ``lo`` and ``hi`` are its
    interval; the first arm has none. ``outcome`` says whether the rows are right. ``remarks`` say
    what figures cannot: failures, the size at which a gain becomes a loss, why arms differ.
    ``published_gain_percent`` is the gain that a published text reports for ``published_change``.
    """

    __tablename__ = "experiment"

    run: Mapped[str] = mapped_column(RUN, index=True)
    measured: Mapped[datetime]
    name: Mapped[str] = mapped_column(NAME)
    question: Mapped[str] = mapped_column(sa.Text)
    spark_version: Mapped[str] = mapped_column(NAME)
    pairs: Mapped[int]
    query: Mapped[str] = mapped_column(NAME)
    size: Mapped[int]
    arm: Mapped[str] = mapped_column(NAME)
    outcome: Mapped[str] = mapped_column(NAME)
    remarks: Mapped[str] = mapped_column(sa.Text)
    cpu_s_per_mevent: Mapped[float | None]
    saves: Mapped[float | None]
    lo: Mapped[float | None]
    hi: Mapped[float | None]
    wall_s: Mapped[float | None]
    state_rows: Mapped[int | None]
    exchanges: Mapped[int | None]
    published_gain_percent: Mapped[float | None]
    published_change: Mapped[str | None] = mapped_column(sa.Text)
    attribution: Mapped[JsonObject | None] = mapped_column(sa.JSON(none_as_null=True))


class SelfTestRow(_OfNight, Base):
    """The gate's verdict on a known change.

    The ``kind`` is ``aa`` (no change) or ``slowdown`` (a seeded slowdown, whose ratio is ``size``).
    """

    __tablename__ = "self_test"
    __table_args__ = (sa.UniqueConstraint("night_id", "kind", "query", "gate_version"),)

    kind: Mapped[str] = mapped_column(NAME)
    query: Mapped[str] = mapped_column(NAME)
    size: Mapped[float]
    value: Mapped[Value] = mapped_column(VALUE)
    ratio: Mapped[float | None]
    lo: Mapped[float | None]
    hi: Mapped[float | None]
    gate_version: Mapped[int]
    judged: Mapped[datetime]


class BrokerBenchRow(_Numbered, Base):
    """The figures of `nexmark kafka bench`: its tests, and its ratios beside a published text's."""

    __tablename__ = "broker_bench"

    cluster: Mapped[str] = mapped_column(sa.Text)
    measured: Mapped[datetime]
    figures: Mapped[JsonObject]


def _keep_rows(table: sa.Table, connection: sa.Connection, **_: object) -> None:
    append_only(table.name, connection)


for _row in (AcceptanceRow, WithdrawalRow):
    sa.event.listen(_row.__table__, "after_create", _keep_rows)
