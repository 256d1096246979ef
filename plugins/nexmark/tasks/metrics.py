"""Sends the results of a night as metrics, with the client that Airflow uses for its own.

Nothing is sent unless Airflow's metrics are on (`[metrics] statsd_on`, `statsd_datadog_enabled` or
`otel_on`); prefix, allow and block list are Airflow's. As Airflow does it, each gauge goes out
under one name with tags (dag_id, engine, workload, cluster, query), and, where `legacy_names_on` is
set, for plain StatsD under one that has them in it:

    nexmark.query.ratio                                           candidate / baseline
    nexmark.query.cpu_s_per_mevent                                CPU-seconds per million events
    nexmark.query.red                                             1 where it fails the night, else 0
    nexmark.night.red, .red_queries, .wrong                       1 or 0; how many; how many
    nexmark.night.grade                                           0 steady, 1 unsteady, 2 broken
    nexmark.<dag_id>.<workload>.<cluster>.<query>.ratio           and so on
    nexmark.<dag_id>.<workload>.<cluster>.night.red               and so on
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from airflow.sdk.observability import stats

if TYPE_CHECKING:
    from nexmark.evidence.night_evidence import Report
    from nexmark.evidence.rows import Row

PREFIX = "nexmark"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
GRADES: Mapping[str, int] = {"steady": 0, "unsteady": 1, "broken": 2}


def emit(report: Report) -> None:
    """Send the gauges of a night; those that have no figure are left out."""
    night = report.night
    place = {"dag_id": night.dag_id, "workload": night.workload, "cluster": night.cluster}
    tags = {**place, "engine": night.engine}
    for name, value in _of_night(report):
        _gauge(f"night.{name}", value, [*place.values(), "night", name], tags)
    for row in report.rows:
        for name, value in _of_query(row):
            parts = [*place.values(), row.query, name]
            _gauge(f"query.{name}", value, parts, {**tags, "query": row.query})


def _of_night(report: Report) -> Iterator[tuple[str, float]]:
    yield "red", float(report.failed)
    yield "red_queries", float(sum(row.red for row in report.rows))
    yield "wrong", float(sum(row.result == "WRONG" for row in report.rows))
    grade = GRADES.get(report.night.grade or "")
    if grade is not None:
        yield "grade", float(grade)


def _of_query(row: Row) -> Iterator[tuple[str, float]]:
    if row.ratio is not None:
        yield "ratio", row.ratio
    if row.cpu_s_per_mevent is not None:
        yield "cpu_s_per_mevent", row.cpu_s_per_mevent
    yield "red", float(row.red)


def _gauge(name: str, value: float, parts: list[str], tags: Mapping[str, str]) -> None:
    from airflow.sdk.configuration import conf

    stats.gauge(f"{PREFIX}.{name}", value, tags=dict(tags))
    if conf.getboolean("metrics", "legacy_names_on"):
        stats.gauge(".".join([PREFIX, *(_UNSAFE.sub("_", part) for part in parts)]), value)
