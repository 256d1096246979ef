"""Pairs that add up: what nights of the same two builds leave undecided, the next one goes on with.

``still_open`` is the rule. ``LeftOpen`` is for nights that are judged again in order;
``store.gate_rows`` reads the nights of a results database.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from typing import NamedTuple, TypeVar

from nexmark.model import LEFT_OPEN, SUITE, Basis, Value
from nexmark.verdict.measured_night import Aged, Measured, MeasuredNight, Pair
from nexmark.verdict.verdict import Verdict

ADDED_UP = 10
"""Nights of the same two builds whose pairs add up, at the most."""
LOOKED_AT = 3 * ADDED_UP
"""Nights of the same two builds among which these are looked for."""


_Kept = TypeVar("_Kept")


def still_open(nights: Iterable[tuple[Value | None, _Kept]]) -> list[_Kept]:
    """Return what the newest nights of two builds left undecided, or as a suspect.

    A decision in between ends what adds up. A night in which the query was MISSING, or that was
    never judged, decided nothing and is passed over; its pairs do not count.

    Args:
        nights: The verdict of one query in each night, with what is kept of it; the newest first.
    """
    judged = (night for night in nights if night[0] not in (None, Value.MISSING))
    open_ = takewhile(lambda night: night[0] in LEFT_OPEN, judged)
    return [kept for _, kept in islice(open_, ADDED_UP)]


def family_of(nights: Iterable[Sequence[int]]) -> int:
    """Return how many tests share the error of a night that goes on with earlier ones.

    A query was left open because it looked slow. So it shares the error with all queries among
    which it was left open, however few are measured again, and each further night tests them once
    more.

    Args:
        nights: For each query that goes on, the numbers of queries of the nights that left it open.
    """
    return max((max(queries) * (len(queries) + 1) for queries in nights if queries), default=0)


class _Compared(NamedTuple):
    query: str
    candidate: str
    baseline: str


class _NightPairs(NamedTuple):
    """What one night measured of a query, and its number of queries.

    These are the pairs by metric, with the basis of the figures, and the samples of a soak night.
    """

    of_metric: dict[str, tuple[Basis | None, tuple[Pair, ...]]]
    aged: tuple[Aged, ...]
    queries: int


class LeftOpen:
    """What the nights so far left undecided, by query and builds.

    A night that does not say which builds it compared adds nothing up.
    """

    def __init__(self) -> None:
        """Begin without a night."""
        self._nights: dict[_Compared, deque[tuple[Value, _NightPairs]]] = {}

    def added_to(self, night: MeasuredNight) -> MeasuredNight:
        """Return the night with the pairs that earlier ones left."""
        measured = tuple(replace(one, before=self._before(night, one)) for one in night.measured)
        going_on = {one.query for one in measured if one.before}
        family = family_of([each.queries for each in self._open(night, q)] for q in going_on)
        with_earlier = {
            query: (*self._aged(night, query), *aged) for query, aged in night.aged.items()
        }
        return replace(night, measured=measured, family=family, aged=with_earlier)

    def _open(self, night: MeasuredNight, query: str) -> list[_NightPairs]:
        """Return the nights that left a query open, the newest first."""
        return still_open(reversed(self._nights.get(_compared(night, query), ())))

    def _before(self, night: MeasuredNight, one: Measured) -> tuple[Pair, ...]:
        kept = (
            each.of_metric[one.metric]
            for each in self._open(night, one.query)
            if one.metric in each.of_metric
        )
        return tuple(pair for basis, pairs in kept if basis == one.basis for pair in pairs)

    def _aged(self, night: MeasuredNight, query: str) -> tuple[Aged, ...]:
        """Return the samples of earlier nights, the oldest first."""
        oldest_first = reversed(self._open(night, query))
        return tuple(aged for each in oldest_first for aged in each.aged)

    def add(self, night: MeasuredNight, verdicts: Iterable[Verdict]) -> None:
        """Keep the pairs of a night with what it has decided."""
        queries = {*night.expected, *(one.query for one in night.measured)}
        for verdict in verdicts:
            compared = _compared(night, verdict.query)
            known = compared.candidate and compared.baseline
            if not (verdict.decides and known) or verdict.query == SUITE:
                continue
            of_metric = {
                one.metric: (one.basis, one.all_pairs)
                for one in night.measured
                if one.query == verdict.query
            }
            nights = self._nights.setdefault(compared, deque(maxlen=LOOKED_AT))
            aged = night.aged.get(verdict.query, ())
            nights.append((verdict.value, _NightPairs(of_metric, aged, len(queries))))


def _compared(night: MeasuredNight, query: str) -> _Compared:
    return _Compared(query, night.candidate, night.baseline.get(query, ""))
