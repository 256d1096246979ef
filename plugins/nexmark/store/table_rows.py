"""The tables of the results database. One row per repetition; nothing is only an aggregate."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import sqlalchemy as sa
from sqlalchemy.ext.hybrid import hybrid_property
from sqlalchemy.orm import Mapped, mapped_column, relationship

from nexmark.measure.measurement import Measurement
from nexmark.model import CPU, FAILING, FIRST_ROUND, PROFILED, Basis, Mode, Status, Value, is_red
from nexmark.store.table_base import BASIS, MODE, NAME, RUN, VALUE, Base, append_only


class _Numbered:
    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, sort_order=-2)


class _OfNight(_Numbered):
    night_id: Mapped[str] = mapped_column(sa.ForeignKey("night.id"), sort_order=-1)


class BuildRow(Base):
    """A concrete Spark artifact, named by its content."""

    __tablename__ = "build"

    id: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[str]
    source: Mapped[str] = mapped_column(sa.Text)
    first_seen: Mapped[datetime]


class NightRow(Base):
    """One DAG run; ``id`` is ``<dag_id>/<run_id>``, the name a user gives it by.

    ``shape`` is a hash; only nights with the same are compared. ``mode``: how it is judged.
    ``baselines`` has the build of the baseline arm by query, ``seed`` draws the order of the pairs,
    ``grade`` says how far the hosts can be trusted. With a ``candidate_conf``, Spark confs of the
    candidate alone, the night tried a setting, and cannot be a baseline. ``teaches``: whether the
    gate learns from it; decided when it was planned. ``rows_pruned``: when its raw rows were
    deleted (``raw_rows``); its verdicts stay, and cannot be computed again.
    """

    __tablename__ = "night"
    __table_args__ = (sa.Index(None, "dag_id", "started"),)

    id: Mapped[str] = mapped_column(RUN, primary_key=True)
    dag_id: Mapped[str]
    run_id: Mapped[str]
    engine: Mapped[str] = mapped_column(NAME, index=True)
    workload: Mapped[str] = mapped_column(NAME)
    cluster: Mapped[str] = mapped_column(NAME)
    build_id: Mapped[str] = mapped_column(sa.ForeignKey("build.id"))
    jobs: Mapped[str]
    shape: Mapped[str] = mapped_column(sa.String(32))
    workload_spec: Mapped[dict[str, Any]]
    cluster_spec: Mapped[dict[str, Any]]
    queries: Mapped[list[Any]]
    repetitions: Mapped[int]
    directory: Mapped[str] = mapped_column(sa.Text)
    started: Mapped[datetime] = mapped_column(index=True)
    mode: Mapped[Mode] = mapped_column(MODE, default=Mode.BOUNDS, server_default=Mode.BOUNDS)
    baselines: Mapped[dict[str, Any] | None]
    seed: Mapped[int | None]
    gate_spec: Mapped[dict[str, Any] | None]
    grade: Mapped[str | None]
    grade_reason: Mapped[str | None] = mapped_column(sa.Text)
    candidate_conf: Mapped[dict[str, Any] | None] = mapped_column(sa.JSON(none_as_null=True))
    teaches: Mapped[bool] = mapped_column(default=True, server_default=sa.true())
    rows_pruned: Mapped[datetime | None]

    @property
    def same_build(self) -> bool:
        """Whether the candidate was compared with itself."""
        same = set((self.baselines or {}).values()) == {self.build_id}
        return same and not self.candidate_conf


class PlanRow(Base):
    """An executed plan, normalised; ``id`` is the hash of its text."""

    __tablename__ = "plan"

    id: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    skeleton_hash: Mapped[str] = mapped_column(sa.String(64), index=True)
    skeleton: Mapped[str] = mapped_column(sa.Text)
    text: Mapped[str] = mapped_column(sa.Text)


class RepetitionRow(_OfNight, Base):
    """One fresh application run of a query. Every figure of ``measure.Measurement`` is a column.

    ``number`` is the pair's, ``position`` the place in which it really ran among the repetitions of
    its query and stage, from 1; NULL where it never started. ``reason`` says why its ``status`` is
    not ok, and then figures may be NULL. ``parts_problem`` is why it has no parts.
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
    batch_list: Mapped[list[Any] | None]
    confs: Mapped[dict[str, Any] | None]
    parts_problem: Mapped[str | None] = mapped_column(sa.Text)
    figures: Mapped[dict[str, Any] | None] = mapped_column(sa.JSON(none_as_null=True))
    latency: Mapped[str | None] = mapped_column(sa.Text)

    if TYPE_CHECKING:  # the columns of ``Measurement`` are added below

        def __init__(self, **columns: Any) -> None: ...  # noqa: D107
        def __getattr__(self, name: str) -> Any: ...  # noqa: D105

    @property
    def ok(self) -> bool:
        """Tell whether the repetition is right and was measured."""
        return self.status == Status.OK

    @property
    def counts(self) -> bool:
        """Tell whether its figures may be compared: a flight recorder costs CPU time."""
        return self.ok and self.stage != PROFILED

    @property
    def name(self) -> str:
        """Its name among the judged repetitions of its query."""
        round_ = "" if self.stage == FIRST_ROUND else f"round {self.stage} "
        return f"{self.arm} {round_}repetition {self.number}"

    def figure(self, column: str) -> float | None:
        """Return the figure in a column, or of a metric without one."""
        if column in self.__table__.columns:
            value: float | None = getattr(self, column)
            return value
        return (self.figures or {}).get(column)


_KINDS: dict[Any, Any] = {str: sa.String(255), int: sa.BigInteger, float: sa.Double}
_KINDS[tuple[str, ...]] = sa.JSON
for _name, _hint in get_type_hints(Measurement).items():
    if _name not in RepetitionRow.__table__.columns:
        _kind = next(_KINDS[kind] for kind in (_hint, *get_args(_hint)) if kind in _KINDS)
        setattr(RepetitionRow, _name, mapped_column(_kind, nullable=True))


class PartRow(Base):
    """An operator, stage or other part of a repetition (``executed_plan.Part``), on its basis."""

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
    covers: Mapped[list[Any]]
    metrics: Mapped[dict[str, Any]]


class SeriesRow(_Numbered, Base):
    """The CPU of one repetition on one host; ``series`` is packed (``measure.cpu_series``)."""

    __tablename__ = "sample_series"
    __table_args__ = (sa.UniqueConstraint("repetition_id", "host"),)

    repetition_id: Mapped[int] = mapped_column(sa.ForeignKey("repetition.id", ondelete="CASCADE"))
    host: Mapped[str]
    path: Mapped[str] = mapped_column(sa.Text)
    interval_s: Mapped[float]
    readings: Mapped[int]
    series: Mapped[bytes] = mapped_column(sa.LargeBinary)


class ValidationRow(_OfNight, Base):
    """The outcome of the expectations on a query's verified result; a line per failure."""

    __tablename__ = "validation"
    __table_args__ = (sa.UniqueConstraint("night_id", "query", "arm"),)

    query: Mapped[str] = mapped_column(NAME)
    arm: Mapped[str] = mapped_column(NAME)
    success: Mapped[bool]
    evaluated: Mapped[int]
    failures: Mapped[list[Any]]
    statistics: Mapped[dict[str, Any]]
    recorded: Mapped[datetime]


class VerdictRow(_OfNight, Base):
    """A verdict as it was given; of a paired night the figures are medians over its pairs."""

    __tablename__ = "verdict"
    __table_args__ = (
        sa.UniqueConstraint("night_id", "query", "metric", "gate_version"),
        sa.Index(None, "query", "metric"),
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
    drift_slower: Mapped[float] = mapped_column(default=0.0, server_default="0")
    drift_faster: Mapped[float] = mapped_column(default=0.0, server_default="0")
    baseline_build: Mapped[str | None] = mapped_column(sa.Text)
    acceptance_id: Mapped[int | None] = mapped_column(sa.ForeignKey("acceptance.id"))
    judged: Mapped[datetime]

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
    """A person's acceptance of a night's figures of one query as the baseline from then on.

    Rows are only ever added: the newest of a place and query that is not over counts. ``build_id``
    is the accepted build, ``size`` the ratio of its verdict, ``link`` where it was decided.
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
        """Tell whether it no longer counts at a moment: it has expired, or was withdrawn."""
        return self.expired(at) or self.withdrawn(at)

    def expired(self, at: datetime) -> bool:
        """Tell whether it had expired at a moment."""
        return self.expires is not None and self.expires <= at

    def withdrawn(self, at: datetime) -> bool:
        """Tell whether it had been withdrawn at a moment."""
        return self.withdrawal is not None and self.withdrawal.withdrawn <= at


class WithdrawalRow(_Numbered, Base):
    """That a person took an acceptance back, and why. Rows are only ever added."""

    __tablename__ = "withdrawal"

    acceptance_id: Mapped[int] = mapped_column(sa.ForeignKey("acceptance.id"), unique=True)
    who: Mapped[str]
    reason: Mapped[str] = mapped_column(sa.Text)
    withdrawn: Mapped[datetime]


class CanaryRow(_OfNight, Base):
    """A reading of the canary, before or after a group of queries ("": all); NULL: unreadable."""

    __tablename__ = "canary"
    __table_args__ = (sa.Index(None, "night_id"),)

    host: Mapped[str]
    group: Mapped[str] = mapped_column(NAME)
    moment: Mapped[str] = mapped_column(NAME)
    metric: Mapped[str] = mapped_column(NAME)
    value: Mapped[float | None]
    taken: Mapped[datetime]


class CompatibilityRow(_OfNight, Base):
    """The outcome of a query that the baseline began and the candidate continued, and back.

    ``outcome`` is the class, ``red`` whether it fails the night, ``plans`` how the plans differ,
    ``checkpoint`` the confs that the checkpoint carries, in words.
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
    """An arm of an experiment for one query at one size (events per micro-batch), in the order run.

    ``run`` is one measurement of the experiment. ``saves`` is a share of the first arm's CPU time,
    ``lo`` and ``hi`` its interval; the first arm has none. ``outcome`` is whether the rows are
    right; ``remarks`` say what figures cannot: failures, where a gain turns, why arms differ.
    ``published_gain_percent`` is the gain that a published text reports of ``published_change``.
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
    attribution: Mapped[dict[str, Any] | None] = mapped_column(sa.JSON(none_as_null=True))


class SelfTestRow(_OfNight, Base):
    """The gate's verdict on a known change: none (``aa``) or a seeded ``size`` (``slowdown``)."""

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
    """The figures of `nexmark kafka bench`: its tests, and ratios beside the article's."""

    __tablename__ = "broker_bench"

    cluster: Mapped[str] = mapped_column(sa.Text)
    measured: Mapped[datetime]
    figures: Mapped[dict[str, Any]]


def _keep_rows(table: sa.Table, connection: sa.Connection, **_: Any) -> None:
    append_only(table.name, connection)


for _row in (AcceptanceRow, WithdrawalRow):
    sa.event.listen(_row.__table__, "after_create", _keep_rows)
