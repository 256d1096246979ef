"""The repetitions of a query as pairs, with every number, and what one of them did over time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from nexmark.report.plain import plain
from nexmark.store import BASELINE, CANDIDATE, Store
from nexmark.store.models import Repetition
from nexmark.store.series import unpack

ARMS = (CANDIDATE, BASELINE)
STAGES: Mapping[int, str] = {1: "first pairs", 2: "fresh pairs"}
"""Those that are judged."""
FIGURE = {"steady": "cpu_s_per_mevent_steady", "application": "cpu_s_per_mevent_application"}
_MOST_POINTS = 100
_BEFORE_S, _AFTER_S = 10, 5
_OF_BATCH = ("input_rows", "duration_ms", "state_rows", "state_bytes")
_LEFT_OUT = ("confs", "batch_list")


def pairs_of(rows: Sequence[Repetition]) -> list[dict[str, Any]]:
    """Return the pairs of one query: by stage and number, both repetitions and their ratio.

    The figure of a pair is on the basis that all repetitions of the query have, as the gate's is.
    A night of one arm has pairs without a baseline.
    """
    own = [row for row in rows if row.arm in ARMS]
    column = FIGURE[_basis(own)]
    found: dict[tuple[int, int], dict[str, Repetition]] = {}
    for row in own:
        found.setdefault((row.stage, row.number), {})[row.arm] = row
    return [
        {
            "stage": stage,
            "number": number,
            "ratio": _ratio(*(_figure(arms.get(arm), column) for arm in ARMS)),
            **{f"{arm}_figure": _figure(arms.get(arm), column) for arm in ARMS},
            **{arm: _numbers(arms.get(arm)) for arm in ARMS},
        }
        for (stage, number), arms in sorted(found.items())
    ]


def batches_of(rows: Sequence[Repetition]) -> list[dict[str, Any]]:
    """Return every micro-batch of the repetitions of both arms, with its time and its state."""
    return [
        {
            "arm": row.arm,
            "stage": row.stage,
            "number": row.number,
            **{name: batch.get(name) for name in ("id", "phase", *_OF_BATCH)},
        }
        for row in rows
        if row.arm in ARMS
        for batch in row.batch_list or ()
    ]


def batch_medians(batches: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the figures of each micro-batch as medians over the repetitions of an arm."""
    found: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for batch in batches:
        found.setdefault((batch["id"], batch["arm"]), []).append(batch)
    return [
        {
            "id": number,
            "arm": arm,
            "phase": own[0]["phase"],
            **{name: _median(own, name) for name in _OF_BATCH},
        }
        for (number, arm), own in sorted(found.items())
    ]


def _median(batches: Sequence[Mapping[str, Any]], name: str) -> float | None:
    known = [batch[name] for batch in batches if batch[name] is not None]
    return median(known) if known else None


def cpu_over_time(store: Store, rows: Sequence[Repetition]) -> list[dict[str, Any]]:
    """Return the cores in use over time, by host, of the pair whose ratio is the median one.

    ``seconds`` count from the start of the query, ``cores`` are of the executors and their Python
    workers; neighbouring readings are taken together where there are very many. Of a pair without
    samples, the next one to the median is taken.
    """
    measured = [row for row in rows if row.ok and row.arm in ARMS and row.start is not None]
    for pair in _by_typicality(measured):
        found = [one for row in pair for one in _cpu_of(store, row)]
        if found:
            return found
    return []


def _cpu_of(store: Store, row: Repetition) -> Iterator[dict[str, Any]]:
    for sampled in store.sample_series(row.id):
        series = unpack(sampled.series)
        used = [sum(x) for x in zip(series.executors, series.python, strict=True)]
        yield {
            "arm": row.arm,
            "stage": row.stage,
            "number": row.number,
            "host": series.host,
            "interval_s": series.interval_s,
            **_cores(series.times, used, row.start or 0.0, row.end or math.inf),
        }


def _cores(
    times: Sequence[float], used: Sequence[float], start: float, end: float
) -> dict[str, list[float]]:
    """Return the part of a series, which is of all repetitions, that is of this one."""
    own = [
        (at, cpu)
        for at, cpu in zip(times, used, strict=True)
        if start - _BEFORE_S <= at <= end + _AFTER_S
    ]
    kept = own[:: max(1, math.ceil(len(own) / _MOST_POINTS))]
    steps = [(a, b) for a, b in pairwise(kept) if b[0] > a[0]]
    return {
        "seconds": [round((a[0] + b[0]) / 2 - start, 2) for a, b in steps],
        "cores": [round((b[1] - a[1]) / (b[0] - a[0]), 3) for a, b in steps],
    }


def _by_typicality(rows: Sequence[Repetition]) -> list[list[Repetition]]:
    """Return the pairs, the one with the median ratio first."""
    column = FIGURE[_basis(rows)]
    pairs: dict[tuple[int, int], dict[str, Repetition]] = {}
    for row in rows:
        pairs.setdefault((row.stage, row.number), {})[row.arm] = row
    sizes = {}
    for key, arms in pairs.items():
        figures = [_figure(arms.get(arm), column) for arm in ARMS]
        size = _ratio(*figures) if BASELINE in arms else figures[0]
        if size is not None:
            sizes[key] = size
    middle = median(sizes.values()) if sizes else 0.0
    ranked = sorted(sizes, key=lambda key: (abs(sizes[key] - middle), key))
    return [[pairs[key][arm] for arm in ARMS if arm in pairs[key]] for key in ranked]


def _basis(rows: Sequence[Repetition]) -> str:
    steady = all(row.cpu_s_per_mevent_steady is not None for row in rows if row.ok)
    return "steady" if steady else "application"


def _figure(row: Repetition | None, column: str) -> float | None:
    value = getattr(row, column) if row is not None and row.ok else None
    return None if value is None else float(value)


def _ratio(candidate: float | None, baseline: float | None) -> float | None:
    return candidate / baseline if candidate is not None and baseline else None


def _numbers(row: Repetition | None) -> dict[str, Any] | None:
    return None if row is None else plain(row, leave_out=_LEFT_OUT)


__all__ = ["ARMS", "STAGES", "batch_medians", "batches_of", "cpu_over_time", "pairs_of"]
