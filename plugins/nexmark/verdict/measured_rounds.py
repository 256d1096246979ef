"""The rounds of a night as the arrays that ``decision`` takes, one row per query."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nexmark.verdict.decision import UNREAD, Decision, Picked, decide
from nexmark.verdict.eligibility import Grounds
from nexmark.verdict.guardrail import Guarded, guard
from nexmark.verdict.location import Array
from nexmark.verdict.measured_night import Measured, Pair
from nexmark.verdict.noise import Learned, Past


class MeasuredRounds:
    """The pairs of queries that have ground for a verdict, with the hosts and the history.

    ``read`` has by query the last round that the last ``decide`` or ``guard`` read, ``lost`` the
    rounds that it wanted to read, and why their pairs say nothing. ``fit`` is without these pairs.
    """

    def __init__(self, fit: Sequence[Measured], grounds: Grounds, past: Past) -> None:
        """Take the queries, what is known of their hosts, and the verdicts of earlier nights."""
        self._unread = [_unread(one, grounds) for one in fit]
        self.fit = [_readable(*both) for both in zip(fit, self._unread, strict=True)]
        self.grounds = grounds
        self.rules = grounds.rules.for_metrics(one.metric for one in fit)
        self.first = log_ratios([(*one.before, *one.pairs) for one in fit])
        self._before = np.asarray([len(one.before) for one in fit])
        self.history = history_of(fit, grounds, past)
        self.read = [1] * len(fit)
        self.lost: list[dict[int, str]] = [{} for _ in fit]

    def decide(self, last: int | None = None) -> Decision:
        """Judge by all rounds, or up to the ``last`` one."""
        fit, grounds = self.fit, self.grounds
        self.read, self.lost = [1] * len(fit), [{} for _ in fit]
        return decide(
            self.first,
            self.history,
            self._more,
            self.rules,
            np.asarray([grounds.widening(grounds.grade(one.query)) for one in fit]),
            again=np.asarray([grounds.widening(grounds.grade_later(one)) for one in fit]),
            asked=grounds.night.asked or max(len(one.pairs) for one in fit),
            before=self._before,
            family=grounds.night.family,
            last=last,
        )

    def guard(
        self, read: Mapping[str, int], settled: Collection[str], last: int | None = None
    ) -> Guarded:
        """Return what the guardrail says.

        Args:
            read: By query, the rounds that the metric that decides has read.
            settled: The queries that are slower by that metric.
            last: The last round that there is so far; None: all that the gate knows.
        """
        fit, grounds = self.fit, self.grounds
        self.read, self.lost = [1] * len(fit), [{} for _ in fit]
        return guard(
            self.first,
            self.history,
            self._more,
            np.asarray([read.get(one.query, 1) for one in fit]),
            np.asarray([one.query in settled for one in fit]),
            self.rules,
            np.asarray([grounds.widening(grounds.grade(one.query)) for one in fit]),
            again=np.asarray([grounds.widening(grounds.grade_later(one)) for one in fit]),
            asked=grounds.night.asked or max(len(one.pairs) for one in fit),
            last=last,
            before=self._before,
        )

    def _more(self, picked: Picked, number: int) -> Array:
        rows = list[tuple[Pair, ...]]()
        for place in picked[0]:
            one = self.fit[place]
            pairs = one.of_round(number)
            if pairs:
                self.read[place] = number
            rows.append(pairs)
        ratios = log_ratios(rows)
        unread = [number in self._unread[place] for place in picked[0]]
        for place in picked[0][unread]:
            self.lost[place][number] = self._unread[place][number]
        return np.column_stack([ratios, np.where(unread, UNREAD, math.nan)])


def _unread(one: Measured, grounds: Grounds) -> dict[int, str]:
    """Return by round why its pairs say nothing: the host broke meanwhile."""
    numbers = range(2, len(one.later) + 2)
    return {number: why for number in numbers if (why := grounds.doubt(one, number))}


def _readable(one: Measured, unread: Mapping[int, str]) -> Measured:
    """Return the pairs without the rounds that cannot be read."""
    later = (() if number in unread else pairs for number, pairs in enumerate(one.later, 2))
    return replace(one, later=tuple(later))


def log_ratios(rows: Sequence[Sequence[Pair]]) -> Array:
    """Return the log ratios of rows of pairs, (rows, most pairs), NaN where there are fewer."""
    width = max(len(row) for row in rows)
    padded = [[pair.ratio for pair in row] + [math.nan] * (width - len(row)) for row in rows]
    return np.asarray(padded, dtype=np.float64)


def history_of(fit: Sequence[Measured], grounds: Grounds, past: Past) -> Learned:
    """Return what earlier nights say of queries."""
    queries = [one.query for one in fit]
    return past.history(queries, grounds.night.baseline, grounds.rules.history_nights)
