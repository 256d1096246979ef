"""What a Spark connection must not hold."""

from __future__ import annotations

import json

import pytest

from nexmark.config import load
from nexmark.tasks.preflight import connection_problem

MARKER = "Xk7hushQ2"


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
