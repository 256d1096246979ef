"""A night from Kafka on hosts over SSH, by the Airflow connection of a Kafka that is there."""

import shutil
from collections.abc import Iterator

import pytest

from nexmark.kafka.topics import KafkaCluster
from testbed import kafka as testbed_kafka
from testbed.connections import CONNECTIONS, put_connections
from tests.cluster.nights import FollowedNight, workload
from tests.cluster.testbed import Testbed
from tests.kafka.conftest import share_jars
from tests.site import TINY, Site

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def kafka(testbed: Testbed, site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaCluster]:
    """A broker on each host."""
    share_jars(site.home)
    monkeypatch.setenv("NEXMARK_HOME", str(site.home))
    try:
        yield KafkaCluster(testbed_kafka.up(testbed.cluster, testbed.home, print))
    finally:
        for name, host in testbed.hosts.items():
            testbed.kill(name, "nexmark.broker")
            shutil.rmtree(host.disk / "kafka", ignore_errors=True)


@pytest.mark.fault("a broker of three killed in mid-night", outcome="goes on; every event once")
def test_a_night_reads_every_event_though_a_broker_is_killed(
    testbed: Testbed, site: Site, kafka: KafkaCluster
) -> None:
    workload(site, **TINY, verify=TINY, source="kafka", partitions=4)
    with FollowedNight(site, testbed, "q0", "q17") as night:
        night.wait_line("a consumer alone reads")
        (topic,) = kafka.topics()
        assert (topic.partitions, topic.replicas, topic.records) == (4, 3, TINY["events"])
        assert testbed.kill("nexmark03", "nexmark.broker")
        assert night.end() == 0, night.text
        assert {name: each.status for name, each in night.outcomes().items()} == {
            "q0": "ok",
            "q17": "ok",
        }
    assert kafka.topics() == [], "the night removes its topics from a Kafka that goes on"


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
