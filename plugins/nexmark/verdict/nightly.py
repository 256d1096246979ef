"""The gate: a night and the verdicts of earlier ones in, a verdict on each query and metric out.

``suspects`` tells whom to measure again before the night is judged, ``judge_night`` judges with
those fresh pairs, ``replay`` judges stored nights in order. All of them read the fresh pairs of a
query only where the first ones made it a suspect. How it decides: research/regression-gates.md
section 6; the arithmetic is in ``decision`` and below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nexmark.verdict import paired, single
from nexmark.verdict.comparison import Value
from nexmark.verdict.grounds import Grounds
from nexmark.verdict.nights import Measured, Night, QueryVerdict
from nexmark.verdict.past import Earlier, Past
from nexmark.verdict.rules import Rules

PAIRED = "paired"


def suspects(night: Night, earlier: Earlier, rules: Rules) -> list[str]:
    """Return the queries whose change has to be confirmed by fresh pairs, as the night has them.

    Each needs ``fresh_pairs`` of them. None in history mode: there is no second arm.
    """
    if rules.mode != PAIRED:
        return []
    grounds = Grounds(night, rules)
    fit = [one for one in _of_metric(night, rules.metric) if grounds.objection(one) is None]
    return paired.suspects(fit, grounds, Past(earlier, rules.metric, rules.mode)) if fit else []


def judge_night(night: Night, earlier: Earlier, rules: Rules) -> list[QueryVerdict]:
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
        verdicts += _judge(metric, grounds, earlier, deciding)
    return verdicts


def replay(nights: Iterable[Night], rules: Rules) -> list[list[QueryVerdict]]:
    """Judge nights in order, each with only the earlier ones as history."""
    judged: list[list[QueryVerdict]] = []
    for night in nights:
        judged.append(judge_night(night, judged, rules))
    return judged


def night_is_red(verdicts: Sequence[QueryVerdict]) -> bool:
    """Tell whether a night fails; one without any verdict does."""
    return not verdicts or any(verdict.red for verdict in verdicts)


def _of_metric(night: Night, metric: str) -> list[Measured]:
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
    if grounds.rules.mode != PAIRED:
        return verdicts + single.judge(fit, grounds, past)
    if metric == grounds.rules.metric:
        return verdicts + paired.judge_deciding(fit, grounds, past)
    return verdicts + paired.judge_informing(fit, grounds, past, deciding)


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


def _all_queries(night: Night) -> list[str]:
    measured = (one.query for one in night.measured)
    return list(dict.fromkeys((*night.expected, *measured, *night.invalid, *night.missing)))


__all__ = ["judge_night", "night_is_red", "replay", "suspects"]
