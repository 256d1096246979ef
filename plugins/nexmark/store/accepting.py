"""Finds the acceptance that counts for a query, and checks what a person writes in one.

Other people read this text, so it must have no hidden characters.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from operator import attrgetter

from nexmark.errors import suggest
from nexmark.model import CANDIDATE_JOB
from nexmark.secrets import shown_confs
from nexmark.store.store_error import Refused
from nexmark.store.table_rows import AcceptanceRow, NightRow

COUNTS, SUPERSEDED, EXPIRED, WITHDRAWN = "counts", "superseded", "expired", "withdrawn"


def states(rows: Sequence[AcceptanceRow], at: datetime) -> list[tuple[AcceptanceRow, str]]:
    """Return each acceptance with its state at a moment, in the given order."""
    places = list(map(attrgetter("engine", "workload", "cluster", "query"), rows))
    ended = [
        WITHDRAWN if row.withdrawn(at) else EXPIRED if row.expired(at) else None for row in rows
    ]
    going = zip(places, rows, ended, strict=True)
    newest = {place: row.id for place, row, end in going if end is None}
    return [
        (row, end or (COUNTS if newest[place] == row.id else SUPERSEDED))
        for place, row, end in zip(places, rows, ended, strict=True)
    ]


def parse_expiry(text: str, now: datetime) -> datetime | None:
    """Parse when an acceptance expires.

    A day (2027-01-31) gives its start in UTC, a number of days (30d) gives ``now`` plus these days,
    and an empty text gives None: the acceptance never expires. Refused for any other text.
    """
    text = text.strip()
    if not text:
        return None
    try:
        if days := re.fullmatch(r"([0-9]{1,5})d", text):
            return now + timedelta(days=int(days[1]))
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
    """Refuse an acceptance that cannot be made; Refused says why.

    Args:
        night: The night that a person wants to accept. A night that tried a setting of the
            candidate alone is refused.
        known: The queries that were measured in the night, beside those that it planned.
        queries: The queries that the person names; each must be a query of the night.
        reason: Why the person accepts; must not be empty.
        expires: When the acceptance expires, None for never; must be later than ``now``.
        now: The moment of the request.
    """
    if night.candidate_conf:
        raise Refused(
            f"run {night.id} is no baseline: {confs_of_candidate(night)}; put that into"
            f" {where_it_stays(night)} if it is to stay, and accept a night after"
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
    """Say in words which Spark confs, or jobs, a night gave to its candidate alone; "" if none."""
    words = candidate_alone(night)
    return f"its candidate alone {words}" if words else ""


def candidate_alone(night: NightRow) -> str:
    """Return what only the candidate of a night had or ran: ``had spark.a=1``; "" if nothing."""
    alone = dict(night.candidate_conf or {})
    directory = alone.pop(CANDIDATE_JOB, None)
    jobs = [name for name in alone if name.startswith(f"{CANDIDATE_JOB}.")]
    confs = shown_confs({name: value for name, value in alone.items() if name not in jobs})
    words = [f"had {confs}"] if confs else []
    if directory is not None:
        names = ", ".join(name.removeprefix(f"{CANDIDATE_JOB}.") for name in jobs)
        words.append(f"ran {names} of {directory}")
    return " and ".join(words)


def where_it_stays(night: NightRow) -> str:
    """Say where a person puts what a night gave to its candidate alone, for all nights to have."""
    is_of_job = CANDIDATE_JOB in (night.candidate_conf or {})
    return f"include/conf/{'jobs' if is_of_job else 'engines.yaml'}"


def check_withdrawal(row: AcceptanceRow | None, number: int, reason: str) -> AcceptanceRow:
    """Return the acceptance that is to be withdrawn, or refuse.

    Refused if there is no acceptance with the number, if it was withdrawn before, or if the
    withdrawal has no reason.
    """
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


#: Control characters, and characters that change the direction of text (bidirectional).
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s]*", re.IGNORECASE)


def check_words(name: str, text: str) -> None:
    """Refuse a text with a control or bidirectional character; Refused says which, and where."""
    if hidden := _HIDDEN.search(text):
        raise Refused(
            f"{name}: has the character U+{ord(hidden[0]):04X} at place {hidden.start() + 1},"
            " which cannot be seen; write plain text in one line"
        )


def visible(text: str) -> str:
    """Return a text with its hidden characters written as <U+202E>; line ends stay."""

    def written(hidden: re.Match[str]) -> str:
        character = hidden[0]
        return character if character == "\n" else f"<U+{ord(character):04X}>"

    return _HIDDEN.sub(written, text)


def check_link(link: str | None) -> str | None:
    """Return the web address of the discussion in which something was decided.

    None if ``link`` is None or empty. Refused if it is no address with http:// or https://.
    """
    address = (link or "").strip()
    if not address:
        return None
    check_words("link", address)
    if not _ADDRESS.fullmatch(address):
        raise Refused("link: give an address that begins with https:// or http://")
    return address
