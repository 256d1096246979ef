"""A real Kafka broker, started and ended by the command that a person uses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from nexmark.config import paths
from nexmark.kafka import broker as brokers
from nexmark.kafka.filling import Filled
from nexmark.kafka.filling import fill as fill_topic
from nexmark.kafka.topics import KafkaCluster
from nexmark_jobs.host.ports import LOOPBACK
from nexmark_jobs.host.processes import marked, owner_mark

COMMAND = Path(sys.executable).with_name("nexmark")


@dataclass(frozen=True)
class BrokerOfTests:
    """The brokers of a test, from a port on; their home has nothing else."""

    home: Path
    port: int
    count: int = 1

    @property
    def servers(self) -> str:
        return brokers.servers(brokers.brokers_at((LOOPBACK,) * self.count, self.port))

    @property
    def up(self) -> tuple[str, ...]:
        """The words of the command that starts them."""
        return ("up", "--brokers", str(self.count), "--port", str(self.port))

    def numbered(self) -> dict[int, int]:
        """The pids of the brokers that run, by number."""
        local = brokers.LocalBrokers(self.home / "kafka", owner_mark(self.home, "kafka brokers"))
        return {each.broker.number: each.process.pid for each in local.status() if each.process}

    @property
    def kafka(self) -> KafkaCluster:
        return KafkaCluster(self.servers)

    def processes(self) -> set[int]:
        """The pids of what runs."""
        return {process.pid for process in marked(f"{self.home}|")}

    def command(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run `nexmark kafka WORDS` in the home of the broker; it must end with `code`."""
        environment = os.environ | {"NEXMARK_HOME": str(self.home)}
        run = subprocess.run(
            [COMMAND, "kafka", *words], env=environment, capture_output=True, text=True, timeout=300
        )
        assert run.returncode == code, run.stdout + run.stderr
        return run


def share_jars(home: Path) -> None:
    """Let a home have the jars that `make run` has, or will have."""
    (home / "kafka").mkdir(parents=True, exist_ok=True)
    for name in ("jars", "ivy"):
        shared = paths.home() / "kafka" / name
        shared.mkdir(parents=True, exist_ok=True)
        (home / "kafka" / name).symlink_to(shared)


def new_broker(home: Path, port: int, count: int = 1) -> BrokerOfTests:
    """Brokers that are not started yet."""
    share_jars(home)
    return BrokerOfTests(home, port, count)


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerOfTests]:
    """One broker for all tests of this directory."""
    started = new_broker(tmp_path_factory.mktemp("kafka-home"), 29092)
    started.command("up", "--port", str(started.port))
    yield started
    started.command("down")


def fill(broker: BrokerOfTests, topic: str, lines: Sequence[str], partitions: int) -> Filled:
    """Fill a new topic with these events."""
    file = broker.home / f"{topic}.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))
    return fill_topic(broker.kafka, file, topic, partitions)
