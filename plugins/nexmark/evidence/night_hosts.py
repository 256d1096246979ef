"""The hosts of a night: what they are, and what the canary says of each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from nexmark.config import paths
from nexmark.model import grouped
from nexmark.store.table_rows import CanaryRow, NightRow


@dataclass(frozen=True)
class NightHost:
    """One host: how far apart the canary's timings were, the worst steal and load.

    ``drift`` is the mean of a timing after the queries by that before, the one that is furthest
    from 1 of those that do not wait; ``timing`` its name. None where there is no reading.
    """

    name: str
    drift: float | None
    timing: str
    steal_percent: float | None
    load: float | None
    throttled: float | None


@dataclass(frozen=True)
class CanaryMedian:
    """The median reading of a metric on a host, before or after the queries."""

    host: str
    metric: str
    moment: str
    median: float
    readings: int


def canary_of(rows: Iterable[CanaryRow]) -> list[CanaryMedian]:
    """Return the median reading of each host and metric, before and after the queries."""
    known = (
        ((row.host, row.metric, row.moment), row.value) for row in rows if row.value is not None
    )
    return [
        CanaryMedian(*place, median(value for _, value in own), len(own))
        for place, own in sorted(grouped(known, lambda one: one[0]).items())
    ]


def host_facts(night: NightRow) -> dict[str, Mapping[str, Any]]:
    """Return kernel, CPU, JDK and so on by host, {} where the night has not noted them."""
    try:
        found = json.loads((Path(night.directory) / paths.HOSTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def hosts_of(rows: Iterable[Any]) -> list[NightHost]:
    """Return the hosts of a night from least, mean and most of each reading."""
    from nexmark.verdict.eligibility import WAITING, is_level

    found: dict[str, dict[tuple[str, str], Any]] = {}
    for row in rows:
        found.setdefault(row.host, {})[row.metric, row.moment] = row
    hosts = []
    for name, readings in sorted(found.items()):
        drifts = {
            metric: readings[metric, "after"].mean / readings[metric, "before"].mean
            for metric, moment in readings
            if moment == "before"
            and (metric, "after") in readings
            and not (is_level(metric) or metric.startswith(WAITING))
            and readings[metric, "before"].mean
            and readings[metric, "after"].mean
        }
        worst = max(drifts, key=lambda x: max(drifts[x], 1 / drifts[x]), default="")
        hosts.append(
            NightHost(
                name,
                drifts.get(worst),
                worst,
                _most(readings, "steal_percent"),
                _most(readings, "load_1m"),
                _most(readings, "throttled"),
            )
        )
    return hosts


def _most(readings: dict[tuple[str, str], Any], metric: str) -> float | None:
    found = (row.most for (name, _), row in readings.items() if name == metric)
    return max((x for x in found if x is not None), default=None)
