"""The executed plans of both arms of a query, and their difference."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from nexmark.report.pairs import ARMS
from nexmark.store import BASELINE, CANDIDATE, Store
from nexmark.store.models import Repetition


def plans_of(store: Store, rows: Sequence[Repetition]) -> dict[str, Any]:
    """Return by arm the plan that most of its repetitions had, and the unified diff of the two.

    ``changed`` is None where there are not two plans to compare. ``others`` counts the repetitions
    of an arm that had another plan than the one shown.
    """
    counts = {arm: Counter(x.plan_id for x in rows if x.arm == arm and x.plan_id) for arm in ARMS}
    known = store.plans(plan for count in counts.values() for plan in count if plan)
    shown: dict[str, Any] = {}
    for arm, count in counts.items():
        if not count:
            continue
        plan, times = count.most_common(1)[0]
        row = known[str(plan)]
        shown[arm] = {
            "id": row.id,
            "skeleton_hash": row.skeleton_hash,
            "text": row.text,
            "others": count.total() - times,
        }
    both = [shown.get(arm) for arm in (BASELINE, CANDIDATE)]
    return {**shown, "changed": _changed(both), "diff": _diff(both)}


def _changed(both: Sequence[dict[str, Any] | None]) -> bool | None:
    first, second = both
    return None if first is None or second is None else first["id"] != second["id"]


def _diff(both: Sequence[dict[str, Any] | None]) -> str:
    first, second = both
    if first is None or second is None:
        return ""
    lines = difflib.unified_diff(
        first["text"].splitlines(), second["text"].splitlines(), BASELINE, CANDIDATE, lineterm=""
    )
    return "\n".join(lines)


__all__ = ["plans_of"]
