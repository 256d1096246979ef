"""The results database as the tasks and commands use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sqlalchemy import delete, tuple_

from nexmark.model import CPU, Value
from nexmark.store.accepting import check_link, check_request, check_withdrawal, check_words
from nexmark.store.gate_input import read_night
from nexmark.store.records import (
    Accepted,
    CanaryRecord,
    CompatibilityRecord,
    ExperimentRecord,
    SelfTestRecord,
)
from nexmark.store.schema import open_engine
from nexmark.store.store_error import Refused
from nexmark.store.table_rows import (
    AcceptanceRow,
    BrokerBenchRow,
    CanaryRow,
    CompatibilityRow,
    ExperimentRow,
    NightRow,
    SelfTestRow,
    VerdictRow,
    WithdrawalRow,
)
from nexmark.store.verdict_rows import columns_of
from nexmark.store.writing import Recorder, now, replace_row
from nexmark.verdict import Verdict
from nexmark.verdict.measured_night import QueryVerdict

MOST_ROWS = 2**31 - 1
"""No table has an id beyond that."""


def open_store(url: str, *, create: bool = True, patience_s: float | None = None) -> Store:
    """Return the store at a database URL, migrating the database first, or creating it if need be.

    Safe when several processes open it at once. Raises StoreError if the database cannot be
    reached, is locked for longer than ``patience_s`` (a night's patience if None), has a newer
    schema, or does not exist and ``create`` is false.
    """
    return Store(open_engine(url, create=create, patience_s=patience_s))


class Store(Recorder):
    """Records nights and what came of them; every method that records is one transaction."""

    def record_canary(self, run: str, records: Sequence[CanaryRecord]) -> None:
        """Record readings; each replaces one of the same host, group, moment and metric."""
        with self._writing() as session:
            self._known(session, run)
            what = tuple_(CanaryRow.host, CanaryRow.group, CanaryRow.moment, CanaryRow.metric)
            given = {(x.host, x.group, x.moment, x.metric) for x in records}
            session.execute(delete(CanaryRow).where(CanaryRow.night_id == run, what.in_(given)))
            session.add_all(CanaryRow(night_id=run, **asdict(record)) for record in records)

    def record_grade(self, run: str, grade: str, reason: str = "") -> None:
        """Record how far the hosts of a night can be trusted, and why not further."""
        with self._writing() as session:
            night = self._known(session, run)
            night.grade, night.grade_reason = grade, reason or None

    def record_broker_bench(self, cluster: str, figures: Mapping[str, Any]) -> None:
        """Record what the benchmark of a Kafka found."""
        with self._writing() as session:
            session.add(BrokerBenchRow(cluster=cluster, measured=now(), figures=dict(figures)))

    def record_compatibility(self, run: str, records: Sequence[CompatibilityRecord]) -> None:
        """Record whether running queries survive, in place of all that was recorded before."""
        with self._writing() as session:
            self._known(session, run)
            session.execute(delete(CompatibilityRow).where(CompatibilityRow.night_id == run))
            checked = now()
            session.add_all(
                CompatibilityRow(night_id=run, checked=checked, **asdict(x)) for x in records
            )

    def record_experiment(self, run: str, records: Sequence[ExperimentRecord]) -> None:
        """Record a measurement of an experiment, in place of what was recorded of it before."""
        with self._writing() as session:
            session.execute(delete(ExperimentRow).where(ExperimentRow.run == run))
            measured = now()
            session.add_all(ExperimentRow(run=run, measured=measured, **asdict(x)) for x in records)

    def record_self_test(self, run: str, record: SelfTestRecord) -> None:
        """Record a gate version's verdict on a known change; replaces its earlier verdict."""
        with self._writing() as session:
            self._known(session, run)
            row = SelfTestRow(night_id=run, judged=now(), **asdict(record))
            replace_row(session, row, ("night_id", "kind", "query", "gate_version"))

    def record_verdicts(
        self,
        run: str,
        verdicts: Sequence[Verdict | QueryVerdict],
        *,
        covered: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Record all verdicts on a run in place of all that this version of the gate had given.

        Verdicts of other versions are kept; where this fails, the old ones stay. ``covered`` has
        the id of the acceptance that covers the deciding verdict, by query.
        """
        with self._writing() as session:
            night = self._known(session, run)
            paired = any(isinstance(verdict, QueryVerdict) for verdict in verdicts)
            measured = read_night(session, night) if paired else None
            versions = {verdict.gate_version for verdict in verdicts}
            session.execute(
                delete(VerdictRow).where(
                    VerdictRow.night_id == run, VerdictRow.gate_version.in_(versions)
                )
            )
            for verdict in verdicts:
                row = VerdictRow(night_id=run, judged=now(), **columns_of(verdict, measured))
                if row.decides is not False:
                    row.acceptance_id = covered.get(verdict.query)
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
        was decided. Refused when nothing of it can be accepted.
        """
        check_words("reason", reason)
        check_words("by", who)
        link = check_link(link)
        night = self.find_run(run)
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
            moment = now()
            for query in accepted:
                verdict = verdicts.get(query)
                row = AcceptanceRow(
                    **{name: getattr(night, name) for name in ("engine", "workload", "cluster")},
                    **{"query": query, "night_id": night.id, "build_id": night.build_id},
                    **{"who": who, "reason": reason, "accepted": moment, "link": link},
                    metric=verdict.metric if verdict else CPU,
                    size=verdict.ratio if verdict else None,
                    expires=expires,
                )
                session.add(row)
        return Accepted(night.id, accepted, left_out)

    def withdraw(self, number: int, who: str, reason: str) -> AcceptanceRow:
        """Take an acceptance back, by its id, from now on; it stays on record, with the reason.

        The one before it counts again. Refused when there is none, or it was taken back before.
        """
        check_words("reason", reason)
        check_words("by", who)
        with self._writing() as session:
            row = session.get(AcceptanceRow, number) if 0 < number <= MOST_ROWS else None
            check_withdrawal(row, number, reason)
            assert row is not None
            row.withdrawal = WithdrawalRow(who=who, reason=reason, withdrawn=now())
        return row

    def _not_acceptable(self, night: NightRow, queries: Sequence[str]) -> dict[str, str]:
        """Return why a query of a run cannot be a baseline.

        One that does not survive the upgrade can be: later nights are compared with this build.
        """
        bound = {
            row.query: row.reason
            for row in self.verdicts(night.id)
            if row.decides and row.value == Value.SOURCE_BOUND
        }
        problems = {**bound, **self.missing(night.id), **self.wrong(night.id)}
        arms = self.arms(night.id)
        for query in queries:
            done = len(arms[query].repetitions) if query in arms else 0
            if done < night.repetitions:
                problems.setdefault(query, f"{done} of {night.repetitions} repetitions measured")
        return {query: problems[query] for query in queries if query in problems}
