"""Which sort of change it is: by the gate's verdict where there is one, else by the pairs."""

from __future__ import annotations

from nexmark.attribution.explained import Change, Kind
from nexmark.verdict import Value

CPU_CHANGE = 0.02
"""What the whole interval has to be beyond where the gate has not decided."""
WALL_CHANGE = 0.05
MIN_PAIRS = 5
"""Of fewer the interval is no 95 %: three pairs of no change agree on a side every fourth time."""
_SAME = frozenset({Value.OK, Value.UNCONFIRMED})
_CHANGED = frozenset({Value.REGRESSION, Value.SUSPECT, Value.FASTER})


def cpu_side(change: Change, verdict: Value | None, pairs: int) -> int:
    """Return 1 for slower, -1 for faster, 0 for the same speed or for too few ``pairs`` to tell.

    Where the gate has decided it is what the gate says.
    """
    if verdict in _SAME:
        return 0
    if verdict in _CHANGED:
        return 1 if change.ratio > 1 else -1
    return _beyond(change, CPU_CHANGE) if pairs >= MIN_PAIRS else 0


def wall_side(change: Change | None, verdict: Value | None, pairs: int) -> int:
    """Return 1 for longer, -1 for shorter, 0 for as long; otherwise as ``cpu_side``."""
    if change is None or verdict in _SAME:
        return 0
    if verdict in (Value.WATCH, Value.FASTER):
        return 1 if change.ratio > 1 else -1
    return _beyond(change, WALL_CHANGE) if pairs >= MIN_PAIRS else 0


def kind_of(cpu: int, wall: int, plan_changed: bool) -> Kind:
    """Return the sort of a change from its sides."""
    if cpu > 0:
        return Kind.SLOWER_PLAN_CHANGED if plan_changed else Kind.SLOWER
    if cpu < 0:
        return Kind.FASTER_PLAN_CHANGED if plan_changed else Kind.FASTER
    if wall > 0:
        return Kind.WAITING
    if plan_changed:
        return Kind.PLAN_CHANGED
    return Kind.WAITING_LESS if wall else Kind.NOTHING


def _beyond(change: Change, bound: float) -> int:
    if change.lo is None or change.hi is None:
        return 0
    if change.lo > 1 + bound:
        return 1
    return -1 if change.hi < 1 / (1 + bound) else 0


__all__ = ["cpu_side", "kind_of", "wall_side"]
