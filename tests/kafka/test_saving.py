"""What a topic holds is saved as files that a job of a person's own reads: all of it, in order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from nexmark.kafka import KafkaError
from nexmark.kafka.saving import save
from tests.kafka.conftest import BrokerOfTests, fill

ORDERS = [json.dumps({"order": number, "country": "ch"}) for number in range(1003)]
_NAME = "saved"


def send(
    broker: BrokerOfTests, topic: str, records: Iterable[tuple[int, int, bytes | None]]
) -> None:
    """Send records: partition, time in milliseconds, value; the topic gets two partitions."""
    broker.kafka.create(topic, 2)
    producer = Producer({"bootstrap.servers": broker.servers})
    for partition, moment, value in records:
        producer.produce(topic, value, partition=partition, timestamp=moment)
    assert producer.flush(30) == 0


def lines(directory: Path) -> list[str]:
    files = sorted(directory.iterdir())
    return [line for file in files for line in file.read_text().splitlines()]


def test_every_record_is_saved_and_those_of_a_partition_stay_in_order(
    broker: BrokerOfTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexmark.kafka.saving._PER_FILE", 400)
    fill(broker, "orders", ORDERS, 3)
    done = save(broker.kafka, "orders", tmp_path / "orders")
    assert (done.records, done.files) == (1003, 3)
    found = lines(tmp_path / "orders")
    assert sorted(found) == sorted(ORDERS)
    for partition in range(3):
        of_partition = ORDERS[partition::3]
        assert [line for line in found if line in set(of_partition)] == of_partition
    save(broker.kafka, "orders", tmp_path / "again")
    assert lines(tmp_path / "again") == found


def test_records_of_several_partitions_are_in_the_order_of_their_times(
    broker: BrokerOfTests, tmp_path: Path
) -> None:
    records = [(1, 1000, b'{"n":\r\n 1}'), (0, 2000, b'{"n":2}'), (1, 3000, b'{"n":3}')]
    send(broker, "timed", records)
    said = broker.command("save", "--topic", "timed", "--out", str(tmp_path / "timed"))
    assert said.stdout.splitlines()[-1].startswith("timed: 3 records in 1 files in ")
    assert [json.loads(line)["n"] for line in lines(tmp_path / "timed")] == [1, 2, 3]
    broker.command(*("save", "--topic", "timed", "--out", str(tmp_path / "two"), "--records", "2"))
    assert len(lines(tmp_path / "two")) == 2


@pytest.mark.parametrize("value", [b"[1]", b"no JSON", b"\xff", None])
def test_what_is_no_json_object_is_named_by_its_place_and_leaves_nothing(
    broker: BrokerOfTests, tmp_path: Path, value: bytes | None
) -> None:
    topic = f"strange-{len(value or b'')}"
    send(broker, topic, [(1, 1000, b'{"n":1}'), (1, 2000, value)])
    with pytest.raises(KafkaError, match="the record at offset 1 of partition 1 is no JSON object"):
        save(broker.kafka, topic, tmp_path / _NAME)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_saved_is_one_line(broker: BrokerOfTests, tmp_path: Path) -> None:
    broker.kafka.create("void", 2)
    for topic, problem in (("viod", "there is no topic 'viod'; did you mean"), ("void", "no rec")):
        said = broker.command(
            *("save", "--topic", topic, "--out", str(tmp_path / _NAME)), code=2
        ).stderr
        assert problem in said
        assert said.count("\n") == 1
    said = broker.command("save", "--topic", "void", "--out", str(tmp_path), code=2).stderr
    assert "is there already; name a new directory" in said
    assert list(tmp_path.iterdir()) == []
