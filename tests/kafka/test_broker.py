"""The broker of this machine: up, status, fill, jars, down, and what each refuses."""

from __future__ import annotations

import gzip
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from nexmark.kafka import KafkaError
from nexmark.kafka.filling import fill as fill_topic
from nexmark_jobs.host.processes import marked
from tests.kafka.conftest import BrokerOfTests, fill, new_broker

EVENTS = [f'{{"n":{n},"event_type":2}}' for n in range(1003)]


def read(broker: BrokerOfTests, topic: str, partition: int) -> list[str]:
    """The records of a partition, in order."""
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": "test"})
    begin, end = consumer.get_watermark_offsets(TopicPartition(topic, partition))
    consumer.assign([TopicPartition(topic, partition, begin)])
    found = [consumer.poll(10) for _ in range(end - begin)]
    consumer.close()
    return [message.value().decode() for message in found]


def test_event_n_is_in_partition_n_mod_p_in_order(broker: BrokerOfTests) -> None:
    done = fill(broker, "placed", EVENTS, 4)
    assert (done.events, done.partitions) == (1003, 4)
    for partition in range(4):
        assert read(broker, "placed", partition) == EVENTS[partition::4]


def test_a_directory_is_read_by_name_and_gzip_is_read(
    broker: BrokerOfTests, tmp_path: Path
) -> None:
    (tmp_path / "events-1.json").write_text("\n".join(EVENTS[500:]))
    (tmp_path / "events-0.json.gz").write_bytes(gzip.compress("\n".join(EVENTS[:500]).encode()))
    (tmp_path / "_SUCCESS").touch()
    said = broker.command(
        *("fill", "--events", str(tmp_path), "--topic", "directory", "--partitions", "1")
    )
    assert "1,003 events in 1 partitions" in said.stdout
    assert read(broker, "directory", 0) == EVENTS


def test_a_topic_that_is_there_is_only_replaced_on_request(broker: BrokerOfTests) -> None:
    fill(broker, "twice", EVENTS, 2)
    with pytest.raises(KafkaError, match="there is a topic twice already"):
        fill(broker, "twice", EVENTS, 2)
    file = broker.home / "twice.jsonl"
    again = fill_topic(broker.kafka, file, "twice", 3, replace=True)
    assert again.events == 1003
    assert [x.partitions for x in broker.kafka.topics() if x.name == "twice"] == [3]


@pytest.mark.parametrize(
    ("content", "problem"),
    [(None, "there is no such file"), (b"", "holds no events"), (b"\x1f\x8bxx", "cannot be read")],
)
def test_events_that_cannot_be_read_leave_no_topic(
    broker: BrokerOfTests, tmp_path: Path, content: bytes | None, problem: str
) -> None:
    events = tmp_path / ("events.json.gz" if content else "events.json")
    if content is not None:
        events.write_bytes(content)
    said = broker.command("fill", "--events", str(events), "--topic", "unread", code=2)
    assert problem in said.stderr
    assert said.stderr.count("\n") == 1
    assert "unread" not in {topic.name for topic in broker.kafka.topics()}


def test_topics_are_listed_while_others_are_removed(broker: BrokerOfTests) -> None:
    def come_and_go() -> None:
        for each in range(20):
            broker.kafka.create(f"passing-{each}", 1)
            broker.kafka.delete(f"passing-{each}")

    with ThreadPoolExecutor(1) as pool:
        passing = pool.submit(come_and_go)
        while not passing.done():
            broker.kafka.topics()
        passing.result()
    assert not [x.name for x in broker.kafka.topics() if x.name.startswith("passing")]


def test_status_names_the_broker_and_every_topic(broker: BrokerOfTests) -> None:
    fill(broker, "shown", EVENTS, 2)
    lines = broker.command("status").stdout.splitlines()
    assert lines[1].split()[:3] == ["1", broker.servers, "ready"]
    assert ["shown", "2", "1", "1,003"] in [line.split() for line in lines]


def test_up_again_changes_nothing_and_another_number_of_brokers_is_refused(
    broker: BrokerOfTests,
) -> None:
    before = processes_of(broker)
    broker.command("up", "--port", str(broker.port))
    assert processes_of(broker) == before
    said = broker.command("up", "--brokers", "3", "--port", str(broker.port), code=2)
    assert "has 1 broker from port 29092 on, not 3 brokers" in said.stderr
    assert "nexmark kafka down" in said.stderr
    assert processes_of(broker) == before


def test_a_killed_broker_comes_back_with_its_records(broker: BrokerOfTests) -> None:
    fill(broker, "kept", EVENTS, 2)
    (process,) = processes_of(broker)
    os.kill(process, signal.SIGKILL)
    assert "ended" in broker.command("status", code=2).stdout
    broker.command("up", "--port", str(broker.port))
    assert read(broker, "kept", 1) == EVENTS[1::2]


def test_a_port_that_is_taken_is_named_with_its_holder(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        other = new_broker(tmp_path, port)
        said = other.command("up", "--port", str(port), code=2)
    assert f"port {port} is taken by process {os.getpid()}" in said.stderr
    assert processes_of(other) == set()


def test_a_broker_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    other = new_broker(tmp_path, 29192)
    (tmp_path / "kafka" / "broker-1" / "data").mkdir(parents=True)
    (tmp_path / "kafka" / "broker-1" / "data" / "meta.properties").write_text("version=1\n")
    (tmp_path / "kafka" / "broker-1" / "server.properties").write_text(
        "node.id=1\nadvertised.listeners=BROKER://127.0.0.1:29192\n"
    )
    said = other.command("up", "--port", "29192", code=2)
    assert "broker 1 ended while it started; its last words:" in said.stderr
    assert processes_of(other) == set()
    other.command("down")
    assert not list((tmp_path / "kafka").glob("broker-*"))


def processes_of(broker: BrokerOfTests) -> set[int]:
    return {process.pid for process in marked(f"{broker.home}|")}
