"""A night from Kafka on hosts over SSH, by the Airflow connection of a Kafka that is there.

Nothing happens to it but the loss of a broker.
"""

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
from tests.site import TINY, Site

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


@pytest.mark.long
@pytest.mark.fault("a broker of three killed in mid-night", outcome="goes on; every event once")
def test_a_night_reads_every_event_though_a_broker_is_killed(night: FollowedNight) -> None:
    assert night.process.returncode == 0, night.text
    statuses = {name: each.status for name, each in night.outcomes().items()}
    assert statuses == dict.fromkeys(QUERIES, "ok")


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
