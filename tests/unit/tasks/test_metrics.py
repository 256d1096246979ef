"""Metrics go where Airflow's go, and nowhere where those are off."""

from __future__ import annotations

import math
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics.stats_utils import get_stats_factory

from nexmark.airflow_site.airflow_home import airflow_environment
from nexmark.config import load
from nexmark.evidence.night_evidence import Report
from nexmark.evidence.rows import Row
from nexmark.model import Value
from nexmark.report.gauges import gauges
from nexmark.store.table_rows import NightRow
from nexmark.tasks.metrics import emit
from tests.unit.store.store_builder import by_bounds

SLOWER = by_bounds("q5", Value.REGRESSION, ratio=1.2)
ROWS = (
    Row("q0", by_bounds("q0", Value.OK, ratio=1.01), cpu_s_per_mevent=10.5, result="right"),
    Row("q5", SLOWER, cpu_s_per_mevent=240.0, result="right"),
    Row("q9", by_bounds("q9", Value.INVALID), result="WRONG"),
)
NIGHT = NightRow(
    id="nexmark_spark_4_3_0/manual__1",
    dag_id="nexmark_spark_4_3_0",
    engine="spark-4.3.0",
    workload="nightly",
    cluster="local",
    grade="unsteady",
)
REPORT = Report(NIGHT, ROWS, (), failed=True)


class Server:
    """A StatsD server: a UDP socket on loopback."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)

    @property
    def port(self) -> str:
        return str(self.socket.getsockname()[1])

    def received(self) -> dict[str, float]:
        """What was sent so far, by name: on loopback it is here when it was sent."""
        found = {}
        while True:
            try:
                text = self.socket.recv(65536).decode()
            except BlockingIOError:
                return found
            for line in text.splitlines():
                name, _, value = line.partition(":")
                assert value.endswith("|g"), line
                found[name] = float(value.removesuffix("|g"))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A StatsD server; Airflow knows its address, but does not use it yet."""
    made = Server()
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_HOST", "127.0.0.1")
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_PORT", made.port)
    yield made
    made.socket.close()
    monkeypatch.undo()
    initialize()


def initialize(legacy: bool = True) -> None:
    """As Airflow does at the start of every task."""
    stats.initialize(factory=get_stats_factory(), export_legacy_names=legacy)


def test_each_query_and_the_night_have_their_gauges(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "True")
    initialize()
    emit(REPORT)
    found = server.received()
    place = "airflow.nexmark.nexmark_spark_4_3_0.nightly.local"
    assert {name: x for name, x in found.items() if name.startswith(place)} == {
        f"{place}.q0.ratio": 1.01,
        f"{place}.q0.cpu_s_per_mevent": 10.5,
        f"{place}.q0.red": 0,
        f"{place}.q5.ratio": 1.2,
        f"{place}.q5.cpu_s_per_mevent": 240.0,
        f"{place}.q5.red": 1,
        f"{place}.q9.red": 1,
        f"{place}.night.red": 1,
        f"{place}.night.red_queries": 2,
        f"{place}.night.wrong": 1,
        f"{place}.night.grade": 1,
    }
    assert {name for name in found if not name.startswith(place)} == {
        *(f"airflow.nexmark.query.{x}" for x in ("ratio", "cpu_s_per_mevent", "red")),
        *(f"airflow.nexmark.night.{x}" for x in ("red", "red_queries", "wrong", "grade")),
    }
    assert all(math.isfinite(value) for value in found.values())


def test_a_job_of_a_person_has_its_gauges_as_a_query_has() -> None:
    row = Row("busy_auctions", by_bounds("busy_auctions", Value.OK, ratio=1.3), result="right")
    found = {
        each.parts: (each.value, each.tags["query"])
        for each in gauges(Report(NIGHT, (row,), (), failed=False))
        if "query" in each.tags
    }
    place = ("nexmark_spark_4_3_0", "nightly", "local", "busy_auctions")
    assert found == {
        (*place, "ratio"): (1.3, "busy_auctions"),
        (*place, "red"): (0.0, "busy_auctions"),
    }


def test_where_tags_are_understood_they_say_whose_it_is(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "True")
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED", "True")
    monkeypatch.setenv("AIRFLOW__METRICS__LEGACY_NAMES_ON", "False")
    initialize(legacy=False)
    emit(REPORT)
    found = server.received()
    tags = "dag_id=nexmark_spark_4_3_0,workload=nightly,cluster=local,engine=spark-4.3.0"
    assert found[f"airflow.nexmark.query.ratio,{tags},query=q5"] == 1.2
    assert found[f"airflow.nexmark.night.red,{tags}"] == 1
    assert len(found) == 11


def test_nothing_is_sent_unless_the_metrics_of_airflow_are_on(server: Server) -> None:
    initialize()
    emit(REPORT)
    assert server.received() == {}


def test_no_name_needs_the_rules_of_statsd(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "True")
    initialize()
    odd = NightRow(dag_id="a.b c|d:e", engine="x", workload="ü@1", cluster="l\n", grade=None)
    emit(Report(odd, ROWS[:1], (), failed=False))
    found = server.received()
    assert found["airflow.nexmark.a_b_c_d_e.__1.l_.q0.ratio"] == 1.01
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", name) for name in found)


def test_make_run_and_make_ui_leave_the_settings_of_metrics_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "True")
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "NoSuch")
    environment = airflow_environment(load())
    assert environment["AIRFLOW__METRICS__STATSD_ON"] == "True"
    assert environment["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
