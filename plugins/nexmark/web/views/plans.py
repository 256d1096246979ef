"""The plans of both arms: the same, or what differs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from nexmark.web.views.arms import UNKNOWN, Arms

MOST_LINES = 400
"""More of a difference is not shown."""


@dataclass(frozen=True)
class DiffLine:
    """A line of a difference: ``sign`` is +, - or empty."""

    sign: str
    text: str


@dataclass(frozen=True)
class PlanPage:
    """``state``: same, details differ, changed, or – where an arm has no plan."""

    state: str
    text: str
    diff: tuple[DiffLine, ...]
    left_out: int
    formulations: tuple[str, ...]


def plan_ids(arms: Arms) -> tuple[str | None, str | None]:
    """Return the plan of each arm, that of its first repetition that has one."""
    return (
        next((row.plan_id for row in arms.candidate if row.plan_id), None),
        next((row.plan_id for row in arms.baseline if row.plan_id), None),
    )


def plan_page(arms: Arms, texts: Mapping[str, str]) -> PlanPage:
    """Return what is known of the plans."""
    ours, theirs = plan_ids(arms)
    new, old = texts.get(ours or "", ""), texts.get(theirs or "", "")
    differ = arms.plan != UNKNOWN and bool(old) and ours != theirs
    lines = difference(old, new) if differ else []
    formulations = {row.formulation for row in (*arms.candidate, *arms.baseline)}
    return PlanPage(
        arms.plan,
        new or old,
        tuple(lines[:MOST_LINES]),
        max(0, len(lines) - MOST_LINES),
        tuple(sorted(x for x in formulations if x)),
    )


def difference(old: str, new: str) -> list[DiffLine]:
    """Return what changed from the old text to the new one, with three lines around each change."""
    found = []
    for line in difflib.unified_diff(old.splitlines(), new.splitlines(), "", "", lineterm=""):
        if line.startswith(("---", "+++")):
            continue
        sign = line[:1] if line[:1] in "+-@" else ""
        found.append(DiffLine(sign, line if sign == "@" else line[1:]))
    return found


__all__ = ["DiffLine", "PlanPage", "difference", "plan_ids", "plan_page"]
