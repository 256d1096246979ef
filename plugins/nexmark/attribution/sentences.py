"""An attribution as one line of text."""

from __future__ import annotations

from nexmark.attribution.explained import Attribution, ChangeKind, ConfDifference, PartChange

NAMED = 3
"""The largest number of confs, and of parts, that a sentence names."""
LEAST_SHARE = 0.05
_TELLING = 0.1
_LONGEST_VALUE = 40
_OUTSIDE = "outside of tasks (JVM: start-up, compiler, garbage collection, network)"
_WAITING = frozenset({ChangeKind.WAITING, ChangeKind.WAITING_LESS})


def words(attribution: Attribution) -> str:
    """Return the explanation of the change, in order: confs, plan, parts; "" for nothing."""
    said = [_confs(attribution), _plan(attribution)]
    said += [_waits(attribution)] if attribution.kind in _WAITING else [_parts(attribution)]
    return "; ".join(part for part in said if part)


def _confs(attribution: Attribution) -> str:
    found = [_conf(x) for x in attribution.confs[:NAMED]]
    more = len(attribution.confs) - NAMED
    if more > 0:
        found.append(f"and {more} more")
    return f"conf {', '.join(found)}" if found else ""


def _conf(conf: ConfDifference) -> str:
    return f"{conf.name} {_value(conf.baseline)} -> {_value(conf.candidate)}"


def _value(value: str | None) -> str:
    if value is None:
        return "(not set)"
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}..."


def _plan(attribution: Attribution) -> str:
    plan = attribution.plan
    if not plan.changed:
        return ""
    signs = [f"+{name}" for name in plan.added] + [f"-{name}" for name in plan.removed]
    more = [f"and {len(signs) - NAMED} more"] if len(signs) > NAMED else []
    return f"plan {', '.join([*signs[:NAMED], *more])}"


def _parts(attribution: Attribution) -> str:
    named = [x for x in attribution.parts[:NAMED] if x.share is not None and x.share > LEAST_SHARE]
    if not named:
        return ""
    total = attribution.contribution
    size = f"{total:+,.0f}" if abs(total) >= 100 else f"{total:+.3g}"
    return f"of {size} CPU-s/M events {', '.join(map(_part, named))}"


def _part(part: PartChange) -> str:
    name = _OUTSIDE if part.kind == "outside" else part.name
    if part.kind == "operator":
        name = f"{part.match} {name}" if part.match != "both" else f"{name} in stage {part.stage}"
    metric = _telling(part)
    return f"{part.share:.0%} {name}" + (f" ({metric})" if metric else "")


def _telling(part: PartChange) -> str:
    """Return the stopwatch, or the count of tasks, that changed most."""
    for metric in part.metrics:
        if not (metric.name == "tasks" or metric.name.endswith("[s]")) or part.kind == "outside":
            continue
        ratio = metric.ratio
        if (
            ratio is not None
            and abs(ratio - 1) > _TELLING
            and (ratio > 1) == (part.contribution > 0)
        ):
            return f"{metric.name.removesuffix(' [s]')} {_by(ratio)}"
    return ""


def _by(ratio: float) -> str:
    return f"x {ratio:.1f}" if ratio >= 2 else f"{ratio - 1:+.0%}"


def _waits(attribution: Attribution) -> str:
    side = 1 if attribution.kind is ChangeKind.WAITING else -1
    rows = [x for x in attribution.waits if side * (x.candidate_s - x.baseline_s) > 0]
    rows.sort(key=lambda x: -side * (x.candidate_s - x.baseline_s))
    found = [f"{x.name} {x.candidate_s - x.baseline_s:+.1f} s" for x in rows[:NAMED]]
    return f"waiting in {', '.join(found)}" if found else ""
