"""A broker whose disk is full, and one that is killed under Real-Time Mode: no event is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Timer

import pytest

from nexmark.engines import Build
from nexmark.kafka.jars import connector
from nexmark.latency.matching import MATCHINGS, Matched, OutputRecord, PerRow
from nexmark.latency.measuring import PacedRuns
from nexmark.latency.pacing import PacedEvent
from tests.engines.test_results import NEWEST
from tests.kafka.conftest import BrokerOfTests, new_broker

pytestmark = [pytest.mark.spark, pytest.mark.long]

EVENTS = 300_000
RATE, SECONDS, AWAY_S = 200, 12, 4.0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[BrokerOfTests]:
    """A broker with a disk of its own (root), which `resized` makes small."""
    if os.getuid() != 0:
        pytest.skip("only root can mount a disk")
    disk = tmp_path / "kafka"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3g", "tmpfs", disk], check=True)
    made = new_broker(tmp_path, 29192)
    try:
        yield made
    finally:
        made.command("down")
        subprocess.run(["umount", "--lazy", disk], check=True)


def resized(broker: BrokerOfTests, size: str) -> None:
    disk = broker.home / "kafka"
    subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)


def test_a_full_disk_ends_a_fill_in_one_line_and_with_room_it_is_whole(
    small: BrokerOfTests, tmp_path: Path
) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text(
        "".join(f'{{"n":{n},"event_type":2,"pad":"{"x" * 150}"}}\n' for n in range(EVENTS))
    )
    fill = ("fill", "--events", str(events), "--topic", "full", "--partitions", "2")
    small.command(*small.up)
    resized(small, "20m")
    refused = small.command(*fill, code=2)
    assert refused.stderr.count("\n") == 1, refused.stderr
    assert "topic full" in refused.stderr
    assert "ended" in small.command("status", code=2).stdout
    resized(small, "3g")
    small.command(*small.up)
    small.command(*fill, "--replace")
    assert {each.name: each.records for each in small.kafka.topics()} == {"full": EVENTS}


class Seen(PerRow):
    """Keeps what is matched."""

    events: Sequence[PacedEvent]
    output: Sequence[OutputRecord]

    def match(self, events: Sequence[PacedEvent], output: Sequence[OutputRecord]) -> Matched:
        object.__setattr__(self, "events", events)
        object.__setattr__(self, "output", output)
        return super().match(events, output)


def test_a_broker_killed_in_real_time_mode_costs_time_and_no_event(
    broker: BrokerOfTests,
    engine_build: Callable[[str], Build],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build, seen = engine_build(NEWEST), Seen()
    monkeypatch.setitem(MATCHINGS, "q0", seen)

    def kill() -> None:
        for process in broker.processes():
            os.kill(process, signal.SIGKILL)
        time.sleep(AWAY_S)
        broker.command(*broker.up)

    def say(text: str) -> None:
        if "per second" in text:
            Timer(SECONDS / 2, kill).start()

    runs = PacedRuns(build, connector(build.version, print), broker.kafka, {}, tmp_path, say)
    found = runs.run("q0", "real-time", RATE, SECONDS, 0)
    sent = {
        (str(x.due_ms), *(x.entity[name] for name in ("auction", "bidder", "price", "extra")))
        for x in seen.events
        if x.kind == "bid"
    }
    rows = {
        (x.key, *(x.value[name] for name in ("auction", "bidder", "price", "extra")))
        for x in seen.output
    }
    assert rows == sent
    assert len(sent) == found.events
    assert found.longest > AWAY_S * 1000
    assert {topic.name for topic in broker.kafka.topics() if "paced" in topic.name} == set()
