"""The verbs about Kafka: a broker on this machine, its topics, the jars of Spark's connector."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nexmark.cli import shared_options as option
from nexmark.cli.help_groups import GroupedVerbs
from nexmark.config import load, paths
from nexmark.errors import NexmarkError
from nexmark.terminal import COULD_NOT_RUN, columns, show_line

if TYPE_CHECKING:
    from nexmark.kafka.topics import KafkaCluster

kafka = typer.Typer(
    name="kafka", cls=GroupedVerbs, help="Run a Kafka broker to test with; fill its topics."
)

BootstrapServers = Annotated[
    str | None, option.text("The brokers, HOST:PORT,... (default: this machine's).")
]
ClientSettings = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A JSON file with the settings of the client (login, certificates), as the extra of "
        "an Airflow connection has them.",
    ),
]
_PortOption = Annotated[int | None, option.number(1, 65000, help="The port of the first broker.")]


@kafka.command()
def up(
    brokers: Annotated[int, option.number(1, 3, "1|3", "How many brokers are started.")] = 1,
    port: _PortOption = None,
) -> None:
    """Start Apache Kafka on 127.0.0.1.

    The command ends when the brokers answer. Their storage is in .nexmark.
    """
    from nexmark.kafka import broker

    if brokers not in broker.COUNTS:
        raise typer.BadParameter(f"--brokers: {brokers} is not 1 or 3")
    chosen = broker.PORT if port is None else port
    servers = broker.of_this_machine().up(brokers, chosen, show_line)
    print(f"Kafka is ready at {servers}; end it with: nexmark kafka down")


@kafka.command()
def down() -> None:
    """End the brokers of this machine and remove their storage."""
    from nexmark.kafka import broker

    ended = broker.of_this_machine().down()
    print(f"brokers ended: {len(ended)}; no storage is left" if ended else "no broker was running")


@kafka.command()
def status() -> int:
    """Print a line for each broker of this machine and each topic.

    0 if all brokers answer, 2 if one does not or none runs.
    """
    from nexmark.kafka import broker
    from nexmark.kafka.topics import KafkaCluster

    brokers = broker.of_this_machine().status()
    if not brokers:
        print("no broker is running; start one with: nexmark kafka up")
        return COULD_NOT_RUN
    rows = [
        [
            str(each.broker.number),
            f"127.0.0.1:{each.broker.port}",
            "ready" if each.answers else "does not answer" if each.process else "ended",
            str(each.process.pid) if each.process else "",
            f"{each.resident / 1e6:,.0f} MB",
            f"{each.stored / 1e6:,.0f} MB",
            str(each.log),
        ]
        for each in brokers
    ]
    print(columns(("broker", "address", "state", "pid", "memory", "storage", "log"), rows))
    if not all(each.answers for each in brokers):
        return COULD_NOT_RUN
    topics = KafkaCluster(f"127.0.0.1:{brokers[0].broker.port}").topics()
    if topics:
        lines = [
            [topic.name, str(topic.partitions), str(topic.replicas), f"{topic.records:,}"]
            for topic in topics
        ]
        print()
        print(columns(("topic", "partitions", "replicas", "records"), lines))
    return 0


@kafka.command()
def fill(
    events: Annotated[Path, typer.Option(help="A file of JSON lines, or a directory of them.")],
    topic: Annotated[str, option.text("The name of a new topic.")],
    partitions: Annotated[int, option.number(1, 1000, "P", "The partitions of the topic.")] = 8,
    replace: Annotated[
        bool, typer.Option("--replace", help="Remove a topic of this name first.")
    ] = False,
    bootstrap_servers: BootstrapServers = None,
    client_settings: ClientSettings = None,
) -> None:
    """Write recorded events to a new topic.

    Event n goes to partition n mod P.
    """
    from nexmark.kafka import filling

    args = _cluster(bootstrap_servers, client_settings), events, topic, partitions
    print(
        filling.fill(*args, replace=replace, say=lambda written: show_line(f"{written:,} events"))
    )


@kafka.command()
def save(
    topic: Annotated[str, option.text("The name of the topic.")],
    out: Annotated[Path, typer.Option(help="A new directory for files of JSON lines.")],
    records: Annotated[
        int | None, option.number(1, 10**12, metavar="N", help="The first N records alone.")
    ] = None,
    bootstrap_servers: BootstrapServers = None,
    client_settings: ClientSettings = None,
) -> None:
    """Write what a topic holds to files.

    A job of your own can read them. The records are in the order of their times.
    """
    from nexmark.kafka import saving

    cluster = _cluster(bootstrap_servers, client_settings)
    print(
        saving.save(
            cluster, topic, out, limit=records, say=lambda saved: show_line(f"{saved:,} records")
        )
    )


@kafka.command()
def jars(engine: Annotated[str, option.text("The engine, of engines.yaml.")]) -> None:
    """Print the jars with which an engine reads Kafka.

    They are printed as `spark-submit --jars` takes them.
    """
    from nexmark.engines import resolve
    from nexmark.kafka.jars import connector

    build = load().engine(engine).build
    version = build.pypi or resolve(build, paths.builds_dir(), say=option.on_stderr).version
    print(",".join(map(str, connector(version, option.on_stderr))))


def _cluster(servers: str | None, client_settings: Path | None) -> "KafkaCluster":
    """Return the Kafka that a person named, else the one of this machine.

    Args:
        servers: The bootstrap servers; None for those in the settings.
        client_settings: A file with the settings of the client.

    Raises:
        NexmarkError: The settings cannot be read, or no broker runs on this machine.
    """
    from nexmark.kafka.client_settings import read_settings
    from nexmark.kafka.topics import KafkaCluster

    settings = read_settings(client_settings) if client_settings else {}
    in_file = settings.pop("bootstrap.servers", "")
    return KafkaCluster(servers or in_file or _running(), settings)


def _running() -> str:
    """Return the bootstrap servers of the brokers of this machine; NexmarkError if none answers."""
    from nexmark.kafka import broker

    brokers = broker.of_this_machine().status()
    ready = [f"127.0.0.1:{each.broker.port}" for each in brokers if each.answers]
    if not ready:
        remedy = "start one with: nexmark kafka up, or give --bootstrap-servers"
        raise NexmarkError(f"kafka: no broker runs on this machine; {remedy}")
    return ",".join(ready)
