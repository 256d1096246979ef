"""Sends the gauges of a night with the client that Airflow uses for its own metrics.

Nothing is sent unless Airflow's are on (`[metrics] statsd_on`, `statsd_datadog_enabled` or
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

import re
from typing import TYPE_CHECKING

from airflow.sdk.configuration import conf
from airflow.sdk.observability import stats

if TYPE_CHECKING:
    from nexmark.evidence.night_evidence import Report

PREFIX = "nexmark"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def emit(report: "Report") -> None:
    """Send the gauges of a night."""
    from nexmark.report.gauges import gauges

    legacy = conf.getboolean("metrics", "legacy_names_on")
    for gauge in gauges(report):
        stats.gauge(f"{PREFIX}.{gauge.name}", gauge.value, tags=dict(gauge.tags))
        if legacy:
            name = ".".join([PREFIX, *(_UNSAFE.sub("_", part) for part in gauge.parts)])
            stats.gauge(name, gauge.value)
