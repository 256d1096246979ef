"""A night as the gate takes it, made of the raw rows of the store.

CPU time is taken on one basis for a query: the steady state where every repetition of both arms
has it, else the whole application. A wrong result in either arm makes the query invalid; one that
did not run is missing where it was to be one of the first pairs. Fresh pairs that are not there
are for the gate to see: it neither confirms nor clears by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from nexmark.store.models import CanaryRow, Night, Repetition, Validation
from nexmark.store.records import (
    BASELINE,
    CANDIDATE,
    CPU,
    FAILED,
    FIRST,
    FRESH,
    INVALID,
    JUDGED,
    OK,
)
from nexmark.verdict import nights
from nexmark.verdict.nights import Canary, Measured, Pair

ARMS = (CANDIDATE, BASELINE)
STEADY, APPLICATION = "steady", "application"
STATE = "state_bytes_max"
INFORMING = ("wall_s", "batch_ms_p99", STATE)
_CPU_ON = {basis: f"{CPU}_{basis}" for basis in (STEADY, APPLICATION)}
_KEY = ("query", "arm", "stage", "number", "status", "reason")
_COLUMNS = (*_KEY, *_CPU_ON.values(), *INFORMING)

Row = Any
"""A row with the columns above."""


@dataclass(frozen=True)
class Figures:
    """What the gate may know of a night, and the basis of each query's CPU time."""

    night: nights.Night
    bases: Mapping[str, str]

    def medians(self, query: str, metric: str, fresh: bool) -> tuple[float | None, float | None]:
        """Return the medians of both arms over the fresh pairs, or over the first ones."""
        for one in self.night.measured:
            if (one.query, one.metric) == (query, metric):
                pairs = one.fresh if fresh else one.pairs
                whole = [pair for pair in pairs if pair.complete] or pairs
                return (
                    _median(pair.candidate for pair in whole),
                    _median(pair.baseline for pair in whole),
                )
        return None, None


def read_night(
    session: Session,
    night: Night,
    arms: tuple[str, str] = ARMS,
    queries: Sequence[str] | None = None,
) -> Figures:
    """Return a night with the first arm as candidate and the second as baseline.

    Of all its queries, unless ``queries`` names some.
    """
    wanted = list(night.queries) if queries is None else list(queries)
    rows = _repetitions(session, night.id, arms, queries)
    validations = _validations(session, night.id, arms, queries)
    by_query: dict[str, list[Row]] = {}
    for row in rows:
        by_query.setdefault(row.query, []).append(row)
    measured: list[Measured] = []
    bases: dict[str, str] = {}
    places = {query: place for place, query in enumerate(wanted)}
    for query, own in sorted(by_query.items(), key=lambda x: places.get(x[0], len(places))):
        used = [row for row in own if row.status == OK]
        if used:
            bases[query] = _basis(used)
            measured += _measured(query, used, arms, bases[query])
    canary = _canaries(session, night.id)
    grouped = {reading.group for reading in canary}
    return Figures(
        nights.Night(
            night.id,
            tuple(measured),
            canary,
            expected=tuple(wanted),
            asked=night.repetitions,
            invalid=_invalid(rows, validations, arms),
            missing=_missing(rows),
            baseline={query: str(build) for query, build in (night.baselines or {}).items()},
            groups={query: query for query in wanted if query in grouped},
        ),
        bases,
    )


def _repetitions(
    session: Session, run: str, arms: Iterable[str], queries: Sequence[str] | None
) -> Sequence[Row]:
    columns = [getattr(Repetition, name) for name in _COLUMNS]
    query = select(*columns).where(
        Repetition.night_id == run, Repetition.arm.in_(arms), Repetition.stage.in_(JUDGED)
    )
    if queries is not None:
        query = query.where(Repetition.query.in_(queries))
    order = (Repetition.query, Repetition.stage, Repetition.number, Repetition.arm.desc())
    return session.execute(query.order_by(*order)).all()


def _validations(
    session: Session, run: str, arms: Iterable[str], queries: Sequence[str] | None
) -> Sequence[Row]:
    columns = (Validation.query, Validation.arm, Validation.success, Validation.failures)
    query = select(*columns).where(Validation.night_id == run, Validation.arm.in_(arms))
    if queries is not None:
        query = query.where(Validation.query.in_(queries))
    return session.execute(query.order_by(Validation.query, Validation.arm.desc())).all()


def _basis(used: Sequence[Row]) -> str:
    steady = all(getattr(row, _CPU_ON[STEADY]) is not None for row in used)
    return STEADY if steady else APPLICATION


def _measured(
    query: str, used: Sequence[Row], arms: tuple[str, str], basis: str
) -> Iterable[Measured]:
    """Return each metric that was measured; state only where every repetition holds some."""
    columns = {CPU: _CPU_ON[basis], **{metric: metric for metric in INFORMING}}
    for metric, column in columns.items():
        values = [getattr(row, column) for row in used]
        stateless = metric == STATE and not all(value and value > 0 for value in values)
        if stateless or all(value is None for value in values):
            continue
        yield Measured(
            query,
            metric,
            _pairs(used, arms, column, lambda row: row.stage == FIRST),
            _pairs(used, arms, column, lambda row: row.stage == FRESH),
            basis if metric == CPU else "",
        )


def _pairs(
    used: Sequence[Row], arms: tuple[str, str], column: str, of_stage: Callable[[Row], bool]
) -> tuple[Pair, ...]:
    found: dict[int, dict[str, float | None]] = {}
    for row in used:
        if of_stage(row):
            found.setdefault(row.number, {})[row.arm] = getattr(row, column)
    return tuple(
        Pair(number, own.get(arms[0]), own.get(arms[1])) for number, own in sorted(found.items())
    )


def _invalid(
    rows: Sequence[Row], validations: Sequence[Row], arms: tuple[str, str]
) -> dict[str, str]:
    """Return why a query is not proven right, by query.

    The candidate has to be verified. The baseline was when it was accepted.
    """
    reasons: dict[str, str] = {}
    for row in validations:
        if not row.success:
            why = " | ".join(map(str, row.failures)) or "its result is wrong"
            whose = "" if row.arm == arms[0] else f"{row.arm}: "
            reasons.setdefault(row.query, whose + why)
    verified = {(row.query, row.arm) for row in validations}
    for row in rows:
        if row.status == INVALID:
            reasons.setdefault(row.query, f"{_named(row)}: {row.reason}")
        elif row.status == OK and row.arm == CANDIDATE and (row.query, row.arm) not in verified:
            reasons.setdefault(row.query, "its result was not verified")
    return reasons


def _missing(rows: Sequence[Row]) -> dict[str, str]:
    failed = [row for row in rows if row.status == FAILED and row.stage == FIRST]
    return {row.query: f"{_named(row)}: {row.reason}" for row in reversed(failed)}


def _named(row: Row) -> str:
    fresh = "fresh " if row.stage == FRESH else ""
    return f"{row.arm} {fresh}repetition {row.number}"


def _canaries(session: Session, run: str) -> tuple[Canary, ...]:
    query = select(CanaryRow).where(CanaryRow.night_id == run)
    readings: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for row in session.scalars(query.order_by(CanaryRow.taken, CanaryRow.id)):
        moments = readings.setdefault((row.metric, row.host, row.group), {})
        moments.setdefault(row.moment, []).append(math.nan if row.value is None else row.value)
    return tuple(
        Canary(metric, tuple(own.get("before", ())), tuple(own.get("after", ())), host, group)
        for (metric, host, group), own in sorted(readings.items())
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


__all__ = ["APPLICATION", "ARMS", "STEADY", "Figures", "read_night"]
