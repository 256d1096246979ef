"""The gate: a night and the verdicts of earlier ones in, a verdict on each query and metric out.

``going_on`` tells after a round which queries the next one measures, ``judge_night`` judges with
all rounds that there are, ``replay`` judges stored nights in order. All of them read the pairs of a
later round only of queries that would have been measured in it. How it decides:
docs/how-the-gate-decides.md; the arithmetic is in ``decision`` and below it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nexmark.config import Gate
from nexmark.model import (
    BATCH_CPU,
    CPU,
    FALLS_BACK,
    GROWTH,
    MIN_PAIRS,
    SUITE,
    Value,
    grouped,
    metric_of,
)
from nexmark.verdict.baseline_chain import Chain, Lineage, is_creep, shared_noise, suite_chain
from nexmark.verdict.decision import SEEN, Decision, estimate, pairs_to_decide, smallest_seen
from nexmark.verdict.eligibility import Grounds, one_night_numbers
from nexmark.verdict.growth import growing_on, judge_growth
from nexmark.verdict.left_open import LeftOpen
from nexmark.verdict.location import Array, change_of, count_of, ratio_of
from nexmark.verdict.measured_night import Measured, MeasuredNight
from nexmark.verdict.measured_rounds import MeasuredRounds, history_of, log_ratios
from nexmark.verdict.moderation import moderate
from nexmark.verdict.noise import Earlier, Past, learn
from nexmark.verdict.order import MIN_FRESH_PAIRS
from nexmark.verdict.verdict import Verdict

WIDTH = 1.96
"""Half the width of a 95 % interval, in standard deviations."""


def going_on(night: MeasuredNight, earlier: Earlier, rules: Gate, number: int) -> list[str]:
    """Return the queries that the next round measures, the most urgent first.

    What earlier nights of the same builds left undecided goes before the others. Then come the
    queries that are beyond their bound and have only to be confirmed, slower ones before faster
    ones; then the others, those with the most evidence for a slowdown first.

    Args:
        night: What is measured so far.
        earlier: The verdicts of earlier nights, as for ``judge_night``.
        rules: The gate.
        number: The next round, from 2.
    """
    if rules.metric == GROWTH:
        return growing_on(night, rules)
    grounds = Grounds(night, rules)
    measured = [one for one in night.measured if one.metric == grounds.metric(one.query)]
    fit = [one for one in measured if grounds.objection(one) is None]
    if not fit:
        return []
    rounds = MeasuredRounds(fit, grounds, _past(fit, earlier, rules))
    decision = rounds.decide(last=number - 1)
    evidence = np.where(decision.going, decision.final.evidence, -math.inf)
    going = dict(zip((one.query for one in fit), evidence.tolist(), strict=True))
    if guarded := _guarded(fit, grounds):
        guardrail = MeasuredRounds(guarded, grounds, _past(guarded, earlier, rules))
        slower = decision.final.side > 0
        settled = {one.query for one, is_slower in zip(fit, slower, strict=True) if is_slower}
        seen = guardrail.guard(_rounds_read(rounds), settled, last=number - 1)
        for one, goes_on, by_it in zip(guarded, seen.going, seen.final.beyond(0.0), strict=True):
            if goes_on:
                going[one.query] = max(going[one.query], float(by_it))
    open_before = {one.query: bool(one.before) for one in fit}
    beyond = dict(zip((one.query for one in fit), decision.final.beyond.tolist(), strict=True))
    places = {1.0: 0, -1.0: 1, 0.0: 2}

    def by_urgency(query: str) -> tuple[bool, int, float]:
        return not open_before[query], places[beyond[query]], -going[query]

    return sorted(
        (query for query, urgency in going.items() if urgency > -math.inf), key=by_urgency
    )


def judge_night(
    night: MeasuredNight, earlier: Earlier, rules: Gate, lineage: Lineage | None = None
) -> list[Verdict]:
    """Return one verdict per query and metric, and one on the suite (query ``SUITE``).

    ``rules.metric`` decides, or the metric that it falls back to where not every pair of a query
    has it; a verdict on any other metric informs and is never red.

    Args:
        night: What was measured.
        earlier: The verdicts of earlier nights, oldest first, as this function returned them.
        rules: The gate.
        lineage: What more nights than these know of the accepted builds; None: only these.
    """
    if rules.metric == GROWTH:
        return [*judge_growth(night, rules), *_fixed_costs(night, earlier, rules)]
    grounds = Grounds(night, rules)
    if lineage is None:
        lineage = Lineage()
        for verdicts in earlier:
            lineage.add(verdicts, rules)
    deciding = [one for one in night.measured if one.metric == grounds.metric(one.query)]
    verdicts, fit = _with_ground(deciding, grounds)
    read: dict[str, int] = {}
    if fit:
        rounds = MeasuredRounds(fit, grounds, _past(fit, earlier, rules))
        verdicts += judge_deciding(rounds, lineage)
        read = _rounds_read(rounds)
    guarded = _guarded(fit, grounds)
    guardrail = judge_guardrail(guarded, grounds, _past(guarded, earlier, rules), read, verdicts)
    overruled = {verdict.query for verdict in guardrail if verdict.decides}
    verdicts = [replace(one, decides=one.query not in overruled) for one in verdicts]
    verdicts += _absent(grounds, {verdict.query for verdict in verdicts})
    places = {query: place for place, query in enumerate(_all_queries(night))}
    verdicts.sort(key=lambda verdict: places.get(verdict.query, len(places)))
    decided = list(verdicts)
    judged = {id(one) for one in (*deciding, *guarded)}
    others = [one for one in night.measured if id(one) not in judged]
    for metric, of_metric in sorted(grouped(others, lambda one: one.metric).items()):
        if metric_of(metric).judged:
            without, fit = _with_ground(of_metric, grounds)
            verdicts += without
            if fit:
                past = _past(fit, earlier, rules)
                verdicts += judge_informing(fit, grounds, past, decided)
    return [*verdicts, *guardrail]


def _fixed_costs(night: MeasuredNight, earlier: Earlier, rules: Gate) -> list[Verdict]:
    """Return verdicts that inform on the CPU time of a batch of a soak night, by all its pairs."""
    grounds = Grounds(night, rules)
    measured = (
        replace(one, pairs=(*one.before, *one.all_pairs), later=(), before=())
        for one in night.measured
        if one.metric == BATCH_CPU and one.query not in night.invalid
    )
    counts = [(one, sum(pair.complete for pair in one.pairs)) for one in measured]
    fit = [one for one, count in counts if count > 1]
    verdicts = judge_informing(fit, grounds, _past(fit, earlier, rules), []) if fit else []
    return verdicts + [_of_one_pair(one, grounds) for one, count in counts if count == 1]


def _of_one_pair(one: Measured, grounds: Grounds) -> Verdict:
    """Return a verdict on a metric that informs, of a single pair: its ratio has no interval."""
    ratios = log_ratios([one.pairs])[0]
    ratio = ratio_of(float(np.nansum(ratios)))
    reason = f"ratio {ratio:.3f} in 1 pair, which has no interval"
    return replace(_with_numbers(one, ratios, grounds), ratio=ratio, reason=reason)


def replay(nights: Iterable[MeasuredNight], rules: Gate) -> list[list[Verdict]]:
    """Judge nights in order, each with only the earlier ones that teach as history.

    Pairs of the same two builds add up, as they do in a results database. A night that teaches
    nothing is a comparison that a person asked for, and has the rules of one.
    """
    judged: list[list[Verdict]] = []
    taught: list[list[Verdict]] = []
    lineage, left_open = Lineage(), LeftOpen()
    for night in nights:
        its_rules = rules if night.teaches else rules.for_comparison()
        judged.append(judge_night(left_open.added_to(night), taught, its_rules, lineage))
        left_open.add(night, judged[-1])
        lineage.add(judged[-1], its_rules, night.teaches)
        if night.teaches:
            taught.append(judged[-1])
    return judged


def _guarded(fit: Iterable[Measured], grounds: Grounds) -> list[Measured]:
    """Return the CPU time of the executors of queries that the CPU time of tasks decides."""
    by_tasks = {one.query for one in fit if one.metric in FALLS_BACK}
    return [
        one
        for one in grounds.night.measured
        if one.query in by_tasks
        and one.metric == FALLS_BACK[grounds.rules.metric]
        and grounds.objection(one) is None
    ]


def _rounds_read(rounds: MeasuredRounds) -> dict[str, int]:
    """Return by query how many rounds the metric that decides has read."""
    return {one.query: read for one, read in zip(rounds.fit, rounds.read, strict=True)}


def _past(fit: Sequence[Measured], earlier: Earlier, rules: Gate) -> Past:
    """Return what earlier nights say of queries by the metrics of tonight."""
    return Past(earlier, {one.query: one.metric for one in fit}, rules.mode)


def _with_ground(
    measured: Iterable[Measured], grounds: Grounds
) -> tuple[list[Verdict], list[Measured]]:
    """Return verdicts on what cannot be judged, and what can."""
    objections = [(one, grounds.objection(one)) for one in measured]
    verdicts = [
        _with_medians(grounds.without(one, *why), one) for one, why in objections if why is not None
    ]
    return verdicts, [one for one, why in objections if why is None]


def _with_medians(verdict: Verdict, measured: Measured, rounds: int = 1) -> Verdict:
    """Return the verdict with the medians of the pairs of its first ``rounds`` rounds."""
    candidate, baseline = measured.medians(rounds)
    basis = None if candidate is None and baseline is None else measured.basis
    return replace(
        verdict,
        candidate=candidate,
        baseline=baseline,
        basis=basis,
        repetitions=verdict.pairs,
    )


def _absent(grounds: Grounds, judged: set[str]) -> list[Verdict]:
    """Return verdicts on queries that should be there and have no figure that decides."""
    night = grounds.night
    invalid = {query: (Value.INVALID, reason) for query, reason in night.invalid.items()}
    return [
        grounds.blank(
            query,
            grounds.metric(query),
            *invalid.get(query, (Value.MISSING, night.missing.get(query, "not measured"))),
        )
        for query in _all_queries(night)
        if query not in judged
    ]


def _all_queries(night: MeasuredNight) -> list[str]:
    measured = (one.query for one in night.measured)
    return list(dict.fromkeys((*night.expected, *measured, *night.invalid, *night.missing)))


def judge_deciding(rounds: MeasuredRounds, lineage: Lineage) -> list[Verdict]:
    """Judge the metric that decides: each query by its rounds, drift, creep, and the suite.

    Args:
        rounds: The queries that have ground for a verdict.
        lineage: The accepted builds.
    """
    fit, grounds, rules = rounds.fit, rounds.grounds, rounds.grounds.rules
    decision = rounds.decide()
    final, bounds = decision.final, decision.bounds
    smallest = smallest_seen(final, decision.usual, rules, bounds)
    needed = pairs_to_decide(final, rules, bounds)
    verdicts, chains = [], list[Chain]()
    for place, one in enumerate(fit):
        verdict = _with_numbers(one, log_ratios([one.pairs])[0], grounds)
        verdict = _decided(verdict, decision, place, float(smallest[place]))
        quiet = []
        if said := _said_of_drift(verdict, float(decision.drift_side[place])):
            quiet.append(said)
        if (chain := _chain(verdict, lineage, grounds)) is not None:
            chains.append(chain)
            if said := _said_of_chain(chain, lineage, rules):
                quiet.append(said)
        verdict = _judged(verdict, one, decision, place, float(needed[place]), rules)
        if verdict.value in (Value.OK, Value.UNDECIDED) and quiet:
            reason = f"{'; '.join(quiet)}; tonight {verdict.reason}"
            verdict = replace(verdict, value=Value.WATCH, reason=reason)
        verdict = _said_of_rounds(verdict, rounds, place)
        verdict = _said_of_host(verdict, one, grounds)
        verdict = _with_medians(verdict, one, rounds.read[place])
        verdicts.append(grounds.with_gaps(verdict, one))
    suite = _judge_suite(decision, grounds)
    return verdicts + [_suite_creep(each, decision, chains, lineage, rules) for each in suite]


def judge_guardrail(
    fit: Sequence[Measured],
    grounds: Grounds,
    past: Past,
    read: Mapping[str, int],
    deciding: Sequence[Verdict],
) -> list[Verdict]:
    """Judge all CPU time of the executors where the CPU time of tasks decides.

    It decides a query that is slower by it, and not by the CPU time of tasks; else it informs.

    Args:
        fit: The queries that have ground for a verdict.
        grounds: What the results and the hosts of the night allow to be said.
        past: The verdicts of earlier nights on this metric.
        read: By query, the rounds that the metric that decides has read.
        deciding: Tonight's verdicts on that metric.
    """
    if not fit:
        return []
    rounds = MeasuredRounds(fit, grounds, past)
    settled = {verdict.query for verdict in deciding if verdict.value is Value.REGRESSION}
    seen = rounds.guard(read, settled)
    rules, half, evidence = rounds.rules, seen.final.half, seen.final.beyond(0.0)
    values = {verdict.query: verdict.value for verdict in deciding}
    verdicts = []
    for place, one in enumerate(fit):
        shift, width = float(seen.final.shift[place]), float(half[place])
        noise = float(seen.final.noise[place])
        needed = max(rules.guardrail_z * noise, math.log1p(rules.matters))
        verdict = replace(
            _with_numbers(one, log_ratios([one.pairs])[0], grounds),
            noise=float(seen.first.noise[place]),
            fresh_pairs=int(seen.fresh[place]),
            mde=change_of(needed + SEEN * noise),
            ratio=ratio_of(shift),
            lo=ratio_of(shift - width),
            hi=ratio_of(shift + width),
        )
        count, value = int(seen.pairs[place]), values.get(one.query)
        if seen.confirmed[place] and value is not Value.REGRESSION:
            reason = f"{_more_work(verdict)} in {count} pairs, {verdict.fresh_pairs} of them after"
            reason = f"{reason} the first round; the CPU time of tasks is {value}: {_OTHER_THREADS}"
            verdict = replace(verdict, value=Value.REGRESSION, reason=reason, decides=True)
        else:
            far = abs(float(evidence[place])) > rules.inform_z
            far = far and abs(shift) > math.log1p(rules.inform_change)
            verdict = _informed(verdict, far, value)
        verdict = _with_medians(verdict, one, rounds.read[place])
        verdicts.append(grounds.with_gaps(verdict, one))
    return verdicts


_OTHER_THREADS = "garbage collection, the compiler or other threads of the executors do more"


def _more_work(verdict: Verdict) -> str:
    return f"more CPU time of the executors: {_size(verdict)}"


def judge_informing(
    fit: Sequence[Measured], grounds: Grounds, past: Past, deciding: Sequence[Verdict]
) -> list[Verdict]:
    """Judge a metric that informs: by the first round only, WATCH at the most.

    Args:
        fit: The queries that have ground for a verdict.
        grounds: What the results and the hosts of the night allow to be said.
        past: The verdicts of earlier nights on this metric.
        deciding: Tonight's verdicts on the metric that decides.
    """
    rules = grounds.rules.for_metrics(one.metric for one in fit)
    ratios = log_ratios([one.pairs for one in fit])
    history = history_of(fit, grounds, past)
    usual = learn(history.shift, history.spread, history.pairs, rules.noise_floor)
    seen = estimate(ratios, moderate(ratios, usual.pair, rules), usual, np.zeros(len(fit)))
    needed = np.maximum(rules.inform_z * seen.noise, np.log1p(rules.inform_change))
    evidence, half = seen.beyond(0.0), seen.half
    values = {verdict.query: verdict.value for verdict in deciding}
    verdicts = []
    for place, one in enumerate(fit):
        verdict = _with_numbers(one, ratios[place], grounds)
        shift, noise = float(seen.shift[place]), float(seen.noise[place])
        verdict = replace(
            verdict,
            noise=noise,
            mde=change_of(float(needed[place]) + SEEN * noise),
            ratio=ratio_of(shift),
            lo=ratio_of(shift - float(half[place])),
            hi=ratio_of(shift + float(half[place])),
        )
        far = abs(float(evidence[place])) > rules.inform_z
        far = far and abs(shift) > math.log1p(rules.inform_change)
        verdict = _informed(verdict, far, values.get(one.query))
        verdicts.append(grounds.with_gaps(_with_medians(verdict, one), one))
    return verdicts


def _decided(verdict: Verdict, decision: Decision, place: int, smallest: float) -> Verdict:
    """Return the verdict with the numbers of all its pairs.

    Args:
        verdict: What is known of the query without the decision.
        decision: What the gate decided.
        place: The place of the query in the arrays of the decision.
        smallest: The smallest slowdown that all rounds would find.
    """
    final = decision.final
    return replace(
        verdict,
        noise=_of_first_pairs(verdict, decision, place),
        fresh_pairs=int(final.fresh[place]),
        mde=smallest,
        ratio=ratio_of(float(final.shift[place])),
        lo=ratio_of(float(final.lo[place])),
        hi=ratio_of(float(final.hi[place])),
        drift_slower=float(decision.drift.slower[place]),
        drift_faster=float(decision.drift.faster[place]),
    )


def _of_first_pairs(verdict: Verdict, decision: Decision, place: int) -> float:
    """Return the deviation of the shift of tonight's first pairs, from which later nights learn."""
    known = float(decision.first.pairs[place])  # with pairs of earlier nights
    return float(decision.first.noise[place]) * math.sqrt(known / max(verdict.pairs, 1))


def _judged(
    verdict: Verdict, one: Measured, decision: Decision, place: int, needed: float, rules: Gate
) -> Verdict:
    """Return the verdict with its value, and the reason in words.

    Args:
        verdict: The verdict with its numbers.
        one: The pairs of the query.
        decision: What the gate decided.
        place: The place of the query in the arrays of the decision.
        needed: The pairs that would decide it.
        rules: The gate.
    """
    final = decision.final
    count = int(final.pairs[place])
    pairs = f"{count} pairs"
    if one.before:
        pairs += f", {len(one.before)} of them of earlier nights"
    side, beyond = float(final.side[place]), float(final.beyond[place])
    if side:
        value, way = (Value.REGRESSION, "slower") if side > 0 else (Value.FASTER, "faster")
        later = f"{pairs}, {int(final.later[place])} of them after the first round"
        return replace(verdict, value=value, reason=f"{way}: {_size(verdict)} in {later}")
    shown = float(final.lo[place]) > math.log1p(rules.matters)
    unconfirmed = final.goes_on[place] and final.later[place] < MIN_FRESH_PAIRS
    if unconfirmed and (beyond or shown):
        way = "faster" if beyond < 0 else "slower"
        later = f"{int(final.later[place])} of them after the first round"
        reason = f"{way}? {_size(verdict)} in {pairs}, {later}; {MIN_FRESH_PAIRS} have to show it"
        return replace(verdict, value=Value.SUSPECT, reason=reason)
    if float(final.hi[place]) < math.log1p(rules.matters):
        excluded = f"a slowdown of {_percent(rules.matters)} is excluded"
        return replace(verdict, value=Value.OK, reason=f"{_size(verdict)} in {pairs}; {excluded}")
    # They are of another run, which has at least as many as the gate judges.
    further = max(round(needed) - count, MIN_PAIRS) if math.isfinite(needed) else None
    more = f"{further} more pairs would decide {_percent(rules.matters)}"
    if further is None:
        more = f"no number of pairs would decide {_percent(rules.matters)} if the ratio stays so"
    reason = f"{_range(verdict)} in {pairs}; {more}"
    return replace(verdict, value=Value.UNDECIDED, reason=reason, further_pairs=further)


def _said_of_rounds(verdict: Verdict, rounds: MeasuredRounds, place: int) -> Verdict:
    """Return the verdict with why the pairs of a later round were not read."""
    lost = rounds.lost[place]
    if not lost or verdict.value in (Value.OK, Value.REGRESSION, Value.FASTER):
        return verdict
    why = (f"the pairs of round {number} say nothing: {doubt}" for number, doubt in lost.items())
    return replace(verdict, reason="; ".join([verdict.reason, *why]))


def _said_of_host(verdict: Verdict, one: Measured, grounds: Grounds) -> Verdict:
    """Return the verdict with what an unsteady host made of its noise."""
    if verdict.noise is None:
        return verdict
    host = grounds.grade(verdict.query)
    if widening := grounds.widening(host):
        usual = math.sqrt(max(verdict.noise**2 - widening**2, 0.0))
        why = f"noise {usual:.1%} widened to {verdict.noise:.1%}: {host.reason}"
        verdict = replace(verdict, reason=f"{verdict.reason}; {why}")
    later = grounds.grade_later(one)
    if verdict.fresh_pairs and later.apart > host.apart:
        why = f"noise of all pairs widened: {later.reason}"
        verdict = replace(verdict, reason=f"{verdict.reason}; {why}")
    return verdict


def _with_numbers(one: Measured, ratios: Array, grounds: Grounds) -> Verdict:
    """Return a verdict with the numbers that need no history."""
    blank = grounds.blank(one.query, one.metric, Value.OK, "")
    return replace(blank, pairs=int(count_of(ratios)), **one_night_numbers(one))


def _size(verdict: Verdict) -> str:
    return f"ratio {verdict.ratio:.3f} ({verdict.lo:.3f} to {verdict.hi:.3f})"


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _range(verdict: Verdict) -> str:
    """Return the interval in words: between 3.8 % faster and 14.1 % slower."""
    lo, hi = verdict.lo or 1.0, verdict.hi or 1.0
    low, high = _percent(round(abs(lo - 1), 3)), _percent(round(abs(hi - 1), 3))
    if lo < 1 < hi:
        return f"between {low} faster and {high} slower"
    if hi <= 1:
        return f"between {high} and {low} faster"
    return f"between {low} and {high} slower"


def _said_of_drift(verdict: Verdict, side: float) -> str:
    if side == 0:
        return ""
    way, total = ("slower", verdict.drift_slower) if side > 0 else ("faster", verdict.drift_faster)
    return f"a little {way} night after night (drift {total:.1f})"


def _chain(verdict: Verdict, lineage: Lineage, grounds: Grounds) -> Chain | None:
    """Return what the accepted builds come to; no night that a person chose is asked for that."""
    if not grounds.night.teaches:
        return None
    return lineage.chain(verdict, grounds.rules.creep_nights)


def _said_of_chain(chain: Chain | None, lineage: Lineage, rules: Gate) -> str:
    if chain is None or not is_creep(chain, rules):
        return ""
    return f"accepted builds add up: {chain.words(lineage.names)}"


def _suite_creep(
    suite: Verdict, decision: Decision, chains: Sequence[Chain], lineage: Lineage, rules: Gate
) -> Verdict:
    """Return the verdict on the suite; WATCH where only the accepted builds together are slower.

    Args:
        suite: The verdict by tonight's pairs.
        decision: What the gate decided.
        chains: The chains of accepted builds of the queries.
        lineage: The accepted builds.
        rules: The gate.
    """
    if suite.value is not Value.OK or len(chains) < rules.suite_queries:
        return suite
    noises = decision.first.noise.tolist()
    chain = suite_chain(chains, shared_noise(suite.noise, noises))
    if not (said := _said_of_chain(chain, lineage, rules)):
        return suite
    return replace(suite, value=Value.WATCH, reason=f"{said}; tonight the {suite.reason}")


def _informed(verdict: Verdict, beyond: bool, deciding: Value | None) -> Verdict:
    if not beyond:
        return replace(verdict, reason=f"{_size(verdict)}, {verdict.mde:.1%} could be seen")
    shift = math.log(verdict.ratio or 1.0)
    way = f"{'more' if shift > 0 else 'less'}: {_size(verdict)}"
    if not metric_of(verdict.metric).worse(shift):
        return replace(verdict, value=Value.FASTER, reason=way)
    unchanged = deciding in (Value.OK, Value.FASTER)
    cause = ""
    if unchanged and verdict.metric == CPU:
        cause = f", the CPU time of tasks is not: {_OTHER_THREADS}"
    elif unchanged:
        cause = ", CPU time is not: it waits for something"
    return replace(verdict, value=Value.WATCH, reason=f"{way}{cause}")


def _judge_suite(decision: Decision, grounds: Grounds) -> list[Verdict]:
    """Return the verdict on the suite, none when too few queries are measured."""
    rules = grounds.rules
    count = int(np.sum(~np.isnan(decision.final.shift)))
    if count < rules.suite_queries:
        return []
    shift, noise = float(decision.suite_shift), float(decision.suite_noise)
    verdict = replace(
        grounds.blank(SUITE, grounds.metric(SUITE), Value.OK, ""),
        ratio=ratio_of(shift),
        lo=ratio_of(shift - WIDTH * noise),
        hi=ratio_of(shift + WIDTH * noise),
        mde=change_of((rules.suite_z + SEEN) * noise),
        shift=shift,
        noise=noise,
        pairs=count,
        repetitions=count,
    )
    if float(decision.suite_side) == 0:
        return [replace(verdict, reason=f"geometric mean of {count} queries: {_size(verdict)}")]
    slower = float(decision.suite_side) > 0
    reason = f"the geometric mean of {count} queries is {'slower' if slower else 'faster'}"
    value = Value.REGRESSION if slower else Value.FASTER
    return [replace(verdict, value=value, reason=f"{reason}: {_size(verdict)}")]
