"""Converts a verdict to its row in the database, and a row back to the verdict."""

from collections import namedtuple
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select, tuple_
from sqlalchemy.orm import aliased

from nexmark.model import Mode
from nexmark.store.table_rows import NightRow, VerdictRow
from nexmark.verdict.verdict import Verdict

COLUMNS = (
    *VerdictRow.__table__.columns,
    VerdictRow.acceptance_withdrawn.label("acceptance_withdrawn"),
)
"""The columns of a verdict. Reading them alone takes half the time of reading rows."""
_with_names = namedtuple("_Columns", [each.key for each in COLUMNS])._make  # type: ignore[attr-defined]
"""Gives values of ``COLUMNS`` their names; a row takes ten times as long to return a value."""


def row_of(verdict: Verdict, run: str, judged: datetime) -> VerdictRow:
    """Return a verdict on a run as the row that is recorded at the moment ``judged``."""
    by_bounds = verdict.mode == Mode.BOUNDS
    return VerdictRow(
        night_id=run,
        query=verdict.query,
        metric=verdict.metric,
        gate_version=verdict.gate_version,
        value=verdict.value,
        reason=verdict.reason,
        mode=verdict.mode,
        decides=verdict.decides,
        bound=verdict.bound,
        ratio=verdict.ratio,
        candidate=verdict.candidate,
        baseline=verdict.baseline,
        basis=verdict.basis,
        baseline_run=verdict.baseline_run,
        repetitions=verdict.repetitions,
        lo=verdict.lo,
        hi=verdict.hi,
        mde=verdict.mde,
        shift=verdict.shift,
        spread=verdict.spread,
        noise=verdict.noise,
        pairs=None if by_bounds else verdict.pairs,
        fresh_pairs=None if by_bounds else verdict.fresh_pairs,
        further_pairs=verdict.further_pairs,
        drift_slower=verdict.drift_slower,
        drift_faster=verdict.drift_faster,
        baseline_build=verdict.baseline_build or None,
        acceptance_id=verdict.acceptance,
        judged=judged,
    )


def verdict_of(selected: Sequence[Any], build: str) -> Verdict:
    """Return the verdict of a row that begins with ``COLUMNS``.

    A verdict whose acceptance was withdrawn is not accepted any more. ``build`` is the candidate
    build of its night.
    """
    row: Any = _with_names(selected[: len(COLUMNS)])
    return Verdict(
        night=row.night_id,
        query=row.query,
        metric=row.metric,
        value=row.value,
        reason=row.reason,
        mode=row.mode,
        gate_version=row.gate_version,
        decides=row.decides,
        ratio=row.ratio,
        lo=row.lo,
        hi=row.hi,
        mde=row.mde,
        shift=row.shift,
        spread=row.spread,
        pairs=row.pairs or 0,
        fresh_pairs=row.fresh_pairs or 0,
        further_pairs=row.further_pairs,
        noise=row.noise,
        drift_slower=row.drift_slower,
        drift_faster=row.drift_faster,
        baseline_build=row.baseline_build or "",
        candidate=row.candidate,
        baseline=row.baseline,
        basis=row.basis,
        repetitions=row.repetitions,
        bound=row.bound,
        baseline_run=row.baseline_run,
        build=build,
        acceptance=None if row.acceptance_withdrawn else row.acceptance_id,
        judged=row.judged,
    )


@cache
def select_verdicts() -> Select[*tuple[Any, ...]]:
    """Return a query for verdicts, each with the candidate build of its night.

    It is made once: to make it takes as long as the database takes to read a night's verdicts.
    """
    columns = select(*COLUMNS, NightRow.build_id).select_from(VerdictRow)
    return columns.join(NightRow, NightRow.id == VerdictRow.night_id)


@cache
def by_newest_gate() -> ColumnElement[bool]:
    """Return the condition that a verdict is by the newest gate that judged its night.

    It is made once, as ``select_verdicts`` is.
    """
    return newest_gate_of(VerdictRow)


def newest_gate_of(row: type[VerdictRow]) -> ColumnElement[bool]:
    """Return the same condition of an alias of the rows of verdicts."""
    other = aliased(VerdictRow)
    newest = select(func.max(other.gate_version)).where(other.night_id == row.night_id)
    return row.gate_version == newest.correlate(row).scalar_subquery()


def of_newest_gate(runs: Collection[str]) -> ColumnElement[bool]:
    """Return the condition that a verdict is on one of the runs, by the newest gate of this run."""
    newest = (
        select(VerdictRow.night_id, func.max(VerdictRow.gate_version))
        .where(VerdictRow.night_id.in_(runs))
        .group_by(VerdictRow.night_id)
    )
    return tuple_(VerdictRow.night_id, VerdictRow.gate_version).in_(newest)
