"""The topics of a night whose workload reads Kafka, and the broker that has them.

On the embedded cluster the night starts and ends a broker of its own; elsewhere it uses the Kafka
of the cluster's connection. Event n of a topic is event n of the generator: the results are alike.
"""

import shutil
from collections.abc import Mapping
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
from nexmark.kafka.jars import connector, connector_of, connector_problem
from nexmark.model import BROKER_CPU, READ_RATE, SOURCE_RATE, Arm, grouped
from nexmark.night.night_progress import say
from nexmark.night.paced_night import key_of, prefix_of
from nexmark.night.plan import Deployment, Deployments, Night
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
        """The Kafka of `night`; KafkaError before its topics are filled."""
        try:
            return cls.model_validate_json(night.files.kafka.read_text())
        except FileNotFoundError:
            problem = f"{night.directory}: no topic was filled; clear the task start_cluster"
            raise KafkaError(problem) from None


def source_arguments(night: Night, size: Size) -> list[str]:
    """The arguments that make a query read the events of `size`."""
    batches = ["--rows-per-batch", str(size.rows_per_batch)]
    if night.workload.source == "kafka":
        servers = NightKafka.read(night).servers
        topic = topic_of(night, size)
        return ["--source", f"kafka:{topic}", "--bootstrap-servers", servers, *batches]
    return ["--source", "datagen", *generator_arguments(night, size), *batches]


def generator_arguments(night: Night, size: Size) -> list[str]:
    """The arguments that make the generator give the events of `size`."""
    knobs = night.workload.generator.items()
    return [
        *("--events", str(size.events), "--tps", str(size.tps)),
        *("--seed", str(night.workload.seed)),
        *(word for key, value in knobs for word in ("--generator", f"{key}={value}")),
    ]


def connection_of(night: Night) -> str | None:
    """The Airflow connection of the Kafka that the night reads; None where it starts its own."""
    is_read = night.workload.source == "kafka"
    return night.cluster.kafka if is_read and isinstance(night.cluster, SshCluster) else None


def topic_of(night: Night, size: Size) -> str:
    """The topic with the events of `size`; no other night has one of this name."""
    return f"nexmark-{key_of(night)}-{size.events}-{size.tps}"


def sizes(night: Night) -> list[Size]:
    """The inputs that the applications of the night read, each once."""
    all_sizes = (night.workload.verify, *_timed(night))
    return [same[0] for same in grouped(all_sizes, lambda x: (x.events, x.tps)).values()]


def _timed(night: Night) -> list[Size]:
    """The inputs of timed repetitions, where they are in topics before."""
    if night.workload.is_paced:
        return []
    return [night.workload, *([night.slowed] if Arm.SLOWED in night.self_test else [])]


def problems(night: Night) -> list[str]:
    """Return the reasons, known on this machine, why the night cannot have its topics."""
    if night.workload.source != "kafka":
        return []
    versions = map(known_version, (night.candidate, *night.against.values()))
    found = [*filter(None, map(connector_problem, filter(None, dict.fromkeys(versions))))]
    if isinstance(cluster := night.spark_cluster, LocalCluster):
        return [*found, *cluster.brokers.problems(1, cluster.config.kafka_port)]
    if connection_of(night) is None:
        found += [
            f"kafka: workload {night.workload.name} reads Kafka, and cluster {night.cluster.name} "
            "has no `kafka` connection in include/conf/clusters.yaml; add it, or take the cluster "
            "of this machine"
        ]
    return found


def check_build(night: Night, spark_version: str) -> None:
    """KafkaError where the night reads Kafka, and such a build cannot."""
    if night.workload.source == "kafka":
        connector_of(spark_version)


def fill_topics(night: Night, deployments: Deployments, kafka: "KafkaCluster | None") -> None:
    """Fill the topics of the night; on the embedded cluster (`kafka` None) start its broker.

    NexmarkError if it does not start, the events cannot be written, or a jar is missing.
    """
    if night.workload.source != "kafka":
        return
    from nexmark.kafka.filling import fill
    from nexmark.kafka.topics import KafkaCluster, read_alone

    for each in {x.spark_version for x in (deployments.candidate, *deployments.baselines.values())}:
        connector(each, say)
    if isinstance(cluster := night.spark_cluster, LocalCluster):
        kafka = KafkaCluster(cluster.brokers.up(1, cluster.config.kafka_port, say))
        say(f"Kafka is up at {kafka.servers}")
    assert kafka is not None
    work, rates = night.files.topic_events, {}
    events = work / "events"
    partitions, confs = night.workload.partitions or 1, night.engine.conf.items()
    consumer = {x.removeprefix(_CONFS): value for x, value in confs if x.startswith(_CONFS)}
    try:
        # Sizes of the same rate have the first events of the largest one.
        for same in grouped(sizes(night), lambda size: size.tps).values():
            largest = max(same, key=lambda size: size.events)
            _dump(night, deployments.candidate, largest, work, events)
            for size in same:
                topic, limit = topic_of(night, size), size.events
                say(str(fill(kafka, events, topic, partitions, limit=limit, replace=True)))
        if night.workload.is_paced:
            _dump(night, deployments.candidate, night.workload, work, night.files.paced_events)
        for topic in (topic_of(night, size) for size in _timed(night)):
            rates[topic] = read_alone(kafka, topic, partitions, consumer)
            say(f"{topic}: a consumer alone reads {rates[topic]:,.0f} records per second")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    found = NightKafka(servers=kafka.servers, rates=rates)
    night.files.kafka.write_text(found.model_dump_json())


def note_broker(
    night: Night, directory: ApplicationDirectory, before: float | None
) -> float | None:
    """The CPU time of the night's own broker so far; None where it has none.

    With the time `before` an application, note in its `directory` what the broker used meanwhile.
    """
    cluster = night.spark_cluster
    if night.workload.source != "kafka" or not isinstance(cluster, LocalCluster):
        return None
    now = cluster.brokers.cpu_s()
    if before is not None and now >= before:
        directory.write_broker_cpu_s(now - before)
    return now


def source_figures(
    night: Night, directory: ApplicationDirectory, size: Size, read_rate: float
) -> dict[str, float]:
    """The figures of the source of the repetition in `directory`, by the metric."""
    if night.workload.source != "kafka":
        return {}
    alone = NightKafka.read(night).rates.get(topic_of(night, size))
    found = {} if alone is None else {SOURCE_RATE: alone, READ_RATE: read_rate}
    if (seconds := directory.broker_cpu_s()) is not None:
        found[BROKER_CPU] = seconds
    return found


def remove_topics(night: Night, kafka: "KafkaCluster") -> None:
    """Remove the topics of the night from a Kafka that goes on."""
    there = kafka.names()
    ours = {topic_of(night, size) for size in sizes(night)} & there
    for topic in ours | {name for name in there if name.startswith(prefix_of(night))}:
        kafka.delete(topic)
    say("the topics of this night are removed")


def _dump(night: Night, deployment: Deployment, size: Size, work: Path, target: Path) -> None:
    """Write the events of `size` to JSON files in `target`, by an application on this machine.

    `work` is a directory for what that application writes beside; both are made new.
    """
    for directory in (work, target):
        shutil.rmtree(directory, ignore_errors=True)
    work.mkdir()
    home, mark = Path(deployment.spark_home), {OWNER_VARIABLE: night.spark_cluster.mark}
    build = Build(deployment.build, deployment.spark_version, home, deployment.source)
    launcher = Launcher(build, {}, work, mark, master="local[*]")
    dump_events(launcher, generator_arguments(night, size), target, "json")
