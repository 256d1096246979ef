"""Tells accepted changes from changes that still alarm.

What is acked does not turn the night red; a worse number, or the end of the ack, does again. A
wrong or missing result is acked for its own build only: no size makes it right.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from nexmark.model import WITHOUT_SIZE, QueryKey, Value, grouped
from nexmark.verdict.verdict import Verdict


@dataclass(frozen=True)
class Ack:
    """A person's word on one query and metric.

    ``size`` is the accepted candidate / baseline (1.08: 8 % slower), None for a verdict that had
    none. From ``expires`` on, with a time zone, it does not hold; None: it always does.
    """

    query: str
    metric: str
    build: str
    size: float | None
    expires: datetime | None
    id: str

    def covers(self, verdict: Verdict, build: str, moment: datetime) -> bool:
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
    verdicts: Iterable[Verdict], build: str, acks: Iterable[Ack], moment: datetime
) -> dict[QueryKey, Ack]:
    """Return the red verdicts that an ack covers, each with the last ack given that covers it.

    An ack holds for its own build, and for another one unless its whole 95 % interval is above
    ``size``.

    Args:
        verdicts: The verdicts of a night.
        build: The candidate of the night.
        acks: The acks, the last one given last.
        moment: When the night was (its first time, if it was repeated).
    """
    active, red = list(acks), [verdict for verdict in verdicts if verdict.bad]
    return {
        verdict.key: ack for verdict in red for ack in active if ack.covers(verdict, build, moment)
    }


@dataclass(frozen=True)
class Alarm:
    """A red verdict of the last night: red since the night ``since``, ``nights`` of them so far."""

    verdict: Verdict
    since: str
    nights: int


@dataclass(frozen=True)
class Group:
    """The alarms on one metric that began with the same build: one issue, not one per query."""

    build: str
    metric: str
    alarms: tuple[Alarm, ...]


def group_by_first_bad(history: Sequence[tuple[str, Sequence[Verdict]]]) -> list[Group]:
    """Group the red verdicts of the last night by the build each began with, the earliest first.

    ``history``: (candidate build, verdicts) of each night, oldest first. An alarm began in the
    first of the nights that were red for the same reason (slower, wrong, missing) without a break;
    nights that tell nothing of it, or are red for another reason, are passed over.
    """
    nights = [verdicts for _, verdicts in history]
    runs = [_run(verdict, nights) for verdict in (nights[-1] if nights else ()) if verdict.bad]
    runs.sort(key=lambda run: run[0])
    groups = grouped(runs, lambda run: (history[run[0]][0], run[1].verdict.metric))
    return [Group(*key, tuple(alarm for _, alarm in members)) for key, members in groups.items()]


def _run(tonight: Verdict, nights: Sequence[Sequence[Verdict]]) -> tuple[int, Alarm]:
    """Return where the run of red nights that ends tonight began, and the alarm."""
    place, first, count = len(nights) - 1, tonight, 1
    for earlier in range(len(nights) - 2, -1, -1):
        of_query = (verdict for verdict in nights[earlier] if verdict.query == tonight.query)
        before = next((verdict for verdict in of_query if verdict.decides), None)
        if before is None or (before.bad and _reason(before) != _reason(tonight)):
            continue
        if not before.bad:
            break
        place, first, count = earlier, before, count + 1
    return place, Alarm(tonight, first.night, count)


def _reason(verdict: Verdict) -> Value | None:
    """Return why it is red; None for slower, which a suspicion and a regression both are."""
    return verdict.value if verdict.value in WITHOUT_SIZE else None
