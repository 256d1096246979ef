"""A night from Kafka by the command that a person uses: broker, topics, queries, nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nexmark.engines import Build
from nexmark_jobs.host.processes import marked
from tests.kafka.conftest import share_jars
from tests.site import ENGINE, Site, make_site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.extended]


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("kafka-night")
    kafka = {"source": "kafka", "partitions": 4}
    build = engine_build(ENGINE)
    made = make_site(directory / "home", directory / "conf", build, interpreted=True, **kafka)
    share_jars(made.home)
    yield made
    made.stop()


def left(site: Site) -> list[str]:
    """The processes of the site's home that still run."""
    return [process.command for process in marked(f"{site.home}|")]


def broker_files(site: Site) -> list[Path]:
    """The storage of brokers that nights of the site have started."""
    return list((site.home / "clusters").glob("*/kafka/broker-*"))


def test_a_night_reads_its_topic_and_ends_its_broker(site: Site) -> None:
    done = site.night("--queries", "q17", "--repetitions", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Kafka is up at 127.0.0.1:" in done.stdout
    assert "20,000 events in 4 partitions" in done.stdout
    assert left(site) == []
    assert not broker_files(site)
    with site.store() as store:
        rows = store.repetitions(run_name(done))
    assert {(row.query, row.status) for row in rows} == {("q17", "ok")}
    for row in rows:
        # How much faster a consumer alone is than the query, the load decides.
        assert row.figures["source_rate"] > 0
        rate = row.steady_throughput or row.throughput
        assert row.figures["read_rate"] / rate == pytest.approx(1), "q17 scans its topic once"
        assert 0 < row.figures["broker_cpu_s"] < 60


def test_an_interrupted_night_leaves_no_broker(site: Site, tmp_path: Path) -> None:
    log = tmp_path / "night.log"
    with log.open("w") as output:
        night = subprocess.Popen(
            site.command("--queries", "q0"),
            env=site.environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        deadline = time.monotonic() + 300
        while "events in 4 partitions" not in log.read_text():
            assert night.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.5)
        assert broker_files(site)
        os.killpg(night.pid, signal.SIGINT)
        assert night.wait(120) == 130
    assert left(site) == []
    assert not broker_files(site)
