"""The guardrail of a night: all CPU time of the executors, where the CPU time of tasks decides.

Garbage collection and the compiler are noisy, so the CPU time of tasks finds a slowdown of a query
with fewer pairs. A build that makes more work for them is seen in the CPU time of the executors
alone. So that is looked at after each round, too: a query that looks slower by it is measured on,
and it is slower if all pairs say so beyond a bound of its own, and the pairs after the first round
by themselves. It finds large changes only, and adds little to the error of the night.

Arrays are as in ``decision``.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nexmark.config import Gate
from nexmark.verdict.decision import (
    Estimate,
    More,
    confirms,
    estimate,
    later_pairs,
    read_round,
)
from nexmark.verdict.location import Array, agree, count_of
from nexmark.verdict.moderation import moderate
from nexmark.verdict.noise import Learned, learn
from nexmark.verdict.order import rounds_from


@dataclass(frozen=True)
class Guarded:
    """What the guardrail says of each query, (..., queries).

    ``first`` is of the first round, ``final`` of all pairs that were read, ``fresh`` how many of
    them are of later rounds, ``pairs`` how many there are. ``confirmed``: it is slower; ``going``:
    it is measured on.
    """

    first: Estimate
    final: Estimate
    pairs: Array
    fresh: Array
    confirmed: NDArray[np.bool_]
    going: NDArray[np.bool_]


def guard(
    ratios: Array,
    history: Learned,
    more: More,
    read: NDArray[np.int_],
    settled: NDArray[np.bool_],
    rules: Gate,
    widening: Array,
    again: Array | None = None,
    asked: int | None = None,
    last: int | None = None,
    before: NDArray[np.int_] | int = 0,
) -> Guarded:
    """Look at the CPU time of the executors round by round.

    Args:
        ratios: Log ratios of the first round, (..., queries, n).
        history: Earlier nights.
        more: Measures or reads a further round.
        read: The rounds in which the metric that decides has measured each query.
        settled: Which queries are slower by that metric: no round is measured for more evidence.
        rules: The gate.
        widening: The deviation that hosts add to the first round.
        again: The deviation that they add once later rounds are in; None: ``widening``.
        asked: The pairs that the first round should have had; None: n.
        last: The last round that there is so far; None: all that the gate knows.
        before: How many pairs of each query are of earlier nights; they are the first among those
            of the first round.
    """
    usual = learn(history.shift, history.spread, history.pairs, rules.noise_floor)
    size = ratios.shape[-1]
    planned = rounds_from(asked or size, rules)
    tonight = moderate(ratios, usual.pair, rules)
    first = final = estimate(ratios, tonight, usual, widening)
    slower = np.ones_like(widening)
    confirmed = agree(ratios, slower) & (len(planned) == 1)
    later = later_pairs(ratios, size, before)
    confirmed |= confirms(later, slower, tonight, usual, rules, widening)
    confirmed &= _is_slower(final, rules)
    going = _looks_slower(final, rules) & (len(planned) > 1) & ~confirmed
    added = widening if again is None else again
    for number in range(2, (last or len(planned)) + 1):
        picked = np.nonzero(((going & ~settled) | (read >= number)) & ~confirmed)
        if picked[0].size == 0:
            break
        pairs, still = read_round(more(picked, number), picked, going)
        wider = np.full((*ratios.shape[:-1], pairs.shape[-1]), np.nan)
        wider[picked] = pairs
        ratios = np.concatenate([ratios, wider], axis=-1)
        measured = count_of(wider) > 0
        tonight = moderate(ratios, usual.pair, rules)
        final = estimate(ratios, tonight, usual, added)
        later = later_pairs(ratios, size, before)
        alone = confirms(later, slower, tonight, usual, rules, added)
        confirmed |= measured & _is_slower(final, rules) & alone
        going = still | (measured & _looks_slower(final, rules) & ~confirmed)
    pairs, fresh = count_of(ratios), count_of(ratios[..., size:])
    return Guarded(first, final, pairs, fresh, confirmed, going & ~settled)


def _is_slower(seen: Estimate, rules: Gate) -> NDArray[np.bool_]:
    """Tell where a slowdown matters and is beyond the noise."""
    beyond = seen.beyond(0.0) > rules.guardrail_z
    result: NDArray[np.bool_] = beyond & (seen.shift > math.log1p(rules.matters))
    return result


def _looks_slower(seen: Estimate, rules: Gate) -> NDArray[np.bool_]:
    """Tell where more pairs may show a slowdown that matters."""
    beyond = seen.beyond(0.0) > rules.guardrail_pursue_z
    result: NDArray[np.bool_] = beyond & (seen.shift > math.log1p(rules.confirm_change))
    return result
