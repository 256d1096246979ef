"""An application that writes Delta tables, by the sink and by MERGE in `foreachBatch`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
import yaml

from nexmark.engines import Build
from nexmark.kafka.jars import fetched, locked_jars
from tests.applications.order_files import write_orders
from tests.nights.orders_job import SOURCES
from tests.site import Site, make_site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

JOB = "orders_delta"
FILES, ROWS = 8, 500
#: Delta has a release for each feature release of Spark; this one is for 4.0.
DELTA_ENGINE = "spark-4.0.5"


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("delta")
    home = directory / "home"
    made = make_site(home, directory / "conf", engine_build(DELTA_ENGINE), shares=False)
    jars = fetched("delta", locked_jars(SOURCES / "delta.lock"), directory / "jars", print)
    source = write_orders(directory / "orders", FILES, ROWS)
    jobs = made.conf / "jobs"
    jobs.mkdir(exist_ok=True)
    shutil.copy(SOURCES / f"{JOB}.py", jobs)
    application = {
        "main": f"{JOB}.py",
        "args": ["{{ input }}", "{{ output }}", "{{ checkpoint }}"],
        "confs": {
            "spark.jars": ",".join(map(str, jars)),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
        "input": str(source),
        "output": {"counts": "delta", "large": "delta"},
        "ends": "when the input is read",
    }
    (jobs / f"{JOB}.yaml").write_text(yaml.safe_dump({"application": application}))
    yield made
    made.stop()


def test_its_tables_have_the_same_rows_in_each_repetition(site: Site) -> None:
    night = site.night("--queries", JOB)
    assert night.returncode == 0, night.stdout + night.stderr
    with site.store() as store:
        rows = store.repetitions(run_name(night), [JOB])
    assert [(row.number, row.status, row.reason) for row in rows] == [
        (1, "ok", None),
        (2, "ok", None),
    ]
    large = 49 * FILES * ROWS // 100
    assert {row.events for row in rows} == {FILES * ROWS + large}
    assert {row.output_rows for row in rows} == {6 + large}  # one row a country, by MERGE
    assert len({row.digest for row in rows}) == 1
    assert site.leftovers() == []
