"""A night from Kafka on hosts over SSH, by the Airflow connection of a Kafka that is there.

The one night of CI on three hosts to which nothing happens but the loss of a broker.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nexmark.kafka.topics import KafkaCluster
from testbed import kafka as testbed_kafka
from testbed.connections import CONNECTIONS, put_connections
from tests.cluster.nights import FollowedNight, workload
from tests.cluster.testbed import Testbed
from tests.kafka.conftest import share_jars
from tests.site import TINY, Site, run_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUERIES = ("q0", "q17")


@contextmanager
def brokers(testbed: Testbed, site: Site) -> Iterator[KafkaCluster]:
    """A broker on each host."""
    share_jars(site.home)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NEXMARK_HOME", str(site.home))
            yield KafkaCluster(testbed_kafka.up(testbed.cluster, testbed.home, print))
    finally:
        for name, host in testbed.hosts.items():
            testbed.kill(name, "nexmark.broker")
            shutil.rmtree(host.disk / "kafka", ignore_errors=True)


@pytest.fixture(scope="module")
def night(session_testbed: Testbed, site: Site) -> FollowedNight:
    """A night on three hosts that has ended; one of three brokers was killed when it began."""
    session_testbed.up()
    workload(site, **TINY, verify=TINY, source="kafka", partitions=4)
    with brokers(session_testbed, site) as kafka:
        with FollowedNight(site, session_testbed, *QUERIES) as followed:
            followed.wait_line("a consumer alone reads")
            (topic,) = kafka.topics()
            assert (topic.partitions, topic.replicas, topic.records) == (4, 3, TINY["events"])
            assert session_testbed.kill("nexmark03", "nexmark.broker")
            followed.end()
        assert kafka.topics() == [], "the night removes its topics from a Kafka that goes on"
    return followed


@pytest.mark.fault("a broker of three killed in mid-night", outcome="goes on; every event once")
def test_a_night_reads_every_event_though_a_broker_is_killed(night: FollowedNight) -> None:
    assert night.process.returncode == 0, night.text
    statuses = {name: each.status for name, each in night.outcomes().items()}
    assert statuses == dict.fromkeys(QUERIES, "ok")


def test_a_night_on_three_hosts_is_measured_on_both_workers(
    site: Site, night: FollowedNight
) -> None:
    with site.store() as store:
        rows = store.repetitions(run_of(night.text))
        assert [row.query for row in rows] == list(QUERIES)
        for row in rows:
            series = {each.host: each for each in store.sample_series(row.id)}
            assert {"nexmark01", "nexmark02", "nexmark03"} < set(series)
            assert row.cpu_executors_s
            assert row.cpu_driver_s


def test_what_the_harness_costs_is_reported_and_small(night: FollowedNight) -> None:
    line = night.line(r"harness: .* [0-9.]+ s per timed repetition")
    assert line, night.text
    (seconds,) = re.findall(r"([0-9.]+) s per timed repetition", line)
    assert float(seconds) < 90  # 30 s at rest, for two repetitions; tests run beside other load


def test_no_secret_is_in_a_log_or_an_xcom(site: Site, night: FollowedNight) -> None:
    """`spark.authenticate.secret` is 64 hexadecimal digits; its name may be there, it may not."""
    files = [
        path
        for pattern in ("runs/**/*", "logs/*", "airflow/logs/**/*", "airflow/airflow.db")
        for path in site.home.glob(pattern)
        if path.is_file()
    ]
    assert len(files) > 20
    secret = re.compile(rb"authenticate\.secret['\"=: ]+[0-9a-f]{64}")
    assert [path for path in files if secret.search(path.read_bytes())] == []
    assert list((site.home / "clusters" / "namespaces").rglob("secret")) == []


def test_a_kafka_that_does_not_answer_is_one_line_before_anything_is_started(
    testbed: Testbed, site: Site
) -> None:
    workload(site, **TINY, verify=TINY, source="kafka", partitions=4)
    nobody = f"{testbed.cluster.master_address}:9"
    kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": nobody}}
    put_connections(testbed.home / CONNECTIONS, {str(testbed.cluster.kafka): kafka})
    with FollowedNight(site, testbed, "q0") as night:
        assert night.end() != 0
    (line,) = (line for line in night.text.splitlines() if "no topic can be made" in line)
    assert f"kafka {nobody}: no topic can be made: " in line
    assert not night.line("deployed|is up at"), night.text
