"""Converts models and rows to plain data for JSON and CSV; the names of the keys are contracts."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

from nexmark.evidence.rows import Row
from nexmark.model import Mode
from nexmark.store.query_history import RatioPoint
from nexmark.store.table_base import Base
from nexmark.verdict.verdict import Verdict

IDS = frozenset({"id", "night_id"})
"""The columns that plain data does not have unless a caller keeps them."""


def plain(value: object, keep: Iterable[str] = (), leave_out: Iterable[str] = ()) -> Any:
    """Return a model, or a row of the store, as plain data for JSON.

    Args:
        value: The model, row, list, mapping or single value.
        keep: The columns of IDS that rows keep.
        leave_out: The columns of a row, or the fields of a model, that are left out.
    """
    if isinstance(value, Base):
        left_out = IDS.union(leave_out).difference(keep)
        names = [column.name for column in value.__table__.columns if column.name not in left_out]
        return {name: plain(getattr(value, name)) for name in names}
    if is_dataclass(value) and not isinstance(value, type):
        names = [one.name for one in fields(value) if one.name not in leave_out]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, keep) for one in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value) if isinstance(value, Path) else value


def plain_verdict(verdict: Verdict) -> dict[str, object]:
    """Return a verdict by the names of the columns of its table, without the night."""
    by_bounds = verdict.mode == Mode.BOUNDS
    return {
        "query": verdict.query,
        "metric": verdict.metric,
        "gate_version": verdict.gate_version,
        "value": verdict.value.value,
        "reason": verdict.reason,
        "mode": verdict.mode.value,
        "decides": verdict.decides,
        "bound": verdict.bound,
        "ratio": verdict.ratio,
        "candidate": verdict.candidate,
        "baseline": verdict.baseline,
        "basis": plain(verdict.basis),
        "baseline_run": verdict.baseline_run,
        "repetitions": verdict.repetitions,
        "lo": verdict.lo,
        "hi": verdict.hi,
        "mde": verdict.mde,
        "shift": verdict.shift,
        "spread": verdict.spread,
        "noise": verdict.noise,
        "pairs": None if by_bounds else verdict.pairs,
        "fresh_pairs": None if by_bounds else verdict.fresh_pairs,
        "drift_slower": verdict.drift_slower,
        "drift_faster": verdict.drift_faster,
        "baseline_build": verdict.baseline_build or None,
        "acceptance_id": verdict.acceptance,
        "judged": plain(verdict.judged),
    }


def plain_row(row: Row) -> dict[str, object]:
    """Return the row of a query as the files of the report and the evidence have it."""
    verdict = row.verdict
    by_bounds = verdict is None or verdict.mode == Mode.BOUNDS
    return {
        "query": row.query,
        "metric": row.metric,
        "repetitions": row.repetitions,
        "events": row.events,
        "wall_s": row.wall_s,
        "cpu_s": row.cpu_s,
        "result": row.result,
        "cpu_s_per_mevent": row.cpu_s_per_mevent,
        "basis": plain(row.basis),
        "candidate": verdict.candidate if verdict else None,
        "baseline": verdict.baseline if verdict else None,
        "ratio": row.ratio,
        "lo": row.lo,
        "hi": row.hi,
        "mde": row.mde,
        "verdict": plain(row.value),
        "reason": verdict.reason if verdict else None,
        "baseline_run": row.baseline_run,
        "red": row.red,
        "acceptance": verdict.acceptance if verdict else None,
        "pairs": None if by_bounds else row.pairs,
        "figures": dict(row.figures),
    }


def plain_point(point: RatioPoint) -> dict[str, object]:
    """Return a point of the history of a query as the evidence has it."""
    verdict = point.verdict
    return {
        "night": verdict.night,
        "started": plain(point.started),
        "build": verdict.build,
        "baseline": point.baseline,
        "value": verdict.value.value,
        "ratio": verdict.ratio,
        "lo": verdict.lo,
        "hi": verdict.hi,
        "mde": verdict.mde,
        "shift": verdict.shift,
        "noise": verdict.noise,
        "candidate": verdict.candidate,
        "acceptance": verdict.acceptance,
        "version": point.version,
        "mode": verdict.mode.value,
        "reason": verdict.reason,
        "decides": verdict.decides,
        "pairs": verdict.pairs,
        "fresh_pairs": verdict.fresh_pairs,
        "shape": point.shape,
    }
