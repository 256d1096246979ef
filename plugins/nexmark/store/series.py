"""CPU series as one compact value: compressed JSON, about 5 bytes per reading and column."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from nexmark.measure.cpu import CpuSeries

_COLUMNS = ("times", "executors", "python", "driver", "busy", "steal")
_MILLIS = 1000


def pack(series: CpuSeries) -> bytes:
    """Return the series with times and CPU-seconds rounded to milliseconds."""
    content: dict[str, Any] = asdict(series)
    for column in _COLUMNS:
        content[column] = _steps(content[column])
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 9)


def unpack(data: bytes) -> CpuSeries:
    """Return what was packed."""
    content = json.loads(zlib.decompress(data))
    content["executor_ends"] = tuple(content.get("executor_ends", ()))
    return CpuSeries(**{**content, **{column: _sums(content[column]) for column in _COLUMNS}})


def _steps(values: Sequence[float] | None) -> list[int] | None:
    """Return the differences in milliseconds; they are small and repeat themselves."""
    if values is None:
        return None
    millis = [round(value * _MILLIS) for value in values]
    return [after - before for before, after in zip([0, *millis], millis, strict=False)]


def _sums(steps: Sequence[int] | None) -> tuple[float, ...] | None:
    if steps is None:
        return None
    sums, total = [], 0
    for step in steps:
        total += step
        sums.append(total / _MILLIS)
    return tuple(sums)
