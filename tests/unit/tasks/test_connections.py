"""What a Spark connection must not hold."""

from __future__ import annotations

import json

import pytest

from nexmark.config import load
from nexmark.tasks.preflight import connection_problem

MARKER = "Xk7hushQ2"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"conn_type": "spark", "host": "yarn"}, "is spark yarn:, but the master of cluster local"),
        ({"conn_type": "yarn", "host": "yarn", "port": 1}, "is yarn yarn:1, but the master of"),
        (None, "there is none; set AIRFLOW_CONN_NEXMARK_LOCAL="),
    ],
)
def test_a_connection_to_yarn_is_refused_and_so_is_none(
    monkeypatch: pytest.MonkeyPatch, value: dict[str, object] | None, said: str
) -> None:
    """Without a connection the provider would submit to YARN."""
    cluster = load().clusters["local"]
    name = f"AIRFLOW_CONN_{cluster.spark_connection.upper()}"
    monkeypatch.delenv(name, raising=False)
    if value is not None:
        monkeypatch.setenv(name, json.dumps(value))
    problem = connection_problem(cluster)
    assert problem.startswith(f"connection {cluster.spark_connection}: {said}")
    assert "; set AIRFLOW_CONN_NEXMARK_LOCAL=" in problem


def test_a_driver_on_the_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = load().clusters["local"]
    host, port = cluster.master_url.rsplit(":", 1)
    value = {"conn_type": "spark", "host": host, "port": int(port)}
    value["extra"] = {"deploy-mode": "cluster"}
    monkeypatch.setenv(f"AIRFLOW_CONN_{cluster.spark_connection.upper()}", json.dumps(value))
    assert "deploy-mode is cluster, the driver must run here" in connection_problem(cluster)


def test_a_keytab_is_refused_for_the_provider_would_leave_it_in_tmp(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = load().clusters["local"]
    host, port = cluster.master_url.rsplit(":", 1)
    name = f"AIRFLOW_CONN_{cluster.spark_connection.upper()}"
    value = {"conn_type": "spark", "host": host, "port": int(port), "password": MARKER}
    monkeypatch.setenv(name, json.dumps(value))
    assert connection_problem(cluster) == ""
    monkeypatch.setenv(name, json.dumps(value | {"extra": {"keytab": MARKER}}))
    problem = connection_problem(cluster)
    assert "has a keytab" in problem
    assert MARKER not in problem
