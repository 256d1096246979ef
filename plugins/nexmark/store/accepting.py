"""Finds the acceptance of a query that counts, and checks a person's acceptance and its text.

Others read what a person writes, so it has no hidden characters.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from operator import attrgetter

from nexmark.errors import suggest
from nexmark.secrets import shown_confs
from nexmark.store.store_error import Refused
from nexmark.store.table_rows import AcceptanceRow, NightRow

COUNTS, SUPERSEDED, EXPIRED, WITHDRAWN = "counts", "superseded", "expired", "withdrawn"


def states(rows: Sequence[AcceptanceRow], at: datetime) -> list[tuple[AcceptanceRow, str]]:
    """Return each acceptance with its state, in the given order."""
    place = attrgetter("engine", "workload", "cluster", "query")
    newest = {place(row): row.id for row in rows if not row.over(at)}
    found = []
    for row in rows:
        state = COUNTS if newest.get(place(row)) == row.id else SUPERSEDED
        state = EXPIRED if row.expired(at) else state
        found.append((row, WITHDRAWN if row.withdrawn(at) else state))
    return found


def parse_expiry(text: str, now: datetime) -> datetime | None:
    """Return the start of a day (2027-01-31, UTC), ``now`` plus days (30d), or None for ""."""
    text = text.strip()
    if not text:
        return None
    try:
        if found := re.fullmatch(r"([0-9]{1,5})d", text):
            return now + timedelta(days=int(found[1]))
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except (ValueError, OverflowError):
        raise Refused(
            f"expires: {text!r} is neither a day (2027-01-31) nor a number of days (30d); "
            "correct it, or leave it out for an acceptance without end"
        ) from None


def check_request(
    night: NightRow,
    known: Iterable[str],
    queries: Sequence[str],
    reason: str,
    expires: datetime | None,
    now: datetime,
) -> None:
    """Refuse to accept without a reason, a query that is unknown, until now, or a tried setting."""
    if night.candidate_conf:
        raise Refused(
            f"run {night.id} is no baseline: {confs_of_candidate(night)}; put that into the"
            " engine's conf in include/conf/engines.yaml if it is to stay, and accept a night after"
        )
    if not reason.strip():
        raise Refused(f"run {night.id}: an acceptance needs a reason; give one: --reason 'WHY'")
    if expires is not None and expires.astimezone() <= now:
        raise Refused(
            f"run {night.id}: an acceptance until {expires:%Y-%m-%d %H:%M} is over already;"
            " give a later day"
        )
    names = list(dict.fromkeys([*night.queries, *known]))
    for query in queries:
        if query not in names:
            raise Refused(f"run {night.id} has no query {query!r}; {suggest(query, names)}")


def confs_of_candidate(night: NightRow) -> str:
    """Return a text on the Spark confs of a night's candidate alone; "" if it has none."""
    confs = shown_confs(night.candidate_conf or {})
    return f"its candidate alone had {confs}" if confs else ""


def check_withdrawal(row: AcceptanceRow | None, number: int, reason: str) -> AcceptanceRow:
    """Refuse a withdrawal without a reason, of no acceptance, or of one already withdrawn."""
    if row is None:
        raise Refused(f"there is no acceptance {number}; `nexmark acks` lists them with their ids")
    if row.withdrawal is not None:
        raise Refused(
            f"acceptance {number} was withdrawn on {row.withdrawal.withdrawn:%Y-%m-%d} by "
            f"{row.withdrawal.who} already; there is nothing to do"
        )
    if not reason.strip():
        raise Refused(f"acceptance {number}: a withdrawal needs a reason; give one: --reason 'WHY'")
    return row


#: Control characters, and those that turn the direction of what is read.
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s]*", re.IGNORECASE)


def check_words(name: str, text: str) -> None:
    """Refuse a control or bidirectional character in a text; Refused names it."""
    if found := _HIDDEN.search(text):
        raise Refused(
            f"{name}: has the character U+{ord(found[0]):04X} at place {found.start() + 1}, which "
            "cannot be seen; write plain text in one line"
        )


def visible(text: str) -> str:
    """Return a text with such characters written out, but for the ends of lines."""
    return _HIDDEN.sub(lambda x: x[0] if x[0] == "\n" else f"<U+{ord(x[0]):04X}>", text)


def check_link(link: str | None) -> str | None:
    """Return the address of where something was decided, None for none; Refused for another."""
    address = (link or "").strip()
    if not address:
        return None
    check_words("link", address)
    if not _ADDRESS.fullmatch(address):
        raise Refused("link: give an address that begins with https:// or http://")
    return address
