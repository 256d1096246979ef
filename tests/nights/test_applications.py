"""An application of a person's own with two streaming queries, unchanged, in a night by Airflow."""

from __future__ import annotations

import json

import pytest

from nexmark.model import Arm
from nexmark.store.gate_rows import observed
from tests.nights.test_nights import Night, directory_of
from tests.site import Site

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 8 * 500
LARGE = 49 * ROWS // 100


def test_it_is_measured_from_its_event_log_and_by_the_samplers(site: Site, run: str) -> None:
    """Both repetitions read all files in two queries; Spark counts what passes the filter."""
    with site.store() as store:
        rows = store.repetitions(run, ["orders"])
        parts = observed(store, run, "orders")[Arm.CANDIDATE][0].parts
    assert [(row.number, row.status, row.reason) for row in rows] == [
        (1, "ok", None),
        (2, "ok", None),
    ]
    assert {row.events for row in rows} == {ROWS + LARGE}
    assert all(row.cpu_executors_s > 0 and row.cpu_driver_s > 0 for row in rows)
    assert all(row.state_rows_max > 0 and row.stateful_operators == 1 for row in rows)
    assert {"FileScan", "StateStoreSave"} <= {part.name for part in parts}


def test_its_repetitions_wrote_the_same_rows(site: Site, run: str) -> None:
    with site.store() as store:
        rows = store.repetitions(run, ["orders"])
    assert len({(row.digest, row.output_rows) for row in rows}) == 1
    assert rows[0].output_rows > LARGE
    assert rows[0].formulation.startswith("application-")


def test_that_it_was_stopped_is_said_and_is_no_failure(green: Night) -> None:
    assert "orders rep-1: when the input is read: is stopped" in green.stdout
    assert "orders: is an application of your own" in green.stdout


def test_a_jar_is_stopped_after_its_batches(site: Site, run: str) -> None:
    """What it has read meanwhile does not count, and nothing is known of its rows."""
    with site.store() as store:
        rows = store.repetitions(run, ["orders_jar"])
    assert [(row.number, row.status, row.reason) for row in rows] == [
        (1, "ok", None),
        (2, "ok", None),
    ]
    assert {(row.events, row.batches, row.digest) for row in rows} == {(3 * 500, 3, None)}


def test_nothing_is_left_of_what_it_wrote(site: Site, run: str) -> None:
    directory = directory_of(site, run)
    assert list((directory / "orders").glob("*/own")) == []
    plan = json.loads((directory / "night.json").read_text())
    secret = plan["jobs"]["orders"]["application"]["confs"]["spark.hadoop.orders.password"]
    assert secret.startswith("***-")


def test_the_file_that_ran_is_the_file_of_the_person(site: Site) -> None:
    """It is with the jobs, by its content."""
    (copy,) = {path.read_bytes() for path in (site.home / "jobs").rglob("own/orders/orders.py")}
    assert copy == (site.conf / "jobs" / "orders.py").read_bytes()
