"""The comparisons as a table for people, and as JSON with both plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from nexmark.compatibility.checkpoint import in_words
from nexmark.compatibility.classes import RED, Class, Compatibility
from nexmark.terminal import columns

_HEADS = ("query", "class", "plans", "forward", "backward", "checkpoint", "why")
_SHOWN = 200


def matrix(found: Sequence[Compatibility]) -> str:
    """A row for each comparison, and a line that counts the classes."""
    counted = Counter(each.class_ for each in found)
    classes = ", ".join(f"{counted[name]} {name}" for name in Class if counted[name])
    return f"{columns(_HEADS, [_row(each) for each in found])}\n\n{len(found)} compared: {classes}"


def is_red(found: Sequence[Compatibility]) -> bool:
    """Return whether any of these queries would not survive, or is not known to."""
    return any(each.class_ in RED for each in found)


def as_json(found: Sequence[Compatibility]) -> list[dict[str, Any]]:
    """All that is known of each comparison."""
    return [{"class": each.class_, "reason": each.reason, **asdict(each)} for each in found]


def carried(each: Compatibility) -> str:
    """The confs that the first side's checkpoint carries, in words; "-" for none."""
    plan = next((plan for plan in each.plans if plan is not None), None)
    operators = plan.operators if plan else ()
    names = " ".join(str(operator["name"]) for operator in operators)
    return in_words(each.confs or {}, names.lower()) or "-"


def _row(each: Compatibility) -> list[str]:
    reason = each.reason
    return [
        str(each.case),
        str(each.class_),
        str(each.difference.change) if each.difference else "-",
        str(each.forward or "-"),
        str(each.backward or "-"),
        carried(each),
        reason if len(reason) <= _SHOWN else f"{reason[: _SHOWN - 3]}...",
    ]
