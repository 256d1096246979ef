"""How the arms differ before anything runs: Spark confs and plans."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher, unified_diff

from nexmark.attribution.explained import ConfDifference, PlanChange
from nexmark.attribution.observed import Observed, Plan

_OF_THE_ARM = re.compile(
    r"spark\.eventLog\..*|spark\.master|spark\.nexmark\..*|spark\.sql\.streaming\.checkpointLocation"
    r"|spark\.driver\.(host|port|bindAddress)|spark\.blockManager\.port|spark\.local\.dir"
)
"""Where an arm runs and what it writes: always different, and no explanation."""
_SECRET = re.compile(r"secret|password|token|credential|access\.?key", re.IGNORECASE)
_HIDDEN = "***"
_ARCHIVE = re.compile(r"-XX:SharedArchiveFile=\S+")
_PARTITIONS = re.compile(r"(numPartitions = |partitioning\(.*, )\d+")
_CONTEXT = 2


def conf_differences(
    candidate: Iterable[Observed], baseline: Iterable[Observed]
) -> tuple[ConfDifference, ...]:
    """Return the confs that differ, by name; one that is not the same throughout an arm is none."""
    ours, theirs = _confs(candidate), _confs(baseline)
    found = []
    for name in sorted(ours.keys() | theirs.keys()):
        values = ours.get(name, {None}), theirs.get(name, {None})
        if values[0] != values[1] and len(values[0]) == len(values[1]) == 1:
            found.append(ConfDifference(name, *(_shown(name, next(iter(x))) for x in values)))
    return tuple(found)


def _shown(name: str, value: str | None) -> str | None:
    return value if value is None or not _SECRET.search(name) else _HIDDEN


def _confs(arm: Iterable[Observed]) -> dict[str, set[str | None]]:
    """Return all values of each conf in an arm, None among them where a repetition has none."""
    all_of_them = [_comparable(one.confs) for one in arm if one.confs]
    names = {name for confs in all_of_them for name in confs}
    return {name: {confs.get(name) for confs in all_of_them} for name in names}


def _comparable(confs: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for name, value in confs.items():
        text = _ARCHIVE.sub("", str(value)).strip()
        if text and not _OF_THE_ARM.fullmatch(name):
            found[name] = text
    return found


def plan_change(candidate: Plan | None, baseline: Plan | None) -> PlanChange:
    """Return how the plans differ; nothing where one is not known."""
    if candidate is None or baseline is None:
        return PlanChange()
    lines = baseline.text.splitlines(), candidate.text.splitlines()
    diff = tuple(unified_diff(*lines, "baseline", "candidate", lineterm="", n=_CONTEXT))
    if candidate.skeleton_hash == baseline.skeleton_hash:
        return PlanChange(diff=diff)
    theirs, ours = ([x.strip() for x in y.skeleton.splitlines()] for y in (baseline, candidate))
    added: list[str] = []
    removed: list[str] = []
    for code, i1, i2, j1, j2 in SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes():
        if code != "equal":
            removed += theirs[i1:i2]
            added += ours[j1:j2]
    return PlanChange(True, tuple(added), tuple(removed), diff)


def same_expressions(candidate: Plan, baseline: Plan) -> bool:
    """Tell whether plans of the same operators differ in numbers of partitions at the most."""
    return _without_partitions(candidate) == _without_partitions(baseline)


def _without_partitions(plan: Plan) -> str:
    return _PARTITIONS.sub(r"\1", plan.text)


__all__ = ["conf_differences", "plan_change", "same_expressions"]
