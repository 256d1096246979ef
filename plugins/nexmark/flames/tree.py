"""The stacks of both arms as one tree, so that a frame has the same place in each.

Their text form has one stack in each line, the outermost frame first, and the number of its
samples, as flame graph tools read it:

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
from nexmark.flames.jfr import StackSample, label, plain
from nexmark.home import write_text
from nexmark.measure.measurement import SteadyWindow
from nexmark.model import ARMS, Arm

Stack: TypeAlias = tuple[str, ...]

_DAY_S = 24 * 3600
#: A recording begins before the steady state; clocks may be apart by this number of seconds.
_LATE_S = 5.0
#: A change is real if it is larger than this number of standard errors of the sampling.
_Z = 2.0
#: How many methods a list of changes has.
TOP = 10


def collapse(
    samples: Iterable[StackSample], window: SteadyWindow | None, where: str
) -> Counter[Stack]:
    """Return the number of samples of each stack.

    Args:
        samples: The samples of a recording.
        window: The steady state, on the clock of the recording host; None: the whole recording.
        where: The name of the recording in errors.

    Raises:
        NexmarkError: The recording begins later than the steady state.
    """
    counts: Counter[Stack] = Counter()
    half = late = _DAY_S / 2
    for sample in samples:
        # Seconds from the start of the window to the sample, which has a time of day and no date:
        # so the sample is at most half a day before or after that start.
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
    """Write collapsed stacks as text, in the order of their names."""
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
        """The CPU-seconds per million events that one sample stands for."""
        return self.cpu_s_per_mevent / self.samples


@dataclass(slots=True)
class FrameNode:
    """A frame below its callers.

    By arm, `samples` is the number of its samples, and `innermost` the number of samples in which
    it is the innermost frame.
    """

    name: str
    samples: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ARMS, 0))
    innermost: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ARMS, 0))
    children: "dict[str, FrameNode]" = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """Both arms of a query: the tree of all stacks, and each arm's profile."""

    root: FrameNode
    profiles: Mapping[str, Profile]

    def cost(self, samples: Mapping[str, int], arm: str) -> float:
        """Return the CPU-seconds per million events that the samples of an arm stand for."""
        return samples[arm] * self.profiles[arm].cost

    def change(self, samples: Mapping[str, int]) -> float:
        """Return the change as a fraction of the whole baseline's CPU time: 0.03 is 3 % more."""
        difference = self.cost(samples, Arm.CANDIDATE) - self.cost(samples, Arm.BASELINE)
        return difference / self.profiles[Arm.BASELINE].cpu_s_per_mevent

    def noise(self, samples: Mapping[str, int]) -> float:
        """Return the change that sampling alone may cause (2 standard errors), as `change` does."""
        errors = (math.sqrt(samples[arm]) * profile.cost for arm, profile in self.profiles.items())
        return _Z * math.hypot(*errors) / self.profiles[Arm.BASELINE].cpu_s_per_mevent


def compare(baseline: Profile, candidate: Profile) -> Comparison:
    """Put the stacks of both arms into one tree."""
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
            node.innermost[arm] += count
    return Comparison(root, profiles)


@dataclass(frozen=True)
class MethodChange:
    """The CPU time of a method in both arms, without the methods that it calls.

    `baseline` and `candidate` are CPU-seconds per million events. `change` is their difference as a
    fraction of the CPU time of the whole baseline (0.03: 3 % of it). `noise` is the change that may
    be chance (2 standard errors of the sampling). `total_change` is the change of the method with
    all methods that it calls. `label` is the short name of `frame`.
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
        """Return the change as one line of text."""
        doubt = "" if self.certain else ", within the noise of sampling"
        return (
            f"{self.label}: {self.baseline:.2f} -> {self.candidate:.2f} CPU-s per million events, "
            f"{100 * self.change:+.1f} % of the baseline{doubt}"
        )


def largest_changes(compared: Comparison) -> list[MethodChange]:
    """Return the `TOP` methods whose own CPU time changed most, certain changes first."""
    innermost: defaultdict[str, Counter[str]] = defaultdict(Counter)
    total: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(node: FrameNode, callers: frozenset[str]) -> None:
        for child in node.children.values():
            innermost[child.name].update(child.innermost)
            if child.name not in callers:  # the outermost call of a recursion has all its samples
                total[child.name].update(child.samples)
            add(child, callers | {child.name})

    add(compared.root, frozenset())
    changes = []
    for name, samples in innermost.items():
        if any(samples[arm] for arm in ARMS):
            old, new = (compared.cost(samples, arm) for arm in (Arm.BASELINE, Arm.CANDIDATE))
            sizes = compared.change(samples), compared.noise(samples), compared.change(total[name])
            changes.append(MethodChange(name, label(name), old, new, *sizes))
    changes.sort(key=lambda each: (not each.certain, -abs(each.change), each.frame))
    return changes[:TOP]
