"""Tells accepted changes from those that still alarm.

An ack is a person's word on one query and metric: known, and accepted up to this size until then.
What is known and acked does not turn the night red; a worse number, or the end of the ack, does
again (research/regression-gates.md section 6, "Triage states"). A wrong or missing result is acked
for its own build only: no size makes it right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from nexmark.model import WITHOUT_SIZE, QueryKey
from nexmark.verdict.measured_night import QueryVerdict


@dataclass(frozen=True)
class Ack:
    """One ack.

    ``size`` is the accepted candidate / baseline (1.08: 8 % slower), None for a verdict that had
    none. ``expires``: from then on it does not hold, with a time zone; None: never.
    """

    query: str
    metric: str
    build: str
    size: float | None
    expires: datetime | None
    id: str

    def covers(self, verdict: QueryVerdict, build: str, moment: datetime) -> bool:
        """Tell whether it speaks of this verdict on ``build`` in a night at ``moment``."""
        if (self.query, self.metric) != verdict.key:
            return False
        if self.expires is not None and moment >= self.expires:
            return False
        if verdict.value in WITHOUT_SIZE or verdict.ratio is None:
            return self.size is None and self.build == build
        if self.size is None:
            return False
        least = verdict.ratio if verdict.lo is None else verdict.lo
        return self.build == build or least <= self.size


def acked(
    verdicts: Iterable[QueryVerdict], build: str, acks: Iterable[Ack], moment: datetime
) -> dict[QueryKey, Ack]:
    """Return the red verdicts that an ack covers, each with its ack.

    ``build`` is the candidate, ``moment`` the time of the night (its original time when an old
    night is judged again). An ack always holds for its own build. It holds for another build unless
    that build is worse than the accepted one: the whole 95 % interval is above ``size``. If several
    acks cover a verdict, the last one given counts.
    """
    active = list(acks)
    return {
        verdict.key: ack
        for verdict in verdicts
        if verdict.red
        for ack in active
        if ack.covers(verdict, build, moment)
    }


@dataclass(frozen=True)
class Alarm:
    """A red verdict of the last night: red since the night ``since``, ``nights`` of them so far."""

    verdict: QueryVerdict
    since: str
    nights: int


@dataclass(frozen=True)
class Group:
    """The alarms on one metric that began with the same build: one issue, not one per query."""

    build: str
    metric: str
    alarms: tuple[Alarm, ...]


def group_by_first_bad(history: Sequence[tuple[str, Sequence[QueryVerdict]]]) -> list[Group]:
    """Group the red verdicts of the last night by the build each began with.

    ``history``: (candidate build, verdicts) of each night, oldest first. An alarm began in the
    first of the nights that were red for it without a break: red for the same reason (slower,
    wrong, or missing). Nights that tell nothing of it, the query not run or red for another
    reason, are passed over. The group that began first comes first; [] for no history.
    """
    runs: list[tuple[int, Alarm]] = []
    for verdict in history[-1][1] if history else ():
        if verdict.red:
            runs.append(_run(verdict, [verdicts for _, verdicts in history]))
    groups: dict[tuple[str, str], list[Alarm]] = {}
    for first, alarm in sorted(runs, key=lambda run: run[0]):
        groups.setdefault((history[first][0], alarm.verdict.metric), []).append(alarm)
    return [Group(build, metric, tuple(alarms)) for (build, metric), alarms in groups.items()]


def _run(tonight: QueryVerdict, nights: Sequence[Sequence[QueryVerdict]]) -> tuple[int, Alarm]:
    """Return where the run of red nights that ends tonight began, and the alarm."""
    place, first, count = len(nights) - 1, tonight, 1
    for earlier in range(len(nights) - 2, -1, -1):
        found = _same(tonight, nights[earlier])
        if found is None or (found.red and _reason(found) != _reason(tonight)):
            continue
        if not found.red:
            break
        place, first, count = earlier, found, count + 1
    return place, Alarm(tonight, first.night, count)


def _same(wanted: QueryVerdict, verdicts: Iterable[QueryVerdict]) -> QueryVerdict | None:
    return next((x for x in verdicts if x.key == wanted.key), None)


def _reason(verdict: QueryVerdict) -> str:
    """Return why it is red: a suspicion and a regression are both of being slower."""
    return verdict.value.value if verdict.value in WITHOUT_SIZE else "slower"
