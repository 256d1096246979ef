"""The stacks of both arms as one tree, so that a frame has the same place in each.

As text they are one stack a line, outermost frame first, as flame graph tools read them:

    Executor task launch worker;java.lang.Thread.run;...;java.util.HashMap.get 17
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from nexmark.errors import NexmarkError
from nexmark.flames.jfr import Sample, label, plain
from nexmark.home import write_text
from nexmark.measure.measurement import SteadyWindow
from nexmark.model import ARMS, Arm

Stack: TypeAlias = tuple[str, ...]

_DAY_S = 24 * 3600
#: A whole recording begins before the window; the clocks may differ by these seconds.
_LATE_S = 5.0
#: A change of more standard errors of the sampling than this is not chance.
_Z = 2.0
TOP = 10


def collapse(samples: Iterable[Sample], window: SteadyWindow | None, where: str) -> Counter[Stack]:
    """The number of samples of each stack within `window`; None: the whole recording.

    The window is by the clock of the recording host. NexmarkError, with `where`, if the recording
    begins only after it has.
    """
    counts: Counter[Stack] = Counter()
    half = late = _DAY_S / 2
    for sample in samples:
        # Seconds from the start of the window to a time of day: half a day before to half after.
        after = (sample.second - window.start % _DAY_S + half) % _DAY_S - half if window else 0.0
        late = min(late, after)
        if sample.waits or (window and not 0 <= after <= window.end - window.start):
            continue
        counts[sample.stack] += 1
    if window and late > _LATE_S:
        raise NexmarkError(
            f"{where}: the recording begins {late:.0f} s after the steady state; "
            "it was larger than it may be, or not written to its end"
        )
    return counts


def write_stacks(path: Path, counts: Mapping[Stack, int]) -> None:
    """Writes collapsed stacks as text, in the order of their names."""
    lines = (f"{';'.join(map(plain, stack))} {count}\n" for stack, count in sorted(counts.items()))
    write_text(path, "".join(lines))


@dataclass(frozen=True)
class Profile:
    """The collapsed stacks of an arm and the CPU time that they represent.

    `cpu_s_per_mevent` is the CPU time of its executors (CPU-seconds per million events), measured
    during the recording, without Python workers.
    """

    counts: Mapping[Stack, int]
    cpu_s_per_mevent: float

    @cached_property
    def samples(self) -> int:
        """The number of samples."""
        return sum(self.counts.values())

    @property
    def cost(self) -> float:
        """CPU-seconds per million events per sample."""
        return self.cpu_s_per_mevent / self.samples


@dataclass(slots=True)
class FrameNode:
    """A frame below its callers: by arm, its samples, and those in which it is the innermost."""

    name: str
    samples: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ARMS, 0))
    own: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ARMS, 0))
    children: "dict[str, FrameNode]" = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """Both arms of a query: the tree of all stacks, and each arm's profile."""

    root: FrameNode
    profiles: Mapping[str, Profile]

    def cost(self, samples: Mapping[str, int], arm: str) -> float:
        """CPU-seconds per million events of an arm's samples."""
        return samples[arm] * self.profiles[arm].cost

    def change(self, samples: Mapping[str, int]) -> float:
        """The change as a fraction of the whole baseline's CPU time: 0.03 is 3 % more."""
        difference = self.cost(samples, Arm.CANDIDATE) - self.cost(samples, Arm.BASELINE)
        return difference / self.profiles[Arm.BASELINE].cpu_s_per_mevent

    def noise(self, samples: Mapping[str, int]) -> float:
        """The change that chance of sampling alone may make (2 standard errors)."""
        errors = (math.sqrt(samples[arm]) * one.cost for arm, one in self.profiles.items())
        return _Z * math.hypot(*errors) / self.profiles[Arm.BASELINE].cpu_s_per_mevent


def compare(baseline: Profile, candidate: Profile) -> Comparison:
    """Puts the stacks of both arms into one tree."""
    root = FrameNode("all")
    profiles: dict[str, Profile] = {Arm.BASELINE: baseline, Arm.CANDIDATE: candidate}
    for arm, profile in profiles.items():
        for stack, count in profile.counts.items():
            node = root
            node.samples[arm] += count
            for name in stack:
                if name not in node.children:
                    node.children[name] = FrameNode(name)
                node = node.children[name]
                node.samples[arm] += count
            node.own[arm] += count
    return Comparison(root, profiles)


@dataclass(frozen=True)
class MethodChange:
    """The own CPU time of a method (callees apart) in both arms.

    `baseline` and `candidate` are CPU-seconds per million events. `change` is their difference as a
    fraction of the CPU time of the whole baseline (0.03: 3 % of it). `noise` is the part of it that
    may be chance (2 standard errors of the sampling). `total_change` is the change of the method
    with all it calls.
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
        """Whether the change is more than chance."""
        return abs(self.change) > self.noise

    def __str__(self) -> str:
        """The change as one line of text."""
        doubt = "" if self.certain else ", within the noise of sampling"
        return (
            f"{self.label}: {self.baseline:.2f} -> {self.candidate:.2f} CPU-s per million events, "
            f"{100 * self.change:+.1f} % of the baseline{doubt}"
        )


def largest_changes(compared: Comparison) -> list[MethodChange]:
    """The `TOP` methods whose own CPU time changed most, real changes before chance."""
    own: defaultdict[str, Counter[str]] = defaultdict(Counter)
    total: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(node: FrameNode, callers: frozenset[str]) -> None:
        for child in node.children.values():
            own[child.name].update(child.own)
            if child.name not in callers:  # in a recursion the outermost call has the total
                total[child.name].update(child.samples)
            add(child, callers | {child.name})

    add(compared.root, frozenset())
    changes = []
    for name, samples in own.items():
        if any(samples[arm] for arm in ARMS):
            old, new = (compared.cost(samples, arm) for arm in (Arm.BASELINE, Arm.CANDIDATE))
            sizes = compared.change(samples), compared.noise(samples), compared.change(total[name])
            changes.append(MethodChange(name, label(name), old, new, *sizes))
    changes.sort(key=lambda each: (not each.certain, -abs(each.change), each.frame))
    return changes[:TOP]
