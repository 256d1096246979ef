"""How far the verdicts of a night can be trusted: the hosts, what could be seen, the self-test."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from nexmark.report.rows import Row
from nexmark.store import Store
from nexmark.store.models import Night, SelfTest
from nexmark.verdict import Value
from nexmark.verdict.rates import Result, Test, rates

ALARMED = {
    Value.REGRESSION: True,
    **dict.fromkeys((Value.CALIBRATING, Value.INVALID, Value.MISSING)),
}
"""Whether the gate alarmed, by its verdict; None where it came to none, False for the others."""
NIGHTS = 200
"""Self-tests that the rates are made of: the last so many nights' of the engine."""


def health(store: Store, night: Night, rows: Sequence[Row]) -> list[str]:
    """Return one line on how the night was judged, and one on the self-test; none for bounds."""
    if night.mode == "bounds":
        return []
    parts = [f"mode {night.mode}"]
    pairs = max((row.repetitions for row in rows), default=0)
    if night.baselines:
        builds = sorted(set(night.baselines.values()))
        same = builds == [night.build_id] and not night.candidate_conf
        parts.append(f"{pairs} pairs with build {' and '.join(builds)}")
        parts += ["the same build: a night A against A"] if same else []
    if night.grade:
        reason = f" ({night.grade_reason})" if night.grade_reason else ""
        parts.append(f"hosts {night.grade}{reason}")
    seen = [row.mde for row in rows if row.mde is not None]
    if seen:
        parts.append(f"smallest slowdown that could be seen {median(seen):.1%} (median)")
    tests = store.self_tests(night.engine, 2 * NIGHTS)
    lines = [f"Gate: {'; '.join(parts)}."]
    if tests:
        lines.append(f"Gate: {rates(map(_result, reversed(tests))).words}.")
    return lines


def _result(row: SelfTest) -> Result:
    alarmed = ALARMED.get(Value(row.value), False)
    return Result(row.night_id, row.query, Test(row.kind), alarmed)


__all__ = ["health"]
