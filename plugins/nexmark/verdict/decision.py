"""One paired night from log ratios to sides, as arrays; nights and simulations both run it.

Pairs are measured in rounds (docs/decisions/pairs.md). After each of them every query is looked at:
it is decided, or goes on to the next round. A change is real when all pairs are beyond a bound that
allows for every look (``spending``), and the pairs after the first round show it by themselves.
Where pairs of earlier nights count, all of tonight's are later ones. Changes too small for one
night add up in a two-sided CUSUM (E. S. Page, "Continuous inspection schemes", 1954), which never
turns a night red. The suite, the geometric mean ratio of the queries, shows what is too small in
every query, without those that are judged by themselves tonight, so that one cause does not alarm
twice, unless they are half of it.

Arrays have the shape (..., queries) or (..., queries, pairs or nights); the leading axes are free,
so that the simulation runs many suites at once through the code that judges a night. Sides are +1
(slower), -1 (faster) and 0.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

from nexmark.config import Gate
from nexmark.verdict.location import (
    EFFICIENCY,
    Array,
    agree,
    count_of,
    hodges_lehmann,
    nan_median,
    spread,
)
from nexmark.verdict.moderation import Moderated, moderate
from nexmark.verdict.noise import Drift, Learned, Noise, learn
from nexmark.verdict.order import MIN_FRESH_PAIRS, rounds_from
from nexmark.verdict.spending import spending_bounds

CONFIDENCE = 0.95
"""Of the interval of a ratio."""
SEEN = 0.84
"""Deviations beyond a bound at which a change is found four times in five."""
DRIFT_CLIP = 4.0
"""No single night counts for more noise units than this."""
SUITE_CLIP = 3.0
"""No query is further from the median of the queries, in units of its noise, than this."""
SUITE_INDISTINCT = 1.35
"""The suite has something of its own from night to night where its variance is more than this times
what the pairs explain: 60 nights show a variance within 18 %."""
SUITE_NIGHTS = 10
"""With fewer earlier nights the suite is taken to move by the noise floor at least: the mean of
many queries is so exact that what every pair of a night shares would be red."""
LARGEST_ERROR = 0.005
"""However few queries there are, an unchanged one is red no more often than this."""
_HALF = 1.96
"""Half the width of a 95 % interval, in standard deviations."""
_ROOMS = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
"""Slowdowns that matter, in deviations of a pair, for which bounds are worked out."""
_SURE = 1e-16
"""Probabilities closer to 0 or 1 than this are taken as this."""
Picked: TypeAlias = tuple[NDArray[np.intp], ...]
"""Positions of the queries that go on, as ``numpy.nonzero`` gives them, k of them."""
More: TypeAlias = Callable[[Picked, int], Array]
"""Measures (or reads) a round (its number, from 2) of the queries that go on and of nobody else:
(k, m) log ratios, NaN where a pair is not there."""
UNREAD = math.inf
"""Among the log ratios of a query: the host broke in the round; the query goes on without it."""


@dataclass(frozen=True)
class Estimate:
    """What some pairs say of each query, (..., queries).

    ``shift`` is the Hodges-Lehmann log ratio, ``noise`` its standard deviation, known with
    ``degrees`` degrees of freedom.
    """

    shift: Array
    noise: Array
    degrees: Array

    @property
    def half(self) -> Array:
        """Half the width of the 95 % interval."""
        result: Array = stdtrit(self.degrees, (1 + CONFIDENCE) / 2) * self.noise
        return result

    def beyond(self, change: float) -> Array:
        """Return the evidence that the log ratio is more than ``change``, as a standard normal."""
        return _standard((self.shift - change) / self.noise, self.degrees)


def estimate(ratios: Array, tonight: Moderated, usual: Noise, added: Array) -> Estimate:
    """Return what the pairs (..., n) say.

    Args:
        ratios: Log ratios, NaN where a pair is not there.
        tonight: How much tonight's pairs differ.
        usual: What earlier nights have shown.
        added: The deviation that the hosts add to each query tonight.
    """
    noise, degrees = deviation_of(tonight, usual, count_of(ratios), added)
    return Estimate(hodges_lehmann(ratios), noise, degrees)


@dataclass(frozen=True)
class Look:
    """What all pairs so far say of each query, (..., queries).

    ``shift`` is the Hodges-Lehmann log ratio, ``noise`` its standard deviation, known with
    ``degrees`` degrees of freedom; ``lo`` and ``hi`` the 95 % interval (log). ``pairs``, ``fresh``
    and ``later`` count whole pairs: all, those after tonight's first round, and those that came
    after somebody had looked, which confirm a change. ``evidence`` is for a slowdown (below 0: for
    a gain), as a standard normal value, and ``bound`` what it has to exceed. ``side`` is where a
    change is real.
    """

    shift: Array
    noise: Array
    degrees: Array
    lo: Array
    hi: Array
    pairs: Array
    fresh: Array
    later: Array
    evidence: Array
    bound: Array
    side: Array
    goes_on: NDArray[np.bool_]

    def with_(self, picked: Picked, seen: "Look") -> "Look":
        """Return this look with the picked queries as another one saw them."""

        def merged(old: Array, new: Array) -> Array:
            result = old.copy()
            result[picked] = new
            return result

        goes_on = self.goes_on.copy()
        goes_on[picked] = seen.goes_on
        return Look(
            shift=merged(self.shift, seen.shift),
            noise=merged(self.noise, seen.noise),
            degrees=merged(self.degrees, seen.degrees),
            lo=merged(self.lo, seen.lo),
            hi=merged(self.hi, seen.hi),
            pairs=merged(self.pairs, seen.pairs),
            fresh=merged(self.fresh, seen.fresh),
            later=merged(self.later, seen.later),
            evidence=merged(self.evidence, seen.evidence),
            bound=merged(self.bound, seen.bound),
            side=merged(self.side, seen.side),
            goes_on=goes_on,
        )

    @property
    def beyond(self) -> Array:
        """The side on which all pairs are beyond the bound, confirmed or not; else 0."""
        return np.where(np.abs(self.evidence) > self.bound, np.sign(self.evidence), 0.0)


@dataclass(frozen=True)
class Bounds:
    """What the evidence has to exceed, by the pairs so far and by how noisy a pair is.

    ``planned`` are the pairs of each round (if there is only one, nothing chose its pairs, and it
    needs no other to confirm it), ``error`` the chance that one unchanged query is red.
    ``pursued`` has the evidence for a slowdown above which a query goes on, after each round but
    the last, ``matters`` the log slowdown that is to be excluded.
    """

    planned: tuple[int, ...]
    error: float
    pursued: tuple[float, ...]
    matters: float

    @classmethod
    def of(cls, planned: tuple[int, ...], queries: int, rules: Gate, before: int = 0) -> "Bounds":
        """Return the bounds of a night: its error is shared by its queries.

        Args:
            planned: The pairs of each round.
            queries: How many are judged.
            rules: The gate.
            before: Pairs of earlier nights: as if more rounds like the last one were planned.
        """
        error = min(rules.false_reds / queries, LARGEST_ERROR)
        more = math.ceil(before / planned[-1])
        pursued = rules.pursue_z[: len(planned) - 1]
        longer = (*pursued, *(pursued[-1:] or (0.0,)) * more)
        matters = math.log1p(rules.matters)
        return cls((*planned, *planned[-1:] * more), error, longer, matters)

    def at(self, pairs: Array, deviation: Array) -> Array:
        """Return the bounds for queries with these pairs and deviations of a pair.

        A query that is noisier goes on more often, and so needs more evidence. The bounds are
        worked out for some deviations; others lie between them. None is so low that the 95 %
        interval of a change has no change in it.
        """
        pairs, deviation = np.broadcast_arrays(pairs, deviation)
        steps = np.log(_ROOMS)
        place = np.interp(np.log(self.matters / deviation), steps, np.arange(len(_ROOMS)))
        rows = np.stack([np.interp(pairs, self._counts, self._row(room)) for room in _ROOMS])
        low = np.minimum(np.nan_to_num(place).astype(np.intp), len(_ROOMS) - 2)
        part = place - low
        below, above = (np.take_along_axis(rows, each[None], axis=0)[0] for each in (low, low + 1))
        result: Array = np.maximum(below * (1 - part) + above * part, _HALF)
        return result

    def needed_to_go_on(self, pairs: Array) -> Array:
        """Return the evidence above which queries with these pairs go on."""
        return np.interp(pairs, self._counts, [*self.pursued, math.inf])

    @property
    def _counts(self) -> tuple[int, ...]:
        return tuple(accumulate(self.planned))

    def _row(self, room: float) -> tuple[float, ...]:
        """Return the bounds at each look, where ``matters`` is ``room`` deviations of a pair."""
        undecided = (room * math.sqrt(count) - _HALF for count in self._counts)
        goes_on = tuple(map(min, self.pursued, undecided))
        return spending_bounds(self._counts, self.error, goes_on)


@dataclass(frozen=True)
class NightBounds:
    """What the evidence of each query of a night has to exceed.

    ``usual`` is for queries without pairs of earlier nights. The others, which ``going_on`` tells
    (queries,), were left open by these nights: ``again`` is for them.
    """

    usual: Bounds
    again: Bounds
    going_on: NDArray[np.bool_]

    @classmethod
    def of(
        cls, planned: tuple[int, ...], rules: Gate, before: NDArray[np.int_], family: int = 0
    ) -> "NightBounds":
        """Return the bounds of a night.

        Args:
            planned: The pairs of each round.
            rules: The gate.
            before: How many pairs of each query are of earlier nights, (queries,).
            family: How many tests share the error of queries with pairs of earlier nights, if that
                is more than there are queries.
        """
        queries, most = before.size, int(before.max(initial=0))
        usual = Bounds.of(planned, queries, rules)
        again = Bounds.of(planned, max(queries, family), rules, most) if most else usual
        return cls(usual, again, before > 0)

    def at(self, pairs: Array, deviation: Array) -> Array:
        """Return the bounds of queries with these pairs and deviations of a pair."""
        return self._of_each(lambda bounds: bounds.at(pairs, deviation))

    def needed_to_go_on(self, pairs: Array) -> Array:
        """Return the evidence above which queries with these pairs go on."""
        return self._of_each(lambda bounds: bounds.needed_to_go_on(pairs))

    def picked(self, queries: NDArray[np.intp]) -> "NightBounds":
        """Return the bounds of some queries."""
        return replace(self, going_on=self.going_on[queries])

    @property
    def total(self) -> Array:
        """How many pairs each query has after all rounds, with pairs of earlier nights."""
        return self._of_each(lambda bounds: np.asarray(float(sum(bounds.planned))))

    @property
    def matters(self) -> float:
        """The log slowdown that is to be excluded."""
        return self.usual.matters

    @property
    def in_one_round(self) -> bool:
        """Whether the night has one round: nothing chooses its pairs."""
        return len(self.usual.planned) == 1

    def _of_each(self, of: Callable[[Bounds], Array]) -> Array:
        """Return a value of the bounds of each query."""
        if not self.going_on.any():
            return of(self.usual)
        return np.where(self.going_on, of(self.again), of(self.usual))


def look(
    ratios: Array,
    first: int,
    tonight: Moderated,
    usual: Noise,
    rules: Gate,
    bounds: NightBounds,
    added: Array,
    before: NDArray[np.int_] | int = 0,
) -> Look:
    """Look at the pairs of queries so far.

    Args:
        ratios: Log ratios (..., n) of all rounds so far, NaN where a pair is not there.
        first: How many of the n are of the first round, with the pairs of earlier nights.
        tonight: How much tonight's pairs differ.
        usual: What earlier nights have shown.
        rules: The gate.
        bounds: What the evidence of these queries has to exceed.
        added: The deviation that the hosts add to each query tonight.
        before: How many of the n are of earlier nights, of each query; they come first.
    """
    pairs, fresh = count_of(ratios), count_of(ratios[..., first:])
    confirming = later_pairs(ratios, first, before)
    later = count_of(confirming)
    seen = estimate(ratios, tonight, usual, added)
    shift, half, evidence = seen.shift, seen.half, seen.beyond(0.0)
    bound = bounds.at(pairs, seen.noise * np.sqrt(np.maximum(pairs, 1)))
    side = np.where(np.abs(evidence) > bound, np.sign(evidence), 0.0)
    side = side * (np.abs(shift) > np.log1p(rules.confirm_change))
    unchosen = bounds.in_one_round * agree(ratios, side)
    if later.any():
        confirmed = confirms(confirming, side, tonight, usual, rules, added)
        side = side * np.where(later > 0, confirmed, unchosen)
    else:
        side = side * unchosen
    certainly_small = shift + seen.noise < math.log1p(rules.confirm_change)
    suspected = (evidence > bounds.needed_to_go_on(pairs)) & ~certainly_small
    suspected |= evidence < -rules.pursue_faster_z
    undecided = shift + half >= bounds.matters
    goes_on = (side == 0) & (suspected | undecided) & ~np.isnan(shift)
    return Look(
        shift=shift,
        noise=seen.noise,
        degrees=seen.degrees,
        lo=shift - half,
        hi=shift + half,
        pairs=pairs,
        fresh=fresh,
        later=later,
        evidence=evidence,
        bound=bound,
        side=side,
        goes_on=goes_on | (pairs == 1),
    )


def later_pairs(ratios: Array, first: int, before: NDArray[np.int_] | int) -> Array:
    """Return the log ratios of the pairs that came after somebody had looked, NaN for the others.

    These are the pairs after the first round. A query with pairs of earlier nights goes on because
    of those, so all pairs of tonight are later.

    Args:
        ratios: Log ratios (..., n) of all rounds so far.
        first: How many of the n are of the first round, with the pairs of earlier nights.
        before: How many of the n are of earlier nights, of each query; they come first.
    """
    earlier = np.where(np.asarray(before) > 0, before, first)[..., None]
    return np.where(np.arange(ratios.shape[-1]) < earlier, np.nan, ratios)


def deviation_of(
    tonight: Moderated, usual: Noise, pairs: Array, added: Array
) -> tuple[Array, Array]:
    """Return the standard deviation of an estimate and its degrees of freedom.

    The degrees are Satterthwaite's (1946) of the sum of what pairs show and what only nights show.

    Args:
        tonight: How much tonight's pairs differ.
        usual: What earlier nights have shown.
        pairs: The number of pairs that the estimate is of.
        added: The deviation that the hosts add to each query tonight.
    """
    within = EFFICIENCY * tonight.deviation**2 / np.maximum(pairs, 1)
    nightly = np.nan_to_num(usual.nightly) ** 2
    total = np.maximum(within + nightly + added**2, usual.floor**2)
    slack = within**2 / tonight.degrees + nightly**2 / np.maximum(usual.nights, 2)
    known = np.where(slack > 0, slack, 1.0)
    degrees = np.where(slack > 0, (within + nightly) ** 2 / known, tonight.degrees)
    return np.sqrt(total), np.maximum(degrees, 1.0)


def confirms(
    fresh: Array, side: Array, tonight: Moderated, usual: Noise, rules: Gate, added: Array
) -> NDArray[np.bool_]:
    """Tell whether the pairs that came after a look show the change by themselves.

    They were not chosen for being extreme: the first round may have been.

    Args:
        fresh: Log ratios of these pairs, NaN where a pair is not there.
        side: The side on which all pairs are.
        tonight: How much tonight's pairs differ.
        usual: What earlier nights have shown.
        rules: The gate.
        added: The deviation that the hosts add to each query tonight.
    """
    count = count_of(fresh)
    noise, _ = deviation_of(tonight, usual, count, added)
    needed = np.maximum(rules.confirm_z * noise, np.log1p(rules.confirm_change))
    alone: NDArray[np.bool_] = side * hodges_lehmann(fresh) > needed
    return alone & (count >= MIN_FRESH_PAIRS) & agree(fresh, side)


def _standard(values: Array, degrees: Array) -> Array:
    """Return Student's t values as standard normal ones with the same probability."""
    result: Array = ndtri(np.clip(stdtr(degrees, values), _SURE, 1 - _SURE))
    return result


def smallest_seen(final: Look, usual: Noise, rules: Gate, bounds: NightBounds) -> Array:
    """Return the smallest slowdown (0.07: 7 %) that all rounds would find 4 times in 5.

    Args:
        final: What all pairs say.
        usual: What earlier nights have shown.
        rules: The gate.
        bounds: What the evidence has to exceed.
    """
    total = bounds.total
    pair = final.noise * np.sqrt(np.maximum(final.pairs, 1))
    noise = np.maximum(pair / np.sqrt(total), usual.floor)
    bound = np.maximum(bounds.at(total, pair) * noise, np.log1p(rules.confirm_change))
    needed = bound + SEEN * noise
    with np.errstate(over="ignore"):  # beyond what a float has is infinite
        smallest: Array = np.expm1(needed)
    return smallest


def pairs_to_decide(final: Look, rules: Gate, bounds: NightBounds) -> Array:
    """Return how many pairs of each query there have to be, if they go on as they began.

    With them either a slowdown of ``matters`` is excluded, or the change is shown. Infinite where
    the change is just what neither of both can tell.
    """
    pair = final.noise * np.sqrt(np.maximum(final.pairs, 1))
    width = stdtrit(final.degrees, (1 + CONFIDENCE) / 2) * pair
    room = bounds.matters - final.shift
    shown = bounds.at(bounds.total, pair) * pair
    with np.errstate(divide="ignore"):
        excluded = np.where(room > 0, (width / room) ** 2, np.inf)
        large = np.abs(final.shift) > math.log1p(rules.confirm_change)
        found_with = np.where(large, (shown / final.shift) ** 2, np.inf)
    needed: Array = np.maximum(np.ceil(np.minimum(excluded, found_with)), final.pairs + 1)
    return needed


def advance(drift: Drift, shift: Array, noise: Array, rules: Gate) -> Drift:
    """Add a night to the sums of the drift; where shift or noise is NaN they stay as they are.

    Args:
        drift: The sums before the night.
        shift: The night's log ratios.
        noise: Their standard deviations.
        rules: The gate.
    """
    step = np.clip(shift / noise, -DRIFT_CLIP, DRIFT_CLIP)
    known = ~np.isnan(step)
    allowance = rules.drift_allowance
    up = np.where(known, np.maximum(drift.slower + step - allowance, 0.0), drift.slower)
    down = np.where(known, np.maximum(drift.faster - step - allowance, 0.0), drift.faster)
    return Drift(up, down)


def drift_side(drift: Drift, rules: Gate) -> Array:
    """Return +1 where a drift to slower is over the bound, -1 to faster, else 0."""
    slower, faster = drift.slower > rules.drift_bound, drift.faster > rules.drift_bound
    return slower.astype(np.float64) - (faster & ~slower)


def mean_shift(shift: Array, noise: Array, judged: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the mean log ratio over queries that are not judged already, and its deviation.

    Queries count by how well they are known (the inverse of their variance). So every pair counts
    the same, whichever query it is of, and the mean is not biased by measuring those queries on
    that looked slower.
    """
    known = ~np.isnan(shift)
    rest = known & ~judged
    enough = 2 * rest.sum(axis=-1) > known.sum(axis=-1)
    used = np.where(enough[..., None], rest, known)
    weight = np.where(used, 1 / noise**2, 0.0)
    total = weight.sum(axis=-1)
    mean = np.where(used, shift * weight, 0.0).sum(axis=-1) / np.maximum(total, 1e-12)
    some = total > 0
    return np.where(some, mean, np.nan), np.where(some, np.maximum(total, 1e-12) ** -0.5, np.nan)


def nights_apart(first: Array, earlier: Array, floor: float) -> Array:
    """Return the deviation that whole nights of the suite have beyond what their pairs explain.

    Args:
        first: The deviation of each query's first round, (..., queries).
        earlier: The suite's shifts of earlier nights in which it had not changed, (..., nights).
        floor: The least that it is without ``SUITE_NIGHTS`` of them.
    """
    count = count_of(first)
    independent = np.nansum(first**2, axis=-1) / np.maximum(count, 1) ** 2
    excess = np.nan_to_num(spread(earlier)) ** 2 - SUITE_INDISTINCT * independent
    least = np.where(count_of(earlier) < SUITE_NIGHTS, floor**2, 0.0)
    result: Array = np.sqrt(np.maximum(excess, least))
    return result


def suite_side(shift: Array, noise: Array, rules: Gate) -> Array:
    """Return +1 for a slower suite, -1 for a faster one, else 0; there is no smallest size."""
    z = shift / noise
    return (z > rules.suite_z).astype(np.float64) - (z < -rules.suite_z)


@dataclass(frozen=True)
class Decision:
    """The result of one night: what the first round says, and all rounds together.

    ``going`` tells which queries go on to the next round, by the last one in which they were.
    """

    usual: Noise
    bounds: NightBounds
    first: Look
    final: Look
    drift: Drift
    suite_shift: Array
    suite_noise: Array
    drift_side: Array
    suite_side: Array
    going: NDArray[np.bool_]

    @property
    def confirmed(self) -> Array:
        """The side of the queries whose change is real, else 0."""
        return self.final.side


def decide(
    ratios: Array,
    history: Learned,
    more: More,
    rules: Gate,
    widening: Array,
    again: Array | None = None,
    asked: int | None = None,
    last: int | None = None,
    before: NDArray[np.int_] | None = None,
    family: int = 0,
) -> Decision:
    """Judge a night by the pairs of its first round, and further ones of queries that go on.

    Args:
        ratios: Log ratios of the first round, (..., queries, n).
        history: Earlier nights.
        more: Measures or reads a further round.
        rules: The gate.
        widening: The deviation that hosts add to the first round, (..., queries).
        again: The deviation, at least ``widening``, that they add once later rounds are in; None:
            ``widening``.
        asked: The pairs that the first round should have had; None: n.
        last: The last round that there is so far; None: all that the gate knows.
        before: How many pairs of each query are of earlier nights; they are the first among those
            of the first round. None: none.
        family: How many tests share the error of queries with pairs of earlier nights, see
            ``left_open.family_of``; 0 if there are none.
    """
    usual = learn(history.shift, history.spread, history.pairs, rules.noise_floor)
    size = ratios.shape[-1]
    planned = rounds_from(asked or size, rules)
    earlier = np.zeros(ratios.shape[-2], dtype=np.int_) if before is None else before
    bounds = NightBounds.of(planned, rules, earlier, family)
    tonight = moderate(ratios, usual.pair, rules)
    first = final = look(ratios, size, tonight, usual, rules, bounds, widening, earlier)
    added = widening if again is None else again
    going = first.goes_on if len(planned) > 1 else np.zeros_like(first.goes_on)
    for number in range(2, (last or len(planned)) + 1):
        picked = np.nonzero(going)
        if picked[0].size == 0:
            break
        pairs, still = read_round(more(picked, number), picked, going)
        wider = np.full((*ratios.shape[:-1], pairs.shape[-1]), np.nan)
        wider[picked] = pairs
        ratios = np.concatenate([ratios, wider], axis=-1)
        # A query that was decided stays so, whatever the noise of the others says later.
        picked = tuple(places[count_of(pairs) > 0] for places in picked)
        tonight = moderate(ratios, usual.pair, rules)
        seen = look(
            ratios[picked],
            size,
            tonight.at(picked),
            usual.at(picked),
            rules,
            bounds.picked(picked[-1]),
            added[picked],
            earlier[picked[-1]],
        )
        final = final.with_(picked, seen)
        going = still
        going[picked] = seen.goes_on
    suite = _suite(first, final, history, rules.noise_floor)
    drift = advance(history.drift, first.shift, first.noise, rules)
    sides = drift_side(drift, rules), suite_side(*suite, rules)
    return Decision(usual, bounds, first, final, drift, *suite, *sides, going)


def read_round(
    pairs: Array, picked: Picked, going: NDArray[np.bool_]
) -> tuple[Array, NDArray[np.bool_]]:
    """Return the pairs of a round that can be read, and the queries that go on without them.

    Args:
        pairs: The log ratios of the picked queries, (k, m).
        picked: The queries that were measured.
        going: Those that have gone on to this round by the metric that asks.
    """
    unread: NDArray[np.bool_] = np.asarray(np.isinf(pairs).any(axis=-1))
    still = np.zeros_like(going)
    still[picked] = unread
    return np.where(unread[..., None], np.nan, pairs), still & going


def _suite(first: Look, final: Look, history: Learned, floor: float) -> tuple[Array, Array]:
    """Return the suite's shift and its deviation, from all pairs of every query.

    Args:
        first: What the first round says.
        final: What all pairs say.
        history: Earlier nights.
        floor: The least noise that is believed.
    """
    middle, reach = nan_median(final.shift)[..., None], SUITE_CLIP * final.noise
    clipped = np.clip(final.shift, middle - reach, middle + reach)
    shift, noise = mean_shift(clipped, final.noise, final.side != 0)
    return shift, np.hypot(noise, nights_apart(first.noise, history.suite, floor))
