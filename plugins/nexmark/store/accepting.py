"""Which acceptance of a query counts, and what a person may accept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta

from nexmark.config.errors import suggest
from nexmark.store.errors import StoreError
from nexmark.store.models import Acceptance, Night

COUNTS, SUPERSEDED, EXPIRED, WITHDRAWN = "counts", "superseded", "expired", "withdrawn"


def counting(rows: Iterable[Acceptance], at: datetime) -> dict[str, Acceptance]:
    """Return by query the newest acceptance that was there at a moment and was not over.

    ``rows`` are those of one engine, workload and cluster, oldest first.
    """
    return {row.query: row for row in rows if row.accepted <= at and not row.over(at)}


def states(rows: Sequence[Acceptance], at: datetime) -> list[tuple[Acceptance, str]]:
    """Return each acceptance, as ordered, with what has become of it."""
    newest = {_place(row): row.id for row in rows if not row.over(at)}
    return [(row, _state(row, at, newest.get(_place(row)) == row.id)) for row in rows]


def parse_expiry(text: str, now: datetime) -> datetime | None:
    """Return the start of a day (2027-01-31, UTC), or the moment in so many days (30d).

    None for no text. StoreError for any other.
    """
    text = text.strip()
    if not text:
        return None
    try:
        if found := re.fullmatch(r"([0-9]{1,5})d", text):
            return now + timedelta(days=int(found[1]))
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except (ValueError, OverflowError):
        raise StoreError(
            f"expires: {text!r} is neither a day (2027-01-31) nor a number of days (30d); "
            "correct it, or leave it out for an acceptance without end"
        ) from None


def check_request(
    night: Night,
    known: Iterable[str],
    queries: Sequence[str],
    reason: str,
    expires: datetime | None,
    now: datetime,
) -> None:
    """Refuse an acceptance without reason, of an unknown query, or that is over already.

    And one of a night that tried a setting: its figures are not those of the build.
    """
    if night.candidate_conf:
        raise StoreError(
            f"run {night.id} is no baseline: {confs_of_candidate(night)}; put that into the"
            " engine's conf in include/conf/engines.yaml if it is to stay, and accept a night after"
        )
    if not reason.strip():
        raise StoreError(f"run {night.id}: an acceptance needs a reason; say why: REASON=...")
    if expires is not None and expires.tzinfo is None:
        expires = expires.astimezone()
    if expires is not None and expires <= now:
        raise StoreError(
            f"run {night.id}: an acceptance until {expires:%Y-%m-%d %H:%M} is over already;"
            " give a later day"
        )
    names = list(dict.fromkeys([*night.queries, *known]))
    for query in queries:
        if query not in names:
            raise StoreError(f"run {night.id} has no query {query!r}; {suggest(query, names)}")


def confs_of_candidate(night: Night) -> str:
    """Return what the candidate of a night has and the build has not; "" for nothing."""
    confs = ", ".join(f"{key}={value}" for key, value in (night.candidate_conf or {}).items())
    return f"its candidate alone had {confs}" if confs else ""


def check_withdrawal(row: Acceptance | None, number: int, reason: str) -> None:
    """Refuse to take back what is not there or was taken back before, or without a reason."""
    if row is None:
        raise StoreError(f"there is no acceptance {number}; `make acks` lists them with their ids")
    if row.withdrawal is not None:
        raise StoreError(
            f"acceptance {number} was withdrawn on {row.withdrawal.withdrawn:%Y-%m-%d} by "
            f"{row.withdrawal.who} already; there is nothing to do"
        )
    if not reason.strip():
        raise StoreError(f"acceptance {number}: a withdrawal needs a reason; say why: REASON=...")


def _state(row: Acceptance, at: datetime, newest: bool) -> str:
    if row.withdrawn(at):
        return WITHDRAWN
    if row.expired(at):
        return EXPIRED
    return COUNTS if newest else SUPERSEDED


def _place(row: Acceptance) -> tuple[str, str, str, str]:
    return row.engine, row.workload, row.cluster, row.query


__all__ = [
    "COUNTS",
    "EXPIRED",
    "SUPERSEDED",
    "WITHDRAWN",
    "check_request",
    "check_withdrawal",
    "confs_of_candidate",
    "counting",
    "parse_expiry",
    "states",
]
