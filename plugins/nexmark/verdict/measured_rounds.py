"""The rounds of a night as the arrays that ``decision`` takes, one row per query."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from nexmark.verdict.decision import Decision, Picked, decide
from nexmark.verdict.eligibility import Grounds
from nexmark.verdict.guardrail import Guarded, guard
from nexmark.verdict.location import Array
from nexmark.verdict.measured_night import Measured, Pair
from nexmark.verdict.noise import Learned, Past


class MeasuredRounds:
    """The pairs of queries that have ground for a verdict, with the hosts and the history.

    ``read`` counts by query the rounds that the last ``decide`` read.
    """

    def __init__(self, fit: Sequence[Measured], grounds: Grounds, past: Past) -> None:
        """Take the queries, what is known of their hosts, and the verdicts of earlier nights."""
        self.fit, self.grounds = fit, grounds
        self.rules = grounds.rules.for_metrics(one.metric for one in fit)
        self.first = log_ratios([(*one.before, *one.pairs) for one in fit])
        self.history = history_of(fit, grounds, past)
        self.read = [1] * len(fit)

    def decide(self, last: int | None = None) -> Decision:
        """Judge by all rounds, or up to the ``last`` one."""
        fit, grounds = self.fit, self.grounds
        self.read = [1] * len(fit)
        return decide(
            self.first,
            self.history,
            self._more,
            self.rules,
            np.asarray([grounds.widening(grounds.grade(one.query)) for one in fit]),
            again=np.asarray([grounds.widening(grounds.grade_later(one)) for one in fit]),
            asked=grounds.night.asked or max(len(one.pairs) for one in fit),
            before=max(len(one.before) for one in fit),
            last=last,
        )

    def guard(self, read: Mapping[str, int], last: int | None = None) -> Guarded:
        """Return what the guardrail says, with the rounds that the metric that decides has read."""
        fit, grounds = self.fit, self.grounds
        self.read = [1] * len(fit)
        return guard(
            self.first,
            self.history,
            self._more,
            np.asarray([read.get(one.query, 1) for one in fit]),
            self.rules,
            np.asarray([grounds.widening(grounds.grade(one.query)) for one in fit]),
            again=np.asarray([grounds.widening(grounds.grade_later(one)) for one in fit]),
            asked=grounds.night.asked or max(len(one.pairs) for one in fit),
            last=last,
        )

    def _more(self, picked: Picked, number: int) -> Array:
        rows = list[tuple[Pair, ...]]()
        for place in picked[0]:
            one = self.fit[place]
            pairs = one.of_round(number)
            if pairs and not self.grounds.doubt(one, number):
                self.read[place] = number
                rows.append(pairs)
            else:
                rows.append(())
        return log_ratios(rows)


def log_ratios(rows: Sequence[Sequence[Pair]]) -> Array:
    """Return the log ratios of rows of pairs, (rows, most pairs), NaN where there are fewer."""
    width = max(len(row) for row in rows)
    padded = [[pair.ratio for pair in row] + [math.nan] * (width - len(row)) for row in rows]
    return np.asarray(padded, dtype=np.float64)


def history_of(fit: Sequence[Measured], grounds: Grounds, past: Past) -> Learned:
    """Return what earlier nights say of queries."""
    queries = [one.query for one in fit]
    return past.history(queries, grounds.night.baseline, grounds.rules.history_nights)
