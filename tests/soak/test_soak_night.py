"""A soak night through real Airflow and real Spark: what grows in the candidate turns it red.

The candidate is a changed version of a job of a person's own, whose listener and batches leak.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from nexmark.engines import Build
from tests.site import ENGINE, Site, make_site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.extended]

ROWS, BATCHES = 20, 100
JOB = "passed_bids"
STEADY = """\
def build(spark, tables):
    return tables["bid"].select("auction", "bidder", "price")
"""
#: Its listener keeps a buffer after each batch, starts a thread that does not end, and leaves a
#: file open, all in the JVM of the driver. Its `foreachBatch` caches a frame and does not release
#: it.
LEAKING = """\
from pyspark.sql.streaming import StreamingQueryListener

BYTES = 200_000


class Keeper(StreamingQueryListener):
    def __init__(self, jvm):
        self.jvm, self.kept = jvm, []

    def onQueryProgress(self, event):
        java = self.jvm.java
        self.kept.append(java.nio.ByteBuffer.allocate(BYTES))
        self.kept.append(java.util.Timer("reporter", True))
        self.kept.append(java.io.FileInputStream("/etc/hostname"))

    def onQueryStarted(self, event):
        pass

    def onQueryIdle(self, event):
        pass

    def onQueryTerminated(self, event):
        pass


def build(spark, tables):
    spark.streams.addListener(Keeper(spark._jvm))
    return tables["bid"].select("auction", "bidder", "price")


def each(rows, batch):
    padding = "repeat(sha2(CAST(price AS STRING), 512), 50) AS padding"
    return rows.selectExpr("*", padding).persist().drop("padding")
"""


def write_job(directory: Path, program: str, **keys: str) -> None:
    directory.mkdir(exist_ok=True)
    job = {"tables": "nexmark", "python": f"{JOB}.py:build", "reference": f"{JOB}.duckdb.sql"}
    job |= keys
    (directory / f"{JOB}.yaml").write_text(yaml.safe_dump(job))
    (directory / f"{JOB}.duckdb.sql").write_text("SELECT auction, bidder, price FROM bid")
    (directory / f"{JOB}.py").write_text(program)


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("soak")
    soak = {"kind": "soak", "soak": {"samples": 10}, "conf_profile": "soak"}
    size = {"events": ROWS * BATCHES, "rows_per_batch": ROWS, "warmup_batches": 40}
    build = engine_build(ENGINE)
    made = make_site(directory / "home", directory / "conf", build, repetitions=1, **soak, **size)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def leaking(site: Site) -> subprocess.CompletedProcess[str]:
    write_job(site.conf / "jobs", STEADY)
    changed = site.home.parent / "changed"
    write_job(changed, LEAKING, foreach_batch="each")
    return site.night("--candidate-job", str(changed))


def test_what_grows_in_the_candidate_alone_turns_the_night_red(
    site: Site, leaking: subprocess.CompletedProcess[str]
) -> None:
    assert leaking.returncode == 1, leaking.stdout + leaking.stderr
    with site.store() as store:
        run = run_name(leaking)
        (verdict,) = (each for each in store.verdicts(run) if each.red)
        rows = store.repetitions(run)
    assert (verdict.query, verdict.value) == (JOB, "REGRESSION")
    grown = verdict.reason.split("; ")
    assert [line.partition(" +")[0] for line in grown] == [
        "grows in 2 pairs: live heap of the driver",
        "live heap of the executor",
        "threads of the driver",
        "open files of the driver",
    ]
    causes = (r" byte\[\] \d\d %", r" byte\[\] \d\d %", r" reporter \d+ %", r" /etc \d+ %")
    assert all(re.search(cause, line) for cause, line in zip(causes, grown, strict=True))
    assert sorted((row.arm, row.stage) for row in rows) == [
        ("baseline", 1),
        ("baseline", 2),
        ("candidate", 1),
        ("candidate", 2),
    ]
    assert {row.status for row in rows} == {"ok"}
    (batches,) = {row.batches for row in rows}
    assert batches is not None
    assert batches >= BATCHES  # the end of the input closes the windows in some more


def test_each_sample_is_said_while_it_runs(leaking: subprocess.CompletedProcess[str]) -> None:
    assert "after batch 50: driver " in leaking.stdout


def test_nothing_is_left_of_it(site: Site, leaking: subprocess.CompletedProcess[str]) -> None:
    assert site.leftovers() == []
