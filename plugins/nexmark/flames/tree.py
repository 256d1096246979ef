"""The stacks of both arms as one tree, so that a frame has the same place in each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from nexmark.flames.stacks import Profile

#: A change beyond so many standard errors of the sampling is no chance.
_Z = 2.0


@dataclass
class Node:
    """A frame below its callers: the samples that it is in, of both arms, and its own.

    Own samples are those in which it is the innermost frame.
    """

    name: str
    baseline: int = 0
    candidate: int = 0
    own_baseline: int = 0
    own_candidate: int = 0
    children: dict[str, Node] = field(default_factory=dict)

    def child(self, name: str) -> Node:
        """The frame `name` that it calls."""
        found = self.children.get(name)
        if found is None:
            found = self.children[name] = Node(name)
        return found


@dataclass(frozen=True)
class Comparison:
    """Both arms of a query: the tree of all stacks and what a sample of each arm stands for."""

    root: Node
    baseline: Profile
    candidate: Profile

    def cost(self, samples: int, arm: str) -> float:
        """CPU-seconds per million events of so many samples of an arm."""
        return samples * (self.candidate if arm == "candidate" else self.baseline).cost

    def change(self, baseline: int, candidate: int) -> float:
        """What a change is of the CPU time of the whole baseline: 0.03 is 3 % more than it."""
        difference = self.cost(candidate, "candidate") - self.cost(baseline, "baseline")
        return difference / self.baseline.cpu_s_per_mevent

    def noise(self, baseline: int, candidate: int) -> float:
        """How large such a change may be by the chance of sampling alone (2 standard errors)."""
        error = math.hypot(
            math.sqrt(baseline) * self.baseline.cost, math.sqrt(candidate) * self.candidate.cost
        )
        return _Z * error / self.baseline.cpu_s_per_mevent


def compare(baseline: Profile, candidate: Profile) -> Comparison:
    """Put the stacks of both arms into one tree."""
    root = Node("all")
    for profile, arm in ((baseline, "baseline"), (candidate, "candidate")):
        for stack, count in profile.counts.items():
            _add(root, stack, count, arm == "candidate")
    return Comparison(root, baseline, candidate)


def _add(root: Node, stack: tuple[str, ...], count: int, is_candidate: bool) -> None:
    node = root
    path = [root]
    for name in stack:
        node = node.child(name)
        path.append(node)
    for each in path:
        if is_candidate:
            each.candidate += count
        else:
            each.baseline += count
    if is_candidate:
        node.own_candidate += count
    else:
        node.own_baseline += count


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it, callers first."""
    pending = [node]
    while pending:
        each = pending.pop()
        yield each
        pending.extend(each.children.values())


__all__ = ["Comparison", "Node", "compare", "walk"]
