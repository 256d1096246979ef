"""Which part of the candidate is which of the baseline.

Operators are aligned by their names in the order of the printed plan, the longest common runs
first; stages follow their operators. The other parts have the same names in both arms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from nexmark.measure.operator_times import OPERATOR, STAGE, Part


@dataclass(frozen=True)
class Aligned:
    """A part of each arm; None where an arm has none that matches."""

    candidate: Part | None
    baseline: Part | None

    @property
    def part(self) -> Part:
        """The candidate's where there is one."""
        found = self.candidate or self.baseline
        assert found is not None
        return found

    @property
    def match(self) -> str:
        """``both``, ``added`` or ``removed``."""
        if self.baseline is None:
            return "added"
        return "removed" if self.candidate is None else "both"


def names_of(parts: Sequence[Part]) -> list[str]:
    """Return the names of the operators among parts, in order."""
    return [part.name for part in parts if part.kind == OPERATOR]


def align(candidate: Sequence[Part], baseline: Sequence[Part]) -> list[Aligned]:
    """Return all parts of both arms, each once; operators first, as the plans are printed."""
    found = _operators(candidate, baseline)
    stages = _stages(found)
    theirs = {_key(x): x for x in baseline if x.kind != OPERATOR}
    for part in candidate:
        if part.kind == OPERATOR:
            continue
        key = (STAGE, stages.get(part.stage)) if part.kind == STAGE else _key(part)
        found.append(Aligned(part, theirs.pop(key, None)))
    return found + [Aligned(None, part) for part in theirs.values()]


def _key(part: Part) -> tuple[str, str | int | None]:
    return (part.kind, part.stage if part.kind == STAGE else part.name)


def _operators(candidate: Sequence[Part], baseline: Sequence[Part]) -> list[Aligned]:
    ours, theirs = ([x for x in parts if x.kind == OPERATOR] for parts in (candidate, baseline))
    matcher = SequenceMatcher(None, names_of(theirs), names_of(ours), autojunk=False)
    found: list[Aligned] = []
    for code, i1, i2, j1, j2 in matcher.get_opcodes():
        if code == "equal":
            pairs = zip(ours[j1:j2], theirs[i1:i2], strict=True)
            found += [Aligned(x, y) for x, y in pairs]
        else:
            found += [Aligned(None, x) for x in theirs[i1:i2]]
            found += [Aligned(x, None) for x in ours[j1:j2]]
    return found


def _stages(operators: Sequence[Aligned]) -> dict[int | None, int | None]:
    """Return the baseline's number of each stage of the candidate: most of its operators' one."""
    votes: dict[int | None, Counter[int | None]] = {}
    for x in operators:
        if x.candidate and x.baseline:
            votes.setdefault(x.candidate.stage, Counter())[x.baseline.stage] += 1
    taken: dict[int | None, int | None] = {None: None}
    for number, counter in sorted(votes.items(), key=lambda x: -max(x[1].values())):
        free = [stage for stage, _ in counter.most_common() if stage not in taken.values()]
        if free:
            taken[number] = free[0]
    return taken


__all__ = ["Aligned", "align", "names_of"]
