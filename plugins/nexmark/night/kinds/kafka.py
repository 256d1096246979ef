"""Nights whose queries read Kafka: their topics, and the broker that has them.

On the embedded cluster the night starts and ends a broker of its own; elsewhere it uses the Kafka
of the cluster's connection. Event n of a topic is event n of the generator: the results are alike.
"""

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from nexmark.cluster import OWNER_VARIABLE
from nexmark.cluster.local import LocalCluster
from nexmark.config import Size, SshCluster
from nexmark.config.fields import Model
from nexmark.engines import Build, known_version
from nexmark.engines.launcher import Launcher, dump_events
from nexmark.kafka import KafkaError
from nexmark.kafka.jars import connector, connector_files, connector_of, connector_problem
from nexmark.model import BROKER_CPU, READ_RATE, SOURCE_RATE, Arm, grouped
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.kinds.bounded import Bounded, generator_arguments
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say
from nexmark.night.run_directory import ApplicationDirectory

if TYPE_CHECKING:
    from nexmark.kafka.topics import KafkaCluster

_CONFS = "spark.nexmark.kafka."


class NightKafka(Model):
    """The Kafka of a night: its `servers`, and by topic the records/s that a consumer reads."""

    servers: str
    rates: Mapping[str, float] = Field(default_factory=dict)

    @classmethod
    def read(cls, night: Night) -> "NightKafka":
        """Return the Kafka of `night`; KafkaError before its topics are filled."""
        try:
            return cls.model_validate_json(night.files.kafka.read_text())
        except FileNotFoundError:
            problem = f"{night.directory}: no topic was filled; clear the task start_cluster"
            raise KafkaError(problem) from None

    def write(self, night: Night) -> None:
        """Write it where `read` finds it."""
        night.files.kafka.write_text(self.model_dump_json())


def key_of(night: Night) -> str:
    """Return what tells the topics of this night from all others on the same brokers.

    The nights of two installations have the same name where both follow the same schedule.
    """
    text = f"{night.spark_cluster.mark}\n{night.name}"
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def topic_of(night: Night, size: Size) -> str:
    """Return the topic with the events of `size`; no other night has one of this name."""
    return f"nexmark-{key_of(night)}-{size.events}-{size.tps}"


class ReadsKafka(Bounded):
    """Nights whose repetitions read what is in their topics at the start."""

    def timed_sizes(self, night: Night) -> list[Size]:
        """Return the inputs of timed repetitions that are in topics before."""
        slowed = night.self_test.get(Arm.SLOWED)
        return [night.workload, *([self.slowed_size(night, slowed)] if slowed else [])]

    def sizes(self, night: Night) -> list[Size]:
        """Return the inputs that the applications of the night read, each once."""
        all_sizes = (night.workload.verify, *self.timed_sizes(night))
        return [
            same[0] for same in grouped(all_sizes, lambda size: (size.events, size.tps)).values()
        ]

    def kafka_connection(self, night: Night) -> str | None:
        """Return the connection of the cluster; None where the night starts its own Kafka."""
        return night.cluster.kafka if isinstance(night.cluster, SshCluster) else None

    def jars(self, spark_version: str) -> list[Path]:
        """Return the connector of Spark for Kafka."""
        return connector_files(spark_version)

    def source_arguments(self, night: Night, query: str, size: Size) -> list[str]:
        """Return the arguments that make a query read the topic with the events of `size`."""
        source = ["--source", f"kafka:{topic_of(night, size)}"]
        servers = NightKafka.read(night).servers
        return [
            *source,
            "--bootstrap-servers",
            servers,
            "--rows-per-batch",
            str(size.rows_per_batch),
        ]

    def problems(self, night: Night) -> list[str]:
        """Return the reasons, known on this machine, why the night cannot have its topics."""
        versions = map(known_version, (night.candidate, *night.against.values()))
        problems = [*filter(None, map(connector_problem, filter(None, dict.fromkeys(versions))))]
        if isinstance(cluster := night.spark_cluster, LocalCluster):
            return [*problems, *cluster.brokers.problems(1, cluster.config.kafka_port)]
        if self.kafka_connection(night) is None:
            problems += [
                f"kafka: workload {night.workload.name} reads Kafka, and cluster "
                f"{night.cluster.name} has no `kafka` connection in include/conf/clusters.yaml; "
                "add it, or take the cluster of this machine"
            ]
        return problems

    def check_build(self, night: Night, spark_version: str) -> None:
        """KafkaError for a build that has no connector."""
        connector_of(spark_version)

    def begin(self, night: Night, deployments: Deployments, kafka: "KafkaCluster | None") -> None:
        """Fill the topics of the night; on the embedded cluster (`kafka` None) start its broker.

        NexmarkError if it does not start, the events cannot be written, or a jar is missing.
        """
        from nexmark.kafka.filling import fill
        from nexmark.kafka.topics import KafkaCluster, read_alone

        for each in {
            each.spark_version for each in (deployments.candidate, *deployments.baselines.values())
        }:
            connector(each, say)
        if isinstance(cluster := night.spark_cluster, LocalCluster):
            kafka = KafkaCluster(cluster.brokers.up(1, cluster.config.kafka_port, say))
            say(f"Kafka is up at {kafka.servers}")
        assert kafka is not None
        work, rates = night.files.topic_events, {}
        events = work / "events"
        partitions, confs = night.workload.partitions or 1, night.engine.conf.items()
        consumer = {
            name.removeprefix(_CONFS): value for name, value in confs if name.startswith(_CONFS)
        }
        try:
            # Sizes of the same rate have the first events of the largest one.
            for same in grouped(self.sizes(night), lambda size: size.tps).values():
                largest = max(same, key=lambda size: size.events)
                write_events(night, deployments.candidate, largest, work, events)
                for size in same:
                    topic, limit = topic_of(night, size), size.events
                    say(str(fill(kafka, events, topic, partitions, limit=limit, replace=True)))
            self.write_sent_events(night, deployments.candidate)
            for topic in (topic_of(night, size) for size in self.timed_sizes(night)):
                rates[topic] = read_alone(kafka, topic, partitions, consumer)
                say(f"{topic}: a consumer alone reads {rates[topic]:,.0f} records per second")
        finally:
            shutil.rmtree(work, ignore_errors=True)
        NightKafka(servers=kafka.servers, rates=rates).write(night)

    def write_sent_events(self, night: Night, deployment: Deployment) -> None:
        """Write the events that are sent while a query runs: none."""

    @contextmanager
    def noted(self, night: Night, directory: ApplicationDirectory) -> Iterator[None]:
        """Note the CPU time of the night's own broker, if it has one."""
        cluster = night.spark_cluster
        if not isinstance(cluster, LocalCluster):
            yield
            return
        before = cluster.brokers.cpu_s()
        try:
            yield
        finally:
            now = cluster.brokers.cpu_s()
            if now >= before:
                directory.write_broker_cpu_s(now - before)

    def figures(
        self, night: Night, directory: ApplicationDirectory, size: Size, read_rate: float
    ) -> dict[str, float]:
        """Return the figures of the topic and of the broker."""
        alone = NightKafka.read(night).rates.get(topic_of(night, size))
        rates = {} if alone is None else {SOURCE_RATE: alone, READ_RATE: read_rate}
        if (seconds := directory.broker_cpu_s()) is not None:
            rates[BROKER_CPU] = seconds
        return rates

    def end(self, night: Night, kafka: "KafkaCluster") -> None:
        """Remove the topics of the night."""
        there = kafka.names()
        ours = {topic_of(night, size) for size in self.sizes(night)} & there
        for topic in ours | {name for name in there if self.is_of_repetition(night, name)}:
            kafka.delete(topic)
        say("the topics of this night are removed")

    def is_of_repetition(self, night: Night, topic: str) -> bool:
        """Tell whether a topic is one of a repetition alone: there is none."""
        return False


def write_events(
    night: Night, deployment: Deployment, size: Size, work: Path, target: Path
) -> None:
    """Write the events of a size to JSON files, by an application on this machine.

    Args:
        night: the night whose generator gives the events.
        deployment: the build that runs the application.
        size: how many events, at which spacing.
        work: a directory for what the application writes beside; it is made new.
        target: the directory of the files; it is made new.
    """
    for directory in (work, target):
        shutil.rmtree(directory, ignore_errors=True)
    work.mkdir()
    home, mark = Path(deployment.spark_home), {OWNER_VARIABLE: night.spark_cluster.mark}
    build = Build(deployment.build, deployment.spark_version, home, deployment.source)
    launcher = Launcher(build, {}, work, mark, master="local[*]")
    dump_events(launcher, generator_arguments(night, size), target, "json")
