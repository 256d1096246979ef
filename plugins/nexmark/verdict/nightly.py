"""The gate: a night and the verdicts of earlier ones in, a verdict on each query and metric out.

``suspects`` tells whom to measure again before the night is judged, ``judge_night`` judges with
those fresh pairs, ``replay`` judges stored nights in order. All of them read the fresh pairs of a
query only where the first ones made it a suspect. How it decides: docs/how-the-gate-decides.md; the
arithmetic is in ``decision`` and below it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nexmark.config import Gate
from nexmark.model import SUITE, Value, metric_of
from nexmark.verdict.baseline_chain import Chain, Lineage, is_creep, shared_noise, suite_chain
from nexmark.verdict.decision import SEEN, Decision, First, decide, look, mean_shift, smallest_seen
from nexmark.verdict.eligibility import Grounds, one_night_numbers
from nexmark.verdict.location import Array, change_of, count_of, ratio_of
from nexmark.verdict.measured_night import Measured, MeasuredNight, Pair
from nexmark.verdict.noise import Earlier, Learned, Noise, Past
from nexmark.verdict.order import MIN_FRESH_PAIRS, clearing_pairs, fresh_pairs
from nexmark.verdict.verdict import Verdict

WIDTH = 1.96
"""Half the width of a 95 % interval, in noise units."""


def suspects(night: MeasuredNight, earlier: Earlier, rules: Gate) -> list[str]:
    """Return the queries whose change has to be confirmed, each by ``fresh_pairs`` of them."""
    grounds = Grounds(night, rules)
    measured = [one for one in night.measured if one.metric == rules.metric]
    fit = [one for one in measured if grounds.objection(one) is None]
    if not fit:
        return []
    history = _history(fit, grounds, Past(earlier, rules.metric, rules.mode))
    ratios = log_ratios([one.pairs for one in fit])
    _, _, first = look(ratios, history, rules, _widening(fit, grounds))
    return [one.query for one, side in zip(fit, first.side, strict=True) if side]


def judge_night(
    night: MeasuredNight, earlier: Earlier, rules: Gate, lineage: Lineage | None = None
) -> list[Verdict]:
    """Return one verdict per query and metric, and one on the suite (query ``SUITE``).

    ``earlier`` are the verdicts of earlier nights, oldest first, as this function returned them;
    ``lineage`` is what they know of the accepted builds, if more nights than these do.
    ``rules.metric`` decides; a verdict on any other metric informs and is never red.
    """
    grounds = Grounds(night, rules)
    if lineage is None:
        lineage = Lineage()
        for verdicts in earlier:
            lineage.add(verdicts, rules)
    verdicts = _judge(rules.metric, grounds, earlier, [], lineage)
    verdicts += _absent(grounds, {verdict.query for verdict in verdicts})
    places = {query: place for place, query in enumerate(_all_queries(night))}
    verdicts.sort(key=lambda verdict: places.get(verdict.query, len(places)))
    deciding = list(verdicts)
    informing = {one.metric for one in night.measured if metric_of(one.metric).judged}
    for metric in sorted(informing - {rules.metric}):
        verdicts += _judge(metric, grounds, earlier, deciding, lineage)
    measured = {(one.query, one.metric): one for one in night.measured}
    return [_with_medians(verdict, measured.get(verdict.key)) for verdict in verdicts]


def replay(nights: Iterable[MeasuredNight], rules: Gate) -> list[list[Verdict]]:
    """Judge nights in order, each with only the earlier ones that teach as history."""
    judged: list[list[Verdict]] = []
    taught: list[list[Verdict]] = []
    lineage = Lineage()
    for night in nights:
        judged.append(judge_night(night, taught, rules, lineage))
        lineage.add(judged[-1], rules, night.teaches)
        if night.teaches:
            taught.append(judged[-1])
    return judged


def _judge(
    metric: str,
    grounds: Grounds,
    earlier: Earlier,
    deciding: Sequence[Verdict],
    lineage: Lineage,
) -> list[Verdict]:
    """Judge one metric; ``deciding`` has the verdicts on the one that decides, if that is past."""
    measured = [one for one in grounds.night.measured if one.metric == metric]
    objections = [(one, grounds.objection(one)) for one in measured]
    verdicts = [grounds.without(one, *why) for one, why in objections if why is not None]
    fit = [one for one, why in objections if why is None]
    if not fit:
        return verdicts
    past = Past(earlier, metric, grounds.rules.mode)
    if metric == grounds.rules.metric:
        found = judge_deciding(fit, grounds, past, lineage)
    else:
        found = judge_informing(fit, grounds, past, deciding)
    by_query = {one.query: one for one in fit}
    return verdicts + [grounds.with_gaps(x, by_query.get(x.query)) for x in found]


def _with_medians(verdict: Verdict, measured: Measured | None) -> Verdict:
    """Return the verdict with the medians of the pairs that its ratio is of, if it has pairs."""
    verdict = replace(verdict, repetitions=verdict.pairs)
    if measured is None:
        return verdict
    candidate, baseline = measured.medians(fresh=verdict.fresh_pairs > 0)
    basis = None if candidate is None and baseline is None else measured.basis
    return replace(verdict, candidate=candidate, baseline=baseline, basis=basis)


def _absent(grounds: Grounds, judged: set[str]) -> list[Verdict]:
    """Return verdicts on queries that should be there and have no figure that decides."""
    night, metric = grounds.night, grounds.rules.metric
    return [
        grounds.blank(query, metric, Value.INVALID, night.invalid[query])
        if query in night.invalid
        else grounds.blank(query, metric, Value.MISSING, night.missing.get(query, "not measured"))
        for query in _all_queries(night)
        if query not in judged
    ]


def _all_queries(night: MeasuredNight) -> list[str]:
    measured = (one.query for one in night.measured)
    return list(dict.fromkeys((*night.expected, *measured, *night.invalid, *night.missing)))


def judge_deciding(
    fit: Sequence[Measured], grounds: Grounds, past: Past, lineage: Lineage
) -> list[Verdict]:
    """Judge the metric that decides: two stages per query, slow drift, creep, and the suite."""
    rules = grounds.rules
    ratios = log_ratios([one.pairs for one in fit])
    history, widening = _history(fit, grounds, past), _widening(fit, grounds)
    doubts = [grounds.doubt(one) for one in fit]
    fresh_of = [() if doubt else one.fresh for one, doubt in zip(fit, doubts, strict=True)]
    again = np.asarray([grounds.widening(grounds.grade_again(x.query)) for x in fit])
    decision = decide(
        ratios, history, lambda x: log_ratios([fresh_of[i] for i in x[0]]), rules, widening, again
    )
    sums, drifts = decision.drift, decision.drift_side
    seen = smallest_seen(decision.noise, count_of(ratios), rules)
    second = decision.second
    places = {index: place for place, index in enumerate(second.picked[0].tolist())}
    verdicts, chains = [], list[Chain]()
    for index, one in enumerate(fit):
        slower, faster = float(sums.slower[index]), float(sums.faster[index])
        verdict = _with_numbers(one, ratios[index], grounds)
        verdict = replace(verdict, drift_slower=slower, drift_faster=faster)
        if decision.calibrated[index]:
            verdict = _around(verdict, decision.first, index, float(seen[index]))
            drift = _said_of_drift(verdict, float(drifts[index]))
            if (chain := _chain(verdict, lineage, grounds)) is not None:
                chains.append(chain)
                drift = "; ".join(filter(None, (drift, _said_of_chain(chain, lineage, rules))))
            if (place := places.get(index)) is None:
                verdict = _quiet(verdict, drift)
            elif doubts[index]:
                verdict = _doubted(one, verdict, doubts[index], grounds)
            else:
                asked = fresh_pairs(max(verdict.pairs, grounds.night.asked or 0), rules)
                fresh = _interval(float(second.shift[place]), float(second.noise[place]))
                verdict = replace(verdict, fresh_pairs=int(second.count[place]))
                verdict = _loud(verdict, fresh, float(decision.confirmed[index]), drift, asked)
            verdict = _said_of_host(verdict, grounds)
        else:
            verdict = _calibrating(verdict, decision.noise, index, rules)
        verdicts.append(verdict)
    suite = _judge_suite(decision, grounds)
    return verdicts + [_suite_creep(x, decision, chains, lineage, rules) for x in suite]


def judge_informing(
    fit: Sequence[Measured], grounds: Grounds, past: Past, deciding: Sequence[Verdict]
) -> list[Verdict]:
    """Judge a metric that informs: on the first pairs only, WATCH at the most."""
    rules = grounds.rules
    ratios = log_ratios([one.pairs for one in fit])
    history = _history(fit, grounds, past)
    noise, calibrated, first = look(ratios, history, rules, np.zeros(len(fit)))
    needed = np.maximum(rules.inform_z * first.noise, np.log1p(rules.inform_change))
    values = {verdict.query: verdict.value for verdict in deciding}
    verdicts = []
    for index, one in enumerate(fit):
        verdict = _with_numbers(one, ratios[index], grounds)
        if calibrated[index]:
            mde = change_of(float(needed[index]) + SEEN * float(first.noise[index]))
            verdict = _around(verdict, first, index, mde)
            beyond = abs(float(first.shift[index])) > float(needed[index])
            verdict = _informed(verdict, beyond, values.get(one.query))
        else:
            verdict = _calibrating(verdict, noise, index, rules)
        verdicts.append(verdict)
    return verdicts


def log_ratios(rows: Sequence[Sequence[Pair]]) -> Array:
    """Return the log ratios of rows of pairs, (rows, most pairs), NaN where there are fewer."""
    width = max(len(row) for row in rows)
    padded = [[pair.ratio for pair in row] + [math.nan] * (width - len(row)) for row in rows]
    return np.asarray(padded)


def _history(fit: Sequence[Measured], grounds: Grounds, past: Past) -> Learned:
    queries = [one.query for one in fit]
    return past.history(queries, grounds.night.baseline, grounds.rules.history_nights)


def _widening(fit: Sequence[Measured], grounds: Grounds) -> Array:
    return np.asarray([grounds.widening(grounds.grade(one.query)) for one in fit])


def _doubted(one: Measured, verdict: Verdict, doubt: str, grounds: Grounds) -> Verdict:
    """Return the verdict on a suspect whose fresh pairs say nothing."""
    why = f"not confirmed, not cleared: while it was measured again, {doubt}"
    return grounds.without(one, Value.INVALID, f"{_way(verdict)}? {_size(verdict)}; {why}")


def _said_of_host(verdict: Verdict, grounds: Grounds) -> Verdict:
    """Return the verdict with what an unsteady host made of its noise."""
    if verdict.noise is None:
        return verdict
    host = grounds.grade(verdict.query)
    if widening := grounds.widening(host):
        usual = math.sqrt(max(verdict.noise**2 - widening**2, 0.0))
        why = f"noise {usual:.1%} widened to {verdict.noise:.1%}: {host.reason}"
        verdict = replace(verdict, reason=f"{verdict.reason}; {why}")
    again = grounds.grade_again(verdict.query)
    if verdict.fresh_pairs and again.apart > host.apart:
        why = f"noise of the fresh pairs widened: {again.reason}"
        verdict = replace(verdict, reason=f"{verdict.reason}; {why}")
    return verdict


def _with_numbers(one: Measured, ratios: Array, grounds: Grounds) -> Verdict:
    """Return a verdict with the numbers that need no history."""
    blank = grounds.blank(one.query, one.metric, Value.OK, "")
    return replace(blank, pairs=int(count_of(ratios)), **one_night_numbers(one))


def _calibrating(verdict: Verdict, noise: Noise, index: int, rules: Gate) -> Verdict:
    nights = f"{int(noise.nights[index])} of {rules.calibration_nights} nights"
    reason = f"{nights} to learn the noise from; {_size(verdict)}"
    return replace(verdict, value=Value.CALIBRATING, reason=reason)


def _around(verdict: Verdict, first: First, index: int, mde: float) -> Verdict:
    noise = float(first.noise[index])
    return replace(verdict, noise=noise, mde=mde, **_interval(float(first.shift[index]), noise))


def _interval(shift: float, noise: float) -> dict[str, Any]:
    """Return ratio, lo and hi of a log shift with its 95 % interval."""
    low, high = shift - WIDTH * noise, shift + WIDTH * noise
    return {"ratio": ratio_of(shift), "lo": ratio_of(low), "hi": ratio_of(high)}


def _size(verdict: Verdict) -> str:
    return f"ratio {verdict.ratio:.3f} ({verdict.lo:.3f} to {verdict.hi:.3f})"


def _way(suspect: Verdict) -> str:
    return "slower" if (suspect.shift or 0) > 0 else "faster"


def _said_of_drift(verdict: Verdict, side: float) -> str:
    if side == 0:
        return ""
    way, total = ("slower", verdict.drift_slower) if side > 0 else ("faster", verdict.drift_faster)
    return f"drifting {way} over the last nights (CUSUM {total:.1f})"


def _chain(verdict: Verdict, lineage: Lineage, grounds: Grounds) -> Chain | None:
    """Return what the accepted builds come to; no night that a person chose is asked for that."""
    if not grounds.night.teaches:
        return None
    return lineage.chain(verdict, grounds.rules.creep_nights)


def _said_of_chain(chain: Chain | None, lineage: Lineage, rules: Gate) -> str:
    if chain is None or not is_creep(chain, rules):
        return ""
    return f"creeping slower: {chain.words(lineage.names)}"


def _suite_creep(
    suite: Verdict, decision: Decision, chains: Sequence[Chain], lineage: Lineage, rules: Gate
) -> Verdict:
    """Return the verdict on the suite; WATCH where only the accepted builds together are slower."""
    if suite.value is not Value.OK or len(chains) < rules.suite_queries:
        return suite
    noises = decision.first.noise[decision.calibrated].tolist()
    chain = suite_chain(chains, shared_noise(suite.noise, noises))
    if not (said := _said_of_chain(chain, lineage, rules)):
        return suite
    return replace(suite, value=Value.WATCH, reason=f"{said}; tonight the {suite.reason}")


def _quiet(verdict: Verdict, drift: str) -> Verdict:
    if drift:
        return replace(verdict, value=Value.WATCH, reason=f"{drift}; tonight {_size(verdict)}")
    return replace(verdict, reason=f"{_size(verdict)}, {verdict.mde:.1%} could be seen")


def _loud(
    verdict: Verdict, fresh: Mapping[str, Any], side: float, drift: str, asked: int
) -> Verdict:
    """Return the verdict on a suspect that was to have ``asked`` fresh pairs.

    ``fresh`` has the numbers of those that there are; ``side`` is 0 where they did not confirm.
    """
    first, way, count = _size(verdict), _way(verdict), verdict.fresh_pairs
    if count < MIN_FRESH_PAIRS:
        reason = f"{way}? {first}; {count} of {asked} fresh pairs: not confirmed, not cleared"
        return replace(verdict, value=Value.SUSPECT, reason=reason)
    verdict = replace(verdict, **fresh)
    of = f" of {asked}" if count < asked else ""
    found = f"{_size(verdict)} in {count}{of} fresh pairs, after {first}"
    if side > 0:
        return replace(verdict, value=Value.REGRESSION, reason=f"slower: {found}")
    if side < 0:
        return replace(verdict, value=Value.FASTER, reason=f"faster: {found}")
    if count < (needed := clearing_pairs(asked)):
        reason = f"{way}? {found}: {needed} fresh pairs are needed to clear it"
        return replace(verdict, value=Value.SUSPECT, reason=reason)
    if drift:
        return replace(verdict, value=Value.WATCH, reason=f"{drift}; tonight not {way}: {found}")
    return replace(verdict, value=Value.UNCONFIRMED, reason=f"not {way}: {found}")


def _informed(verdict: Verdict, beyond: bool, deciding: Value | None) -> Verdict:
    if not beyond:
        return _quiet(verdict, "")
    shift = verdict.shift or 0.0
    way = f"{'more' if shift > 0 else 'less'}: {_size(verdict)}"
    if not metric_of(verdict.metric).worse(shift):
        return replace(verdict, value=Value.FASTER, reason=way)
    waits = deciding in (Value.OK, Value.UNCONFIRMED, Value.FASTER)
    cause = ", CPU time is not: it waits for something" if waits else ""
    return replace(verdict, value=Value.WATCH, reason=f"{way}{cause}")


def _judge_suite(decision: Decision, grounds: Grounds) -> list[Verdict]:
    """Return the verdict on the suite, none when too few queries are calibrated."""
    rules = grounds.rules
    count = int(np.sum(decision.calibrated))
    if count < rules.suite_queries:
        return []
    shift, noise = float(decision.suite_shift), float(decision.suite_noise)
    known = np.where(decision.calibrated, decision.first.shift, np.nan)
    ratio = float(mean_shift(known, decision.confirmed != 0))
    numbers = _interval(ratio, noise) | {"mde": change_of((rules.suite_z + SEEN) * noise)}
    verdict = grounds.blank(SUITE, rules.metric, Value.OK, "")
    verdict = replace(verdict, **numbers, shift=shift, noise=noise, pairs=count)
    if float(decision.suite_side) == 0:
        return [replace(verdict, reason=f"geometric mean of {count} queries: {_size(verdict)}")]
    slower = float(decision.suite_side) > 0
    reason = f"the geometric mean of {count} queries is {'slower' if slower else 'faster'}"
    value = Value.REGRESSION if slower else Value.FASTER
    return [replace(verdict, value=value, reason=f"{reason}: {_size(verdict)}")]
