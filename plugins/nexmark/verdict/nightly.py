"""The gate: a night and the verdicts of earlier ones in, a verdict on each query and metric out.

``suspects`` tells whom to measure again before the night is judged, ``judge_night`` judges with
those fresh pairs, ``replay`` judges stored nights in order. All of them read the fresh pairs of a
query only where the first ones made it a suspect. How it decides: research/regression-gates.md
section 6; the arithmetic is in ``decision`` and below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nexmark.config import Gate
from nexmark.model import Value, metric_of
from nexmark.verdict import paired_verdicts as paired
from nexmark.verdict.eligibility import Grounds
from nexmark.verdict.measured_night import Measured, MeasuredNight, QueryVerdict
from nexmark.verdict.noise import Earlier, Past


def suspects(night: MeasuredNight, earlier: Earlier, rules: Gate) -> list[str]:
    """Return the queries whose change has to be confirmed, each by ``fresh_pairs`` of them."""
    grounds = Grounds(night, rules)
    fit = [one for one in _of_metric(night, rules.metric) if grounds.objection(one) is None]
    return paired.suspects(fit, grounds, Past(earlier, rules.metric, rules.mode)) if fit else []


def judge_night(night: MeasuredNight, earlier: Earlier, rules: Gate) -> list[QueryVerdict]:
    """Return one verdict per query and metric, and one on the suite (query ``SUITE``).

    ``earlier`` are the verdicts of earlier nights, oldest first, as this function returned them.
    ``rules.metric`` decides; a verdict on any other metric informs and is never red.
    """
    grounds = Grounds(night, rules)
    verdicts = _judge(rules.metric, grounds, earlier, [])
    verdicts += _absent(grounds, {verdict.query for verdict in verdicts})
    places = {query: place for place, query in enumerate(_all_queries(night))}
    verdicts.sort(key=lambda verdict: places.get(verdict.query, len(places)))
    deciding = list(verdicts)
    for metric in sorted({one.metric for one in night.measured} - {rules.metric}):
        if not metric_of(metric).judged:
            continue
        verdicts += _judge(metric, grounds, earlier, deciding)
    return verdicts


def replay(nights: Iterable[MeasuredNight], rules: Gate) -> list[list[QueryVerdict]]:
    """Judge nights in order, each with only the earlier ones that teach as history."""
    judged: list[list[QueryVerdict]] = []
    taught: list[list[QueryVerdict]] = []
    for night in nights:
        judged.append(judge_night(night, taught, rules))
        if night.teaches:
            taught.append(judged[-1])
    return judged


def _of_metric(night: MeasuredNight, metric: str) -> list[Measured]:
    return [one for one in night.measured if one.metric == metric]


def _judge(
    metric: str, grounds: Grounds, earlier: Earlier, deciding: Sequence[QueryVerdict]
) -> list[QueryVerdict]:
    """Judge one metric; ``deciding`` has the verdicts on the one that decides, if that is past."""
    measured = _of_metric(grounds.night, metric)
    objections = {one.query: grounds.objection(one) for one in measured}
    verdicts = [
        grounds.without(one, *objection)
        for one in measured
        if (objection := objections[one.query]) is not None
    ]
    fit = [one for one in measured if objections[one.query] is None]
    if not fit:
        return verdicts
    past = Past(earlier, metric, grounds.rules.mode)
    if metric == grounds.rules.metric:
        found = paired.judge_deciding(fit, grounds, past)
    else:
        found = paired.judge_informing(fit, grounds, past, deciding)
    by_query = {one.query: one for one in fit}
    return verdicts + [grounds.with_gaps(x, by_query.get(x.query)) for x in found]


def _absent(grounds: Grounds, judged: set[str]) -> list[QueryVerdict]:
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
