"""The results database as the tasks and commands use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from types import MappingProxyType

from sqlalchemy import delete

from nexmark.store.accepting import check_request, check_withdrawal
from nexmark.store.errors import StoreError
from nexmark.store.judged import columns_of
from nexmark.store.models import Acceptance, CanaryRow, Night, SelfTest, VerdictRow, Withdrawal
from nexmark.store.paired import read_night
from nexmark.store.recording import Recorder, now
from nexmark.store.records import CPU, Accepted, CanaryRecord, SelfTestRecord
from nexmark.store.schema import open_engine
from nexmark.verdict import Verdict
from nexmark.verdict.nights import QueryVerdict


def open_store(url: str) -> Store:
    """Return the store at a database URL, creating or migrating the database first.

    Safe when several processes open it at once. StoreError when it cannot be reached or is of a
    newer schema.
    """
    return Store(open_engine(url))


class Store(Recorder):
    """Records nights and what came of them; every method that records is one transaction."""

    def record_canary(self, run: str, records: Sequence[CanaryRecord]) -> None:
        """Record readings, in place of those of the same host, group, moment and metric."""
        with self._writing() as session:
            self._known(session, run)
            for host, group, moment, metric in {
                (x.host, x.group, x.moment, x.metric) for x in records
            }:
                session.execute(
                    delete(CanaryRow).where(
                        CanaryRow.night_id == run,
                        CanaryRow.host == host,
                        CanaryRow.group == group,
                        CanaryRow.moment == moment,
                        CanaryRow.metric == metric,
                    )
                )
            session.add_all(CanaryRow(night_id=run, **asdict(record)) for record in records)

    def record_grade(self, run: str, grade: str, reason: str = "") -> None:
        """Record how far the hosts of a night can be trusted, and why not further."""
        with self._writing() as session:
            night = self._known(session, run)
            night.grade, night.grade_reason = grade, reason or None

    def record_self_test(self, run: str, record: SelfTestRecord) -> None:
        """Record what a version of the gate said of a known change, in place of what it had."""
        with self._writing() as session:
            self._known(session, run)
            session.execute(
                delete(SelfTest).where(
                    SelfTest.night_id == run,
                    SelfTest.kind == record.kind,
                    SelfTest.query == record.query,
                    SelfTest.gate_version == record.gate_version,
                )
            )
            session.add(SelfTest(night_id=run, judged=now(), **asdict(record)))

    def record_verdicts(
        self,
        run: str,
        verdicts: Sequence[Verdict | QueryVerdict],
        *,
        covered: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Record verdicts; those of the same version of the gate are replaced, others kept.

        ``covered`` has the id of the acceptance that covers the deciding verdict, by query.
        """
        with self._writing() as session:
            night = self._known(session, run)
            paired = any(isinstance(verdict, QueryVerdict) for verdict in verdicts)
            figures = read_night(session, night) if paired else None
            for verdict in verdicts:
                row = VerdictRow(night_id=run, judged=now(), **columns_of(verdict, figures))
                if row.decides is not False:
                    row.acceptance_id = covered.get(verdict.query)
                session.execute(
                    delete(VerdictRow).where(
                        VerdictRow.night_id == run,
                        VerdictRow.query == verdict.query,
                        VerdictRow.metric == verdict.metric,
                        VerdictRow.gate_version == verdict.gate_version,
                    )
                )
                session.add(row)

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
        """Make a run the baseline of its engine, workload and cluster, query by query.

        Only queries that were measured and proven right are accepted, all of them unless
        ``queries`` names some; the baselines of other queries stay. ``run`` may be any name that
        ``find_run`` knows. At ``expires`` the baseline before counts again; ``link`` is where it
        was decided. StoreError when nothing of it can be accepted.
        """
        night = self.find_run(run)
        measured = [row.query for row in self.repetitions(night.id)]
        check_request(night, measured, queries or (), reason, expires, now())
        asked = list(dict.fromkeys(queries or night.queries))
        left_out = self._not_acceptable(night, asked)
        accepted = tuple(query for query in asked if query not in left_out)
        if not accepted:
            why = "; ".join(f"{query}: {text}" for query, text in left_out.items())
            raise StoreError(f"run {night.id}: nothing to accept: {why}; accept another run")
        verdicts = {row.query: row for row in self.verdicts(night.id) if row.decides}
        with self._writing() as session:
            moment = now()
            for query in accepted:
                verdict = verdicts.get(query)
                row = Acceptance(
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
                    link=link or None,
                )
                session.add(row)
        return Accepted(night.id, accepted, left_out)

    def withdraw(self, number: int, who: str, reason: str) -> Acceptance:
        """Take an acceptance back, by its id, from now on; it stays on record, with the reason.

        The one before it counts again. StoreError when there is none, or it was taken back before.
        """
        with self._writing() as session:
            row = session.get(Acceptance, number)
            check_withdrawal(row, number, reason)
            assert row is not None
            row.withdrawal = Withdrawal(who=who, reason=reason, withdrawn=now())
        return row

    def _not_acceptable(self, night: Night, queries: Sequence[str]) -> dict[str, str]:
        """Return why a query of a run cannot be a baseline."""
        problems = {**self.missing(night.id), **self.invalid(night.id)}
        arms = self.arms(night.id)
        for query in queries:
            done = len(arms[query].repetitions) if query in arms else 0
            if done < night.repetitions:
                problems.setdefault(query, f"{done} of {night.repetitions} repetitions measured")
        return {query: problems[query] for query in queries if query in problems}


__all__ = ["Store", "open_store"]
