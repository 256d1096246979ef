"""The hosts of a night in one strip: what the canary says of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Host:
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


def hosts_of(rows: Iterable[Any]) -> list[Host]:
    """Return the hosts of a night from least, mean and most of each reading."""
    from nexmark.verdict.canary import WAITING, is_level

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
            Host(
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
    found = [row.most for (name, _), row in readings.items() if name == metric]
    return max((x for x in found if x is not None), default=None)


__all__ = ["Host", "hosts_of"]
