"""What people have accepted, and what still alarms.

An ack is a person's word on one query and metric: known, and accepted up to this size until then.
What is known and acked does not turn the night red; a worse number, or the end of the ack, does
again (research/regression-gates.md section 6, "Triage states"). A wrong or missing result is acked
for its own build only: no size makes it right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from nexmark.verdict.comparison import Value
from nexmark.verdict.nights import QueryVerdict

Key: TypeAlias = tuple[str, str]
"""Query and metric: what a night has one verdict on."""

WITHOUT_SIZE = frozenset({Value.INVALID, Value.MISSING})


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
        if (self.query, self.metric) != (verdict.query, verdict.metric):
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
) -> dict[Key, Ack]:
    """Return the red verdicts that are known, each with its ack.

    ``build`` is the candidate, ``moment`` that of the night (for a night judged again: of then).
    An ack holds for its own build, whatever was measured, and for another one unless that is worse
    than was accepted: the whole 95 % interval above ``size``. Of several the last one given.
    """
    active = list(acks)
    return {
        (verdict.query, verdict.metric): ack
        for verdict in verdicts
        if verdict.red
        for ack in active
        if ack.covers(verdict, build, moment)
    }


def night_is_red(verdicts: Sequence[QueryVerdict], known: Mapping[Key, Ack]) -> bool:
    """Tell whether a night fails for a reason that is not ``acked``; one without verdicts does."""
    if not verdicts:
        return True
    return any(x.red and (x.query, x.metric) not in known for x in verdicts)


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
    groups: dict[Key, list[Alarm]] = {}
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
    key = (wanted.query, wanted.metric)
    return next((x for x in verdicts if (x.query, x.metric) == key), None)


def _reason(verdict: QueryVerdict) -> str:
    """Return why it is red: a suspicion and a regression are both of being slower."""
    return verdict.value.value if verdict.value in WITHOUT_SIZE else "slower"


__all__ = ["Ack", "Alarm", "Group", "acked", "group_by_first_bad", "night_is_red"]
