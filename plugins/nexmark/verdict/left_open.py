"""Pairs that add up: what nights of the same two builds leave undecided, the next one goes on with.

For nights that are judged again in order; those in a results database add up in ``store.gate_rows``
by the same rule.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from nexmark.model import SUITE, Basis, Value
from nexmark.verdict.measured_night import Measured, MeasuredNight, Pair
from nexmark.verdict.verdict import Verdict

ADDED_UP = 10
"""Nights of the same two builds whose pairs add up, at the most."""


class _Compared(NamedTuple):
    query: str
    candidate: str
    baseline: str


class _NightPairs(NamedTuple):
    """The pairs of one night by metric, with the basis of the figures."""

    of_metric: dict[str, tuple[Basis | None, tuple[Pair, ...]]]


class LeftOpen:
    """What the nights so far left undecided, by query and builds.

    A night that does not say which builds it compared adds nothing up.
    """

    def __init__(self) -> None:
        """Begin without a night."""
        self._nights: dict[_Compared, deque[_NightPairs]] = {}

    def added_to(self, night: MeasuredNight) -> MeasuredNight:
        """Return the night with the pairs that earlier ones left."""
        measured = tuple(replace(one, before=self._before(night, one)) for one in night.measured)
        return replace(night, measured=measured)

    def _before(self, night: MeasuredNight, one: Measured) -> tuple[Pair, ...]:
        kept = (
            each.of_metric[one.metric]
            for each in reversed(self._nights.get(_compared(night, one.query), ()))
            if one.metric in each.of_metric
        )
        return tuple(pair for basis, pairs in kept if basis == one.basis for pair in pairs)

    def add(self, night: MeasuredNight, verdicts: Iterable[Verdict]) -> None:
        """Keep what a night leaves undecided; forget what it decided."""
        for verdict in verdicts:
            if not verdict.decides or verdict.query == SUITE:
                continue
            compared = _compared(night, verdict.query)
            if verdict.value is not Value.UNDECIDED or not (
                compared.candidate and compared.baseline
            ):
                self._nights.pop(compared, None)
                continue
            pairs = _NightPairs(
                {
                    one.metric: (one.basis, one.all_pairs)
                    for one in night.measured
                    if one.query == verdict.query
                }
            )
            self._nights.setdefault(compared, deque(maxlen=ADDED_UP)).append(pairs)


def _compared(night: MeasuredNight, query: str) -> _Compared:
    return _Compared(query, night.candidate, night.baseline.get(query, ""))
