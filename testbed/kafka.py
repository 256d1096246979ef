"""Start Kafka on the test cluster: a broker on each host, every partition on all brokers."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from nexmark.config import SshCluster
from nexmark.kafka import KafkaError
from nexmark.kafka.broker import PORT, Broker, brokers_at, cluster_id, servers
from nexmark.kafka.jars import BROKER, jars
from nexmark.kafka.topics import KafkaCluster
from testbed import hosts, system
from testbed.connections import CONNECTIONS, put_connections
from testbed.host import NamespaceHost

_READY_S = 90
_POLL_S = 0.2
_SERVE = 'exec setsid --fork "$@" >"$0" 2>&1 </dev/null'


def up(cluster: SshCluster, home: Path, say: Callable[[str], None]) -> str:
    """Start a broker on each host that has none, and write their Airflow connection.

    The hosts have to be up.

    Returns:
        The bootstrap servers.

    Raises:
        KafkaError: The cluster names no connection, or the brokers are not ready after 90 s.
        ClusterError: A command on a host failed.
    """
    if cluster.kafka is None:
        raise KafkaError(f"kafka: cluster {cluster.name} has no `kafka` in clusters.yaml; add it")
    machines = list(hosts(cluster, home).values())
    brokers = brokers_at(tuple(host.address for host in machines), PORT)
    libraries = jars(BROKER, say)
    kafka = KafkaCluster(servers(brokers), time_out_s=2)
    running = kafka.brokers()
    common = cluster_id(home.glob("testbed/*/disk/kafka/data/meta.properties"))
    for host, broker in zip(machines, brokers, strict=True):
        if broker.number not in running:
            _start(host, broker, libraries, common)
    deadline = time.monotonic() + _READY_S
    while kafka.brokers() != {broker.number for broker in brokers}:
        if time.monotonic() > deadline:
            logs = ", ".join(str(host.disk / "kafka" / "server.log") for host in machines)
            raise KafkaError(f"kafka: not ready after {_READY_S} s; see {logs}")
        time.sleep(_POLL_S)
    extra = {"bootstrap.servers": kafka.servers}
    put_connections(home / CONNECTIONS, {cluster.kafka: {"conn_type": "kafka", "extra": extra}})
    return kafka.servers


def _start(host: NamespaceHost, broker: Broker, libraries: list[Path], common: str) -> None:
    """Start a broker with a copy of the libraries on its host; do not wait until it is ready.

    Args:
        host: The host.
        broker: The broker.
        libraries: The jars of Kafka.
        common: The id of the Kafka cluster.
    """
    files, directory = host.disk / "kafka", Path(host.root) / "kafka"
    broker.write(files, directory)
    (files / "libs").mkdir(exist_ok=True)
    for library in libraries:
        shutil.copy(library, files / "libs")
    class_path = f"{directory}/libs/*"
    if not (files / "data" / "meta.properties").exists():
        system.run(*host.enter(), *broker.formatting(directory, class_path, common))
    console = str(directory / "console.log")
    command = broker.command(directory, class_path)
    system.run(*host.enter(), "sh", "-c", _SERVE, console, *command)
