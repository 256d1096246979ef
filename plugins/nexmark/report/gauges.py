"""The gauges of a night, for the system that keeps the metrics of Airflow."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nexmark.evidence.night_evidence import Report
from nexmark.model import GROWTH

GRADES: Mapping[str, int] = {"steady": 0, "unsteady": 1, "broken": 2}
"""The grade of the hosts of a night as a number."""


@dataclass(frozen=True)
class Gauge:
    """A figure of a night, or of a query in it.

    Attributes:
        name: The name of the gauge in systems that have tags: `query.ratio`.
        value: The figure.
        tags: The DAG, workload, cluster and engine of the night, and the query.
        parts: The parts of the name in systems without tags.
    """

    name: str
    value: float
    tags: Mapping[str, str]
    parts: tuple[str, ...]


def gauges(report: Report) -> Iterator[Gauge]:
    """Yield the gauges of a night; gauges without a figure are left out."""
    night = report.night
    place = (night.dag_id, night.workload, night.cluster)
    tags = {
        "dag_id": night.dag_id,
        "workload": night.workload,
        "cluster": night.cluster,
        "engine": night.engine,
    }
    of_night: dict[str, float | None] = {
        "red": report.failed,
        "red_queries": sum(row.red for row in report.rows),
        "wrong": sum(row.result == "WRONG" for row in report.rows),
        "grade": GRADES.get(night.grade or ""),
    }
    for name, value in of_night.items():
        if value is not None:
            yield Gauge(f"night.{name}", float(value), tags, (*place, "night", name))
    for row in report.rows:
        of_query: dict[str, float | None] = {
            "ratio": row.ratio,
            "cpu_s_per_mevent": row.cpu_s_per_mevent,
            "growth": row.verdict.candidate if row.verdict and row.metric == GROWTH else None,
            "red": row.red,
        }
        query_tags = {**tags, "query": row.query}
        for name, value in of_query.items():
            if value is not None:
                yield Gauge(f"query.{name}", float(value), query_tags, (*place, row.query, name))
