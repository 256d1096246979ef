"""A fill that is ended: asked to, it leaves no topic; killed, one that nobody mistakes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.kafka.conftest import COMMAND, BrokerOfTests

pytestmark = pytest.mark.slow

EVENTS = 300_000


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("many") / "events.jsonl"
    file.write_text(
        "".join(f'{{"n":{n},"event_type":2,"pad":"{"x" * 150}"}}\n' for n in range(EVENTS))
    )
    return file


def records(broker: BrokerOfTests, topic: str) -> int | None:
    """How many records the topic has; None if there is no such topic."""
    found = {each.name: each.records for each in broker.kafka.topics()}
    return found.get(topic)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, marks=pytest.mark.long),
        signal.SIGKILL,
    ],
)
def test_a_fill_that_is_ended_halfway(
    how: signal.Signals, broker: BrokerOfTests, events: Path
) -> None:
    topic = f"halfway-{how.name}"
    options = ("--events", str(events), "--topic", topic, "--partitions", "2")
    process = subprocess.Popen(
        [COMMAND, "kafka", "fill", *options],
        env=os.environ | {"NEXMARK_HOME": str(broker.home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    process.send_signal(signal.SIGSTOP)  # it cannot end while its records are counted
    while not records(broker, topic):
        process.send_signal(signal.SIGCONT)
        time.sleep(0.01)
        assert process.poll() is None, process.communicate()[0]
        process.send_signal(signal.SIGSTOP)
    process.send_signal(how)
    process.send_signal(signal.SIGCONT)
    said, _ = process.communicate(timeout=120)
    if how is not signal.SIGKILL:
        assert process.returncode in (130, 143), said
        assert records(broker, topic) is None
        return
    left = records(broker, topic)
    assert left is not None
    assert 0 < left < EVENTS
    refused = broker.command("fill", *options, code=2)
    assert f"there is a topic {topic} already" in refused.stderr
    broker.command("fill", *options, "--replace")
    assert records(broker, topic) == EVENTS
