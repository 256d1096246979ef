"""What the results database tells: runs, repetitions, verdicts and baselines."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, defer

from nexmark.attribution.observed import Observed
from nexmark.store import judged
from nexmark.store.accepting import counting
from nexmark.store.connecting import snapshot
from nexmark.store.errors import StoreError, database_error
from nexmark.store.export import export
from nexmark.store.models import (
    Acceptance,
    Build,
    CanaryRow,
    Night,
    Plan,
    Repetition,
    SampleSeries,
    SelfTest,
    Validation,
    VerdictRow,
)
from nexmark.store.paired import ARMS, read_night
from nexmark.store.parts import read_observed
from nexmark.store.query_history import History, read_history
from nexmark.store.records import CANDIDATE, CPU, FAILED, FIRST, INVALID, JUDGED
from nexmark.verdict import Arm
from nexmark.verdict import Repetition as Figures
from nexmark.verdict.nights import Night as JudgedNight
from nexmark.verdict.nights import QueryVerdict

LISTED = 5


class Reader:
    """Reads the store. Rows that are returned are detached: keep them as long as needed.

    A run is named ``<dag_id>/<run_id>``. All methods raise StoreError when the database fails.
    """

    def __init__(self, engine: Engine) -> None:
        """Take over an engine whose database has the schema of this package."""
        self._engine = engine

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        """Return itself; closes at the end of the block."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close all connections."""
        self.close()

    def baseline(
        self, engine: str, workload: str, cluster: str = "local", at: datetime | None = None
    ) -> dict[str, Arm]:
        """Return the accepted baseline of each query that has one (at a moment; now).

        Every query has its own: the run accepted for it last, where that has not expired.
        """
        rows = self.accepted(engine, workload, cluster, at or datetime.now(UTC))
        newest = {query: row.night_id for query, row in rows.items()}
        arms = {run: self.arms(run) for run in set(newest.values())}
        return {query: arms[run][query] for query, run in newest.items() if query in arms[run]}

    def arms(self, run: str, arm: str = CANDIDATE) -> dict[str, Arm]:
        """Return the figures of the right first repetitions of a run by query, to be judged."""
        night = self.night(run)
        rows: dict[str, list[Repetition]] = {}
        for row in self.repetitions(run):
            if row.arm == arm and row.ok and row.stage == FIRST:
                rows.setdefault(row.query, []).append(row)
        return {query: Arm(run, night.shape, _figures(own)) for query, own in rows.items()}

    def invalid(self, run: str, arm: str = CANDIDATE) -> dict[str, str]:
        """Return why a query that was run is not proven right, by query; others are right.

        A failed validation, a repetition with a wrong result, or no validation at all.
        """
        validations = {x.query: x for x in self.validations(run) if x.arm == arm}
        reasons = {
            query: " | ".join(map(str, validation.failures)) or "its result is wrong"
            for query, validation in validations.items()
            if not validation.success
        }
        for row in (x for x in self.repetitions(run) if x.stage in JUDGED):
            if row.arm == arm and row.status == INVALID:
                reasons.setdefault(row.query, f"repetition {row.number}: {row.reason}")
            elif row.arm == arm and row.ok and row.query not in validations:
                reasons.setdefault(row.query, "its result was not verified")
        return reasons

    def missing(self, run: str, arm: str = CANDIDATE) -> dict[str, str]:
        """Return why there is no measurement where a first repetition failed, by query."""
        rows = [x for x in self.repetitions(run) if x.arm == arm and x.stage == FIRST]
        failed = [x for x in rows if x.status == FAILED]
        return {x.query: f"repetition {x.number}: {x.reason}" for x in reversed(failed)}

    def night(self, run: str) -> Night:
        """Return a run by its exact name; StoreError when it is not recorded."""
        with self._reading() as session:
            return self._known(session, run)

    def nights(self, limit: int | None = None) -> list[Night]:
        """Return the newest runs first."""
        order = (Night.started.desc(), Night.id)
        with self._reading() as session:
            return list(session.scalars(select(Night).order_by(*order).limit(limit)))

    def find_run(self, name: str) -> Night:
        """Return the run a person means by a name: the whole of it, or what makes it unique.

        StoreError naming the nearest runs when there is none or more than one.
        """
        nights = self.nights()
        for matches in (
            [night for night in nights if name in (night.id, night.run_id)],
            [night for night in nights if name and name in night.id],
        ):
            if len(matches) == 1:
                return matches[0]
            if matches:
                raise StoreError(f"run {name!r} may be any of: {_names(matches)}; give the whole")
        if not nights:
            raise StoreError(f"run {name!r} is not known: no run is recorded yet; `make run` first")
        if not name:
            raise StoreError(f"which run? The newest are: {_names(nights)}; give RUN=...")
        known = {text: night for night in nights for text in (night.id, night.run_id)}
        close = difflib.get_close_matches(name, known, n=2 * LISTED, cutoff=0.3)
        near = list(dict.fromkeys(known[text] for text in close))
        raise StoreError(f"run {name!r} is not known; the nearest are: {_names(near or nights)}")

    def repetitions(self, run: str, lists: bool = True) -> list[Repetition]:
        """Return all repetitions of a run, as asked for: by query, arm, stage and number.

        ``lists`` False: without batches and confs, most of the bytes.
        """
        order = (Repetition.query, Repetition.arm, Repetition.stage, Repetition.number)
        where = Repetition.night_id == run
        with self._reading() as session:
            query = select(Repetition).where(where).order_by(*order)
            if not lists:
                query = query.options(defer(Repetition.batch_list), defer(Repetition.confs))
            return list(session.scalars(query))

    def sample_series(self, repetition_id: int) -> list[SampleSeries]:
        """Return the CPU series of a repetition, one per host; ``series.unpack`` reads them."""
        where = SampleSeries.repetition_id == repetition_id
        query = select(SampleSeries).where(where).order_by(SampleSeries.host)
        with self._reading() as session:
            return list(session.scalars(query))

    def validations(self, run: str) -> list[Validation]:
        """Return what the expectations said of a run."""
        query = select(Validation).where(Validation.night_id == run).order_by(Validation.query)
        with self._reading() as session:
            return list(session.scalars(query))

    def verdicts(self, run: str) -> list[VerdictRow]:
        """Return the verdicts on a run by the newest version of the gate that judged it."""
        query = select(VerdictRow).where(VerdictRow.night_id == run).order_by(VerdictRow.id)
        with self._reading() as session:
            rows = list(session.scalars(query))
        newest = max((row.gate_version for row in rows), default=0)
        return [row for row in rows if row.gate_version == newest]

    def acceptances(
        self, engine: str | None = None, workload: str | None = None, cluster: str | None = None
    ) -> list[Acceptance]:
        """Return the acceptances of an engine, workload and cluster (of all), oldest first."""
        query = select(Acceptance).order_by(Acceptance.id)
        wanted = {"engine": engine, "workload": workload, "cluster": cluster}
        query = query.filter_by(**{name: x for name, x in wanted.items() if x is not None})
        with self._reading() as session:
            return list(session.scalars(query))

    def accepted(
        self, engine: str, workload: str, cluster: str, at: datetime
    ) -> dict[str, Acceptance]:
        """Return the acceptance that counts at a moment, by query.

        The newest one that is neither expired nor withdrawn: where one ends, the one before counts
        again.
        """
        return counting(self.acceptances(engine, workload, cluster), at)

    def paired_night(
        self,
        run: str,
        arms: tuple[str, str] = ARMS,
        queries: Sequence[str] | None = None,
    ) -> JudgedNight:
        """Return a run as the gate takes it, the first of ``arms`` as candidate.

        ``("control", "baseline")`` and ``("slowed", "baseline")`` are the pairs of the self-test.
        """
        with self._reading() as session:
            return read_night(session, self._known(session, run), arms, queries).night

    def observed(
        self, run: str, query: str, arms: Sequence[str] = ARMS
    ) -> dict[str, list[Observed]]:
        """Return by arm the repetitions of a query that count, with what a change may be due to."""
        with self._reading() as session:
            return read_observed(session, run, query, arms)

    def plan_hashes(self, run: str) -> dict[str, dict[str, frozenset[str]]]:
        """Return the hashes of the operators that ran, by query and arm."""
        columns = (Repetition.query, Repetition.arm, Repetition.plan_skeleton_hash)
        where = (Repetition.night_id == run, Repetition.plan_skeleton_hash.is_not(None))
        found: dict[str, dict[str, frozenset[str]]] = {}
        with self._reading() as session:
            for query, arm, skeleton in session.execute(select(*columns).where(*where).distinct()):
                own = found.setdefault(query, {})
                own[arm] = own.get(arm, frozenset()) | {str(skeleton)}
        return found

    def query_verdicts(self, run: str) -> list[QueryVerdict]:
        """Return the verdicts on a run as the gate gave them, by its newest version."""
        with self._reading() as session:
            night = self._known(session, run)
            return judged.verdicts_of(session, [run], night.mode)[run]

    def earlier(
        self, run: str, limit: int, queries: Collection[str] | None = None
    ) -> list[list[QueryVerdict]]:
        """Return the verdicts of the last comparable nights before a run, oldest first.

        Comparable: the same engine, workload, cluster, shape and mode. Nights that were not judged
        are left out and not counted. ``queries``: the verdicts on these only.
        """
        with self._reading() as session:
            return judged.earlier(session, self._known(session, run), limit, queries)

    def history(
        self, query: str, metric: str = CPU, place: Mapping[str, str | None] | None = None
    ) -> History:
        """Return one query and metric over the nights: verdicts, change points, acceptances.

        What ``place`` (engine, workload, cluster) leaves open is that of the newest night.
        """
        with self._reading() as session:
            return read_history(session, query, metric, place)

    def build(self, build: str) -> Build:
        """Return a build by its id; StoreError when it is not recorded."""
        with self._reading() as session:
            found = session.get(Build, build)
        if found is None:
            raise StoreError(f"build {build!r} is not recorded")
        return found

    def plans(self, ids: Iterable[str]) -> dict[str, Plan]:
        """Return executed plans by their id; one that is not recorded is left out."""
        query = select(Plan).where(Plan.id.in_(sorted(set(ids))))
        with self._reading() as session:
            return {row.id: row for row in session.scalars(query)}

    def builds(self, builds: Iterable[str]) -> list[Build]:
        """Return those of the builds that are recorded."""
        with self._reading() as session:
            return list(session.scalars(select(Build).where(Build.id.in_(list(builds)))))

    def candidates(self, runs: Iterable[str]) -> dict[str, str]:
        """Return the candidate build of each run."""
        query = select(Night.id, Night.build_id).where(Night.id.in_(list(runs)))
        with self._reading() as session:
            return {run: build for run, build in session.execute(query).all()}  # noqa: C416

    def canaries(self, run: str) -> list[CanaryRow]:
        """Return the readings of the canary in a run, in the order they were taken."""
        query = select(CanaryRow).where(CanaryRow.night_id == run)
        with self._reading() as session:
            return list(session.scalars(query.order_by(CanaryRow.taken, CanaryRow.id)))

    def self_tests(self, engine: str | None = None, limit: int | None = None) -> list[SelfTest]:
        """Return what the gate said of known changes, of an engine or of all, newest first."""
        query = select(SelfTest).join(Night, Night.id == SelfTest.night_id)
        if engine is not None:
            query = query.where(Night.engine == engine)
        order = (Night.started.desc(), SelfTest.id.desc())
        with self._reading() as session:
            return list(session.scalars(query.order_by(*order).limit(limit)))

    def export(self, directory: Path, form: str = "parquet") -> Mapping[str, int]:
        """Write everything into a new or empty directory as it is at this moment.

        ``form`` is parquet or csv. Returns the number of rows (of nights) by file.
        """
        with self._session(snapshot(self._engine)) as session:
            return export(session, directory, form)

    def reading(self) -> AbstractContextManager[Session]:
        """Open a session to read with, in one transaction."""
        return self._reading()

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        with self._session(self._engine) as session:
            yield session

    @contextmanager
    def _session(self, engine: Engine) -> Iterator[Session]:
        try:
            with Session(engine, expire_on_commit=False) as session, session.begin():
                yield session
        except SQLAlchemyError as error:
            raise database_error(self._engine, error) from error

    @staticmethod
    def _known(session: Session, run: str) -> Night:
        night = session.get(Night, run)
        if night is None:
            raise StoreError(f"run {run!r} is not recorded; its preflight has to pass first")
        return night


def _names(nights: Sequence[Night]) -> str:
    more = ", ..." if len(nights) > LISTED else ""
    return ", ".join(night.id for night in nights[:LISTED]) + more


def _figures(rows: Sequence[Repetition]) -> tuple[Figures, ...]:
    return tuple(
        Figures(row.number, row.cpu_s_per_mevent_steady, row.cpu_s_per_mevent_application)
        for row in rows
    )
