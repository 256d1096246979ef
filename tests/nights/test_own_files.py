"""A job over files of a person's own, in a night by Airflow."""

from __future__ import annotations

import pytest

from tests.nights.files_job import FILES, JAR, JOB, PARTITIONS, ROWS
from tests.nights.test_nights import Night, directory_of
from tests.site import Site

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_it_reads_all_rows_in_its_batches_and_is_proven(site: Site, run: str) -> None:
    with site.store() as store:
        rows = store.repetitions(run, [JOB])
    assert [(row.number, row.status, row.reason) for row in rows] == [
        (1, "ok", None),
        (2, "ok", None),
    ]
    assert {row.events for row in rows} == {FILES * ROWS}
    assert {row.output_rows for row in rows} == {6 * 4}  # countries, minutes
    assert len({row.digest for row in rows}) == 1
    assert rows[0].formulation.startswith("python-")


def test_its_layout_is_said_and_is_gone_afterwards(site: Site, green: Night, run: str) -> None:
    assert f"{JOB}: orders: 2,000 rows, micro-batches of 600" in green.stdout
    assert f"{JOB}: countries: 6 rows, static" in green.stdout
    assert f"{JOB} verify: 24 rows equal the reference" in green.stdout
    assert not (directory_of(site, run) / "tables" / JOB).exists()


def test_its_confs_and_its_jar_are_its_own(site: Site, run: str) -> None:
    with site.store() as store:
        confs = {row.query: row.confs or {} for row in store.repetitions(run, [JOB, "q5"])}
    assert confs[JOB]["spark.sql.shuffle.partitions"] == str(PARTITIONS)
    assert confs[JOB]["spark.jars"].endswith(f"/own/{JOB}/{JAR}")
    assert confs["q5"]["spark.sql.shuffle.partitions"] != str(PARTITIONS)
    assert "spark.jars" not in confs["q5"]
