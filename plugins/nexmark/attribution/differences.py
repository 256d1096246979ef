"""Find what differs between the arms of a query: confs and plans.

Every page and every text that shows a difference takes it from here.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher, unified_diff
from enum import StrEnum
from typing import NamedTuple, TypeVar

from nexmark.attribution.explained import ConfDifference, Plan, PlanChange
from nexmark.secrets import shown

_OF_THE_ARM = re.compile(
    r"spark\.eventLog\..*|spark\.master|spark\.nexmark\..*|spark\.sql\.streaming\.checkpointLocation"
    r"|spark\.driver\.(host|port|bindAddress)|spark\.blockManager\.port|spark\.local\.dir"
)
"""Confs that say where an arm runs and writes: they always differ, and explain nothing."""
_PLACES = re.compile(
    r'"(?:-XX:SharedArchiveFile|-Djava\.io\.tmpdir)=[^"]*"'  # in quotes: a path with blanks
    r"|(?:-XX:SharedArchiveFile|-Djava\.io\.tmpdir)=\S+|\S+/remote-fs/\S+"
    r"|[^,]*/nexmark_jobs/(?=own/)"  # of the JARs of a job, which is beside other files then
)
"""Parts of values that name files of a run or of this machine."""
_Known = TypeVar("_Known")


class PlanState(StrEnum):
    """Whether two arms ran the same plan."""

    SAME = "same"
    DETAILS = "details differ"
    """The same operators and exchange keys, other expressions or numbers of partitions."""
    CHANGED = "changed"
    """Other operators, or exchanges by other keys."""
    UNKNOWN = "–"
    """The plan of an arm is not known."""


class PlanKey(NamedTuple):
    """What identifies a plan: the hash of its operators, and its text (or the hash of its text)."""

    skeleton_hash: str
    text: str


def usual(values: Iterable[_Known | None]) -> _Known | None:
    """Return the value that most repetitions have, the first of several; None if none is known."""
    counts = Counter(value for value in values if value is not None)
    return counts.most_common(1)[0][0] if counts else None


def plan_state(candidate: PlanKey | None, baseline: PlanKey | None) -> PlanState:
    """Return whether the usual plans of two arms are the same."""
    if candidate is None or baseline is None:
        return PlanState.UNKNOWN
    if candidate.skeleton_hash != baseline.skeleton_hash:
        return PlanState.CHANGED
    return PlanState.SAME if candidate.text == baseline.text else PlanState.DETAILS


def state_of_plans(candidate: Plan | None, baseline: Plan | None) -> PlanState:
    """Return whether two plans are the same."""
    return plan_state(_key(candidate), _key(baseline))


def _key(plan: Plan | None) -> PlanKey | None:
    return None if plan is None else PlanKey(plan.skeleton_hash, plan.text)


def _operators(plan: Plan) -> list[str]:
    """Return the operators of a plan from its top, without their indentation."""
    return [line.strip() for line in plan.skeleton.splitlines()]


def plan_change(candidate: Plan | None, baseline: Plan | None) -> PlanChange:
    """Return the difference of two plans; an empty one if a plan is not known."""
    if candidate is None or baseline is None:
        return PlanChange()
    lines = baseline.text.splitlines(), candidate.text.splitlines()
    diff = tuple(unified_diff(*lines, "baseline", "candidate", lineterm=""))
    if state_of_plans(candidate, baseline) is not PlanState.CHANGED:
        return PlanChange(diff=diff)
    theirs, ours = map(_operators, (baseline, candidate))
    added: list[str] = []
    removed: list[str] = []
    for code, i1, i2, j1, j2 in SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes():
        if code != "equal":
            removed += theirs[i1:i2]
            added += ours[j1:j2]
    return PlanChange(True, tuple(added), tuple(removed), diff)


def conf_differences(
    candidate: Iterable[Mapping[str, str]], baseline: Iterable[Mapping[str, str]]
) -> tuple[ConfDifference, ...]:
    """Return the confs that differ and may explain a change, by name.

    Such a conf has one value in each arm, and does not say where an arm runs or writes. Each
    argument has the confs of every repetition of that arm.
    """
    ours, theirs = _values(candidate), _values(baseline)
    differences = []
    for name in sorted(ours.keys() | theirs.keys()):
        values = ours.get(name, {None}), theirs.get(name, {None})
        if values[0] != values[1] and len(values[0]) == len(values[1]) == 1:
            texts = (None if value is None else shown(name, value) for (value,) in values)
            differences.append(ConfDifference(name, *texts))
    return tuple(differences)


def _values(arm: Iterable[Mapping[str, str]]) -> dict[str, set[str | None]]:
    """Return all values of each conf in an arm; None if a repetition does not set it."""
    repetitions = [
        {
            name: text
            for name, value in confs.items()
            if (text := _PLACES.sub("", str(value)).strip()) and not _OF_THE_ARM.fullmatch(name)
        }
        for confs in arm
        if confs
    ]
    names = {name for confs in repetitions for name in confs}
    return {name: {confs.get(name) for confs in repetitions} for name in names}
