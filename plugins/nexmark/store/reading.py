"""Reads runs, repetitions, verdicts and baselines from the results database."""

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, Self, TypeVar, TypeVarTuple

from sqlalchemy import Engine, Row, Select, func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import InstrumentedAttribute, Session, defer

from nexmark.errors import suggest
from nexmark.model import ARMS, FIRST_ROUND, LATEST, Arm, Status, Value, grouped
from nexmark.store import gate_rows, versions
from nexmark.store.build_links import KeptLinks, read_links
from nexmark.store.connecting import snapshot
from nexmark.store.export import export
from nexmark.store.kept_reads import KeptReads, kept_until_written
from nexmark.store.query_history import QueryHistory, read_history
from nexmark.store.store_error import StoreError, UnknownNight, database_error
from nexmark.store.table_rows import (
    AcceptanceRow,
    BrokerBenchRow,
    BuildRow,
    CanaryRow,
    CompatibilityRow,
    ExperimentRow,
    NightRow,
    PlanRow,
    RepetitionRow,
    SelfTestRow,
    SeriesRow,
    ValidationRow,
    VerdictRow,
)
from nexmark.store.verdict_rows import by_newest_gate, select_verdicts, verdict_of
from nexmark.verdict.bounds import BoundsArm, BoundsRepetition
from nexmark.verdict.measured_night import MeasuredNight
from nexmark.verdict.verdict import Verdict

if TYPE_CHECKING:
    from nexmark.verdict.baseline_chain import Link

LISTED = 5
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")
_Reads = TypeVar("_Reads", bound="Reader")
RowType = TypeVar("RowType")
OfNight = TypeVar("OfNight", CompatibilityRow, ValidationRow)
_Columns = TypeVarTuple("_Columns")


class CanaryReading(NamedTuple):
    """What is read of a reading of the canary; the columns mean the same as in CanaryRow."""

    host: str
    group: str
    moment: str
    metric: str
    value: float | None
    taken: datetime


class SelfTestOutcome(NamedTuple):
    """What the gate said of a known change; the columns mean the same as in SelfTestRow."""

    kind: str
    value: Value
    gate_version: int


def of_one_moment(
    made: Callable[Concatenate[_Reads, _Given], _Made],
) -> Callable[Concatenate[_Reads, _Given], _Made]:
    """Decorate a function whose first argument is a store, so that it reads at one moment."""

    @wraps(made)
    def at_one_moment(store: _Reads, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        with store.at_one_moment() as moment:
            return made(moment, *args, **kwargs)

    return at_one_moment


class Reader:
    """Reads the store.

    A run is named ``<dag_id>/<run_id>``. Rows that a method returns are detached from the session,
    so they can be kept. Each method raises StoreError when the database fails.
    """

    def __init__(self, engine: Engine) -> None:
        """Keep an engine whose database has the schema of this package."""
        self._engine = engine
        self._moment: Session | None = None
        self._links = KeptLinks()
        self.kept = KeptReads()

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        """Return the reader; the end of the block closes it."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close all connections."""
        self.close()

    def baseline(
        self, engine: str, workload: str, cluster: str = "local", at: datetime | None = None
    ) -> dict[str, BoundsArm]:
        """Return the figures of the accepted baseline by query; queries without one are left out.

        Args:
            engine: The engine of the nights.
            workload: Their workload.
            cluster: Their cluster.
            at: The moment at which the acceptances count; None for now.
        """
        rows = self.accepted(engine, workload, cluster, at or datetime.now(UTC))
        newest = {query: row.night_id for query, row in rows.items()}
        arms = {run: self.arms(run) for run in set(newest.values())}
        return {query: arms[run][query] for query, run in newest.items() if query in arms[run]}

    def arms(self, run: str) -> dict[str, BoundsArm]:
        """Return by query the figures of a run that the gate judges.

        These are the figures of the candidate's right repetitions of the first round.
        """
        night, wanted = self.night(run), (Arm.CANDIDATE, FIRST_ROUND, Status.OK)
        right = [row for row in self.repetitions(run) if (row.arm, row.stage, row.status) == wanted]
        arms: dict[str, BoundsArm] = {}
        for query, rows in grouped(right, lambda row: row.query).items():
            repetitions = tuple(
                BoundsRepetition(
                    row.number, row.cpu_s_per_mevent_steady, row.cpu_s_per_mevent_application
                )
                for row in rows
            )
            arms[query] = BoundsArm(run, night.shape, repetitions)
        return arms

    def compatibility(self, run: str) -> list[CompatibilityRow]:
        """Return which queries survived the upgrade of a run, in the order of their checks."""
        return self._of(CompatibilityRow, run, CompatibilityRow.id)

    def experiments(self, run: str | None = None) -> list[ExperimentRow]:
        """Return the arms of an experiment's run in the order of measuring; None for all runs."""
        rows = select(ExperimentRow).order_by(ExperimentRow.id)
        return self._all(rows if run is None else rows.where(ExperimentRow.run == run))

    def night(self, run: str) -> NightRow:
        """Return a run by its exact name; UnknownNight if it is not recorded."""
        with self.reading() as session:
            return self._known(session, run)

    def recorded(self, run: str) -> bool:
        """Tell whether a run is recorded, by its exact name."""
        with self.reading() as session:
            return session.get(NightRow, run) is not None

    def nights(self, limit: int | None = None) -> list[NightRow]:
        """Return the runs, the newest first."""
        order = (NightRow.started.desc(), NightRow.id)
        return self._all(select(NightRow).order_by(*order).limit(limit))

    def found_red(self, run: str) -> bool:
        """Tell whether a recorded run is red; one that measured nothing is not: it did not run."""
        verdicts = self.verdicts(run)
        lacking = set(self.night(run).queries) - {row.query for row in verdicts}
        red = [row.value for row in verdicts if row.red] + [Value.MISSING] * len(lacking)
        nothing = set(red) == {Value.MISSING} and not self.repetitions(run)
        return bool(verdicts and red) and not nothing

    def find_run(self, name: str, engine: str | None = None) -> NightRow:
        """Return the run of a name, or of a part of a name that no other run has.

        ``latest`` is the newest run, of ``engine`` if it is given. UnknownNight names the runs with
        the nearest names.
        """
        if name == LATEST:
            return self._newest(engine)
        order = (NightRow.started.desc(), NightRow.id)
        with self.reading() as session:
            nights = session.execute(select(NightRow.id, NightRow.run_id).order_by(*order)).all()
        for matches in (
            [night for night in nights if name in (night.id, night.run_id)],
            [night for night in nights if name and name in night.id],
        ):
            if len(matches) == 1:
                return self.night(matches[0].id)
            if matches:
                raise UnknownNight(f"run {name!r} may be any of: {_names(matches)}; give the whole")
        if not nights:
            raise UnknownNight(f"run {name!r}: no run is recorded yet; `nexmark run` first")
        if not name:
            raise UnknownNight(f"which run? The newest are: {_names(nights)}; give one: --run NAME")
        known = {text: night for night in nights for text in night}
        close = difflib.get_close_matches(name, known, n=2 * LISTED, cutoff=0.3)
        near = list(dict.fromkeys(known[text] for text in close))
        raise UnknownNight(f"run {name!r} is not known; the nearest are: {_names(near or nights)}")

    def _newest(self, engine: str | None) -> NightRow:
        runs = select(NightRow).order_by(NightRow.started.desc(), NightRow.id)
        runs = runs if engine is None else runs.where(NightRow.engine == engine)
        for night in self._all(runs.limit(1)):
            return night
        known = {night.engine for night in self._all(select(NightRow))}
        if engine is None or not known:
            raise UnknownNight("run latest: no run is recorded yet; `nexmark run` first")
        raise UnknownNight(f"run latest: none of engine {engine!r}; {suggest(engine, known)}")

    def repetitions(
        self, run: str, queries: Collection[str] | None = None, leave_out: Sequence[str] = ()
    ) -> list[RepetitionRow]:
        """Return the repetitions of a run, ordered by query, arm, stage and number.

        ``queries`` are the queries to read, None for all; ``leave_out`` names columns that are not
        read.
        """
        order = ("query", "arm", "stage", "number")
        query = select(RepetitionRow).where(RepetitionRow.night_id == run)
        if queries is not None:
            query = query.where(RepetitionRow.query.in_(queries))
        query = query.order_by(*(getattr(RepetitionRow, name) for name in order))
        query = query.options(*(defer(getattr(RepetitionRow, name)) for name in leave_out))
        return self._all(query)

    def sample_series(self, repetition_id: int) -> list[SeriesRow]:
        """Return the CPU series of a repetition, one per host; ``cpu_series.unpack`` reads them."""
        where = SeriesRow.repetition_id == repetition_id
        return self._all(select(SeriesRow).where(where).order_by(SeriesRow.host))

    def validations(self, run: str) -> list[ValidationRow]:
        """Return the outcomes of the expectations on a run, by query."""
        return self._of(ValidationRow, run, ValidationRow.query)

    @kept_until_written
    def verdicts(self, run: str) -> list[Verdict]:
        """Return the verdicts on a run by the newest version of the gate that judged it."""
        query = select_verdicts().where(VerdictRow.night_id == run, by_newest_gate())
        with self.reading() as session:
            rows = session.execute(query.order_by(VerdictRow.id))
            return [verdict_of(row, row.build_id) for row in rows]

    @kept_until_written
    def acceptances(
        self,
        engine: str | None = None,
        workload: str | None = None,
        cluster: str | None = None,
        query: str | None = None,
    ) -> list[AcceptanceRow]:
        """Return the acceptances of a place, or of a query in it, oldest first; None for any."""
        rows = select(AcceptanceRow).order_by(AcceptanceRow.id)
        if engine is not None:
            rows = rows.where(AcceptanceRow.engine == engine)
        if workload is not None:
            rows = rows.where(AcceptanceRow.workload == workload)
        if cluster is not None:
            rows = rows.where(AcceptanceRow.cluster == cluster)
        if query is not None:
            rows = rows.where(AcceptanceRow.query == query)
        return self._all(rows)

    def accepted(
        self, engine: str, workload: str, cluster: str, at: datetime, query: str | None = None
    ) -> dict[str, AcceptanceRow]:
        """Return by query the newest acceptance that is neither expired nor withdrawn.

        Args:
            engine: The engine of the accepted nights.
            workload: Their workload.
            cluster: Their cluster.
            at: The moment; acceptances that were made later do not count.
            query: The query whose acceptance is read; None for all.
        """
        rows = self.acceptances(engine, workload, cluster, query)
        return {row.query: row for row in rows if row.accepted <= at and not row.over(at)}

    def paired_night(
        self, run: str, arms: tuple[str, str] = ARMS, queries: Sequence[str] | None = None
    ) -> MeasuredNight:
        """Return a run as the input of the gate; the first of ``arms`` is the candidate."""
        with self.reading() as session:
            return gate_rows.read_night(session, self._known(session, run), arms, queries)

    @kept_until_written
    def earlier(
        self,
        run: str,
        limit: int,
        queries: Collection[str] | None = None,
        metrics: Collection[str] | None = None,
    ) -> list[list[Verdict]]:
        """Return the verdicts of the last comparable nights that were judged, oldest night first.

        ``limit`` is the largest number of nights; see ``gate_rows.earlier``.
        """
        with self.reading() as session:
            return gate_rows.earlier(session, self._known(session, run), limit, queries, metrics)

    def history(
        self, query: str, metric: str | None = None, place: Mapping[str, str | None] | None = None
    ) -> QueryHistory:
        """Return one query and metric over the nights; see ``read_history``."""
        with self.reading() as session:
            return read_history(session, query, metric, place)

    @kept_until_written
    def links(
        self, run: str, metric: str, queries: Collection[str] | None = None
    ) -> "dict[str, list[Link]]":
        """Return what was measured of one build against another up to a run; see ``read_links``."""
        with self.reading() as session:
            return read_links(session, self._known(session, run), metric, queries, self._links)

    def build(self, build: str) -> BuildRow:
        """Return a build by its id; StoreError if it is not recorded."""
        with self.reading() as session:
            row = session.get(BuildRow, build)
        if row is None:
            raise StoreError(f"build {build!r} is not recorded")
        return row

    def plans(self, ids: Iterable[str]) -> dict[str, PlanRow]:
        """Return executed plans by their id; ids that are not recorded are left out."""
        rows = self._all(select(PlanRow).where(PlanRow.id.in_(set(ids))))
        return {row.id: row for row in rows}

    def builds(self, builds: Iterable[str]) -> list[BuildRow]:
        """Return the builds with these ids; ids that are not recorded are left out."""
        return self._all(select(BuildRow).where(BuildRow.id.in_(list(builds))))

    def build_names(self, builds: Iterable[str]) -> dict[str, str]:
        """Return the names of builds by their ids; builds that are not recorded are left out."""
        return {row.id: row.name for row in self.builds(set(builds))}

    def candidates(self, runs: Iterable[str]) -> dict[str, str]:
        """Return the id of the candidate build by run."""
        query = select(NightRow.id, NightRow.build_id).where(NightRow.id.in_(list(runs)))
        with self.reading() as session:
            return dict(session.execute(query).all())

    @kept_until_written
    def canaries(self, run: str) -> list[CanaryReading]:
        """Return the readings of the canary in a run, in the order of their times."""
        columns = (getattr(CanaryRow, name) for name in CanaryReading._fields)
        wanted = select(*columns).where(CanaryRow.night_id == run)
        with self.reading() as session:
            rows = session.execute(wanted.order_by(CanaryRow.taken, CanaryRow.id))
            return list(map(CanaryReading._make, rows))

    def broker_benches(self) -> list[BrokerBenchRow]:
        """Return the newest benchmark of each Kafka cluster, ordered by the cluster's name."""
        newest = select(func.max(BrokerBenchRow.id)).group_by(BrokerBenchRow.cluster)
        query = select(BrokerBenchRow).where(BrokerBenchRow.id.in_(newest))
        return self._all(query.order_by(BrokerBenchRow.cluster))

    def self_tests(
        self,
        engine: str,
        limit: int | None = None,
        *,
        version: int | None = None,
        dags: Collection[str] | None = None,
        run: str | None = None,
    ) -> list[SelfTestRow]:
        """Return the self-tests of one version of the gate, the newest night first.

        Args:
            engine: The engine of the nights.
            limit: The largest number of rows; None for all.
            version: The version of the gate; None for the newest that has self-tests.
            dags: The DAGs whose runs count; None for all.
            run: The only run that counts; None for all.
        """
        wanted = _self_tests(select(SelfTestRow), engine, limit, version, dags)
        return self._all(wanted if run is None else wanted.where(SelfTestRow.night_id == run))

    @kept_until_written
    def self_test_outcomes(
        self,
        engine: str,
        limit: int | None = None,
        *,
        version: int | None = None,
        dags: Collection[str] | None = None,
    ) -> list[SelfTestOutcome]:
        """Return the outcomes of the same self-tests, which takes a fraction of the time."""
        columns = (getattr(SelfTestRow, name) for name in SelfTestOutcome._fields)
        wanted = _self_tests(select(*columns), engine, limit, version, dags)
        with self.reading() as session:
            return list(map(SelfTestOutcome._make, session.execute(wanted)))

    def export(self, directory: Path, form: str = "parquet") -> Mapping[str, int]:
        """Write the whole database at one moment into a new directory; see ``export.export``."""
        with self._session(snapshot(self._engine)) as session:
            return export(session, directory, form)

    @contextmanager
    def at_one_moment(self) -> Iterator[Self]:
        """Yield a reader that sees the database as it is now, whatever other processes write.

        All that this reader reads is in one transaction. Rows that its methods record are in
        transactions of their own: other readers see them, this one does not. A block within such a
        block has the same moment.
        """
        if self._moment is not None:
            yield self
            return
        with self._session(snapshot(self._engine)) as session:
            reader = copy(self)
            reader._moment = session
            yield reader

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Yield a session to read with, in one transaction; its end detaches the rows."""
        if self._moment is None:
            with self._session(self._engine) as session:
                yield session
            return
        try:
            yield self._moment
        except (SQLAlchemyError, UnicodeEncodeError) as error:
            raise database_error(self._engine, error) from error
        finally:
            self._moment.expunge_all()

    def changes(self) -> int:
        """Return the number of transactions that have written to the database."""
        with self.reading() as session:
            return versions.changes(session.connection())

    def _all(self, query: Select[RowType]) -> list[RowType]:
        with self.reading() as session:
            return list(session.scalars(query))

    def _of(
        self, row: type[OfNight], run: str, *order: InstrumentedAttribute[object]
    ) -> list[OfNight]:
        """Return the rows of a kind that a night has, ordered by columns."""
        return self._all(select(row).where(row.night_id == run).order_by(*order))

    @contextmanager
    def _session(self, engine: Engine) -> Iterator[Session]:
        try:
            with Session(engine, expire_on_commit=False) as session, session.begin():
                yield session
        except (SQLAlchemyError, UnicodeEncodeError) as error:
            raise database_error(self._engine, error) from error

    @staticmethod
    def _known(session: Session, run: str) -> NightRow:
        night = session.get(NightRow, run)
        if night is None:
            raise UnknownNight(f"run {run!r} is not recorded; its preflight has to pass first")
        return night


def _self_tests(
    columns: Select[*_Columns],
    engine: str,
    limit: int | None,
    version: int | None,
    dags: Collection[str] | None,
) -> Select[*_Columns]:
    """Select columns of self-tests; see ``Reader.self_tests``."""
    tests = columns.join(NightRow, NightRow.id == SelfTestRow.night_id)
    tests = tests.where(NightRow.engine == engine)
    if dags is not None:
        tests = tests.where(NightRow.dag_id.in_(dags))
    newest = tests.with_only_columns(func.max(SelfTestRow.gate_version)).scalar_subquery()
    tests = tests.where(SelfTestRow.gate_version == (newest if version is None else version))
    return tests.order_by(NightRow.started.desc(), SelfTestRow.id.desc()).limit(limit)


def _names(nights: Sequence[Row[str, str]]) -> str:
    """Return the ids of the first nights for a message."""
    more = ", ..." if len(nights) > LISTED else ""
    return ", ".join(night.id for night in nights[:LISTED]) + more
