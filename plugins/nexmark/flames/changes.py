"""The methods whose CPU time has changed most, wherever they are called."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from nexmark.flames.frames import label
from nexmark.flames.tree import Comparison, Node

TOP = 10


@dataclass(frozen=True)
class Change:
    """The own CPU time of a method (callees apart) in both arms.

    `baseline` and `candidate` are CPU-seconds per million events. `change` is their difference as a
    part of the CPU time of the whole baseline (0.03: 3 % of it), `noise` what of it may be chance
    (2 standard errors of the sampling), `total_change` that of the method with all it calls.
    """

    frame: str
    label: str
    baseline: float
    candidate: float
    change: float
    noise: float
    total_change: float

    @property
    def certain(self) -> bool:
        """Whether it is more than chance."""
        return abs(self.change) > self.noise

    def as_json(self) -> dict[str, Any]:
        """For the summary."""
        return asdict(self)

    def __str__(self) -> str:
        """One line for people."""
        doubt = "" if self.certain else ", within the noise of sampling"
        return (
            f"{self.label}: {self.baseline:.2f} -> {self.candidate:.2f} CPU-s per million events, "
            f"{100 * self.change:+.1f} % of the baseline{doubt}"
        )


def largest_changes(compared: Comparison, count: int = TOP) -> list[Change]:
    """The `count` methods whose own CPU time has changed most: those beyond chance first."""
    own: dict[str, list[int]] = {}
    total: dict[str, list[int]] = {}
    _sum(compared.root, own, total, set())
    changes = []
    for name, (baseline, candidate) in own.items():
        if not baseline and not candidate:
            continue
        changes.append(
            Change(
                name,
                label(name),
                compared.cost(baseline, "baseline"),
                compared.cost(candidate, "candidate"),
                compared.change(baseline, candidate),
                compared.noise(baseline, candidate),
                compared.change(*total[name]),
            )
        )
    changes.sort(key=lambda each: (not each.certain, -abs(each.change), each.frame))
    return changes[:count]


def _sum(
    node: Node, own: dict[str, list[int]], total: dict[str, list[int]], callers: set[str]
) -> None:
    """Add up by method; in a recursion the outermost call has the total."""
    for child in node.children.values():
        mine = own.setdefault(child.name, [0, 0])
        mine[0] += child.own_baseline
        mine[1] += child.own_candidate
        outermost = child.name not in callers
        if outermost:
            whole = total.setdefault(child.name, [0, 0])
            whole[0] += child.baseline
            whole[1] += child.candidate
        _sum(child, own, total, callers | {child.name} if outermost else callers)


__all__ = ["TOP", "Change", "largest_changes"]
