"""The entries of `include/conf/clusters.yaml`."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from nexmark.config.fields import (
    AbsolutePath,
    Address,
    Memory,
    Model,
    Port,
    Positive,
    WebAddress,
    mebibytes,
)
from nexmark.model import Arm

LOOPBACK = "127.0.0.1"

LAST_PORT = 65535

_Name: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
_Connection: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]


class Cluster(Model):
    """A Spark standalone cluster, and the shape of the applications that run on it.

    Unless its kind says otherwise, it is one master and one worker on this machine.
    """

    name: _Name
    kind: str
    spark_connection: _Connection
    master_port: Port = 7077
    master_ui_port: Port = 8080
    worker_port: Port = 7078
    worker_ui_port: Port = 8081
    baseline_ports: Annotated[int, Field(ge=1, le=10_000)] = 10
    executors: Positive = 1
    executor_cores: Positive
    shuffle_partitions: Positive
    executor_memory: Memory
    driver_memory: Memory
    daemon_memory: Memory = "192m"
    start_timeout_s: Annotated[int, Field(ge=5, le=600)] = 90
    history_server: WebAddress | None = None

    @property
    def ports(self) -> dict[str, int]:
        """The ports of the daemons, by their keys; the names begin with the daemon's role."""
        return {
            "master_port": self.master_port,
            "master_ui_port": self.master_ui_port,
            "worker_port": self.worker_port,
            "worker_ui_port": self.worker_ui_port,
        }

    @model_validator(mode="after")
    def _ports_differ(self) -> "Cluster":
        ports = self.ports.values()
        both = {*ports, *(port + self.baseline_ports for port in ports)}
        if len(both) != 2 * len(ports):
            problem = "the four ports, and these plus baseline_ports, must differ"
            raise ValueError(f"{problem}; give each its own")
        if max(both) > LAST_PORT:
            raise ValueError(f"a port plus baseline_ports is above {LAST_PORT}; lower it")
        return self

    def of_arm(self, arm: str) -> Self:
        """Return the cluster that `arm` runs on: this one, or its twin for the baseline.

        Both are on the same hosts at the same time; they share no port, directory or connection.
        """
        if arm == Arm.CANDIDATE:
            return self
        ports = {name: port + self.baseline_ports for name, port in self.ports.items()}
        name = f"{self.name}-{Arm.BASELINE}"
        connection = f"{self.spark_connection}_{Arm.BASELINE}"
        return self.model_copy(update={**ports, "name": name, "spark_connection": connection})

    @property
    def master_address(self) -> str:
        """The address that the master listens on."""
        return LOOPBACK

    @property
    def driver_address(self) -> str:
        """The address of this machine that executors reach the driver at."""
        return LOOPBACK

    @property
    def workers(self) -> tuple[int, ...]:
        """The cores of each worker."""
        return (self.executors * self.executor_cores,)

    @property
    def master_url(self) -> str:
        """Return the master's URL for applications, e.g. `spark://127.0.0.1:17077`."""
        return f"spark://{self.master_address}:{self.master_port}"


class EmbeddedCluster(Cluster):
    """One master and one worker on this machine, started and ended by the night.

    So is a Kafka broker, for workloads that read Kafka.
    """

    kind: Literal["embedded"]
    kafka_port: Port = 19192


class Machine(Model):
    """A host of a cluster; `cores` and `memory` are what its worker offers to executors."""

    role: Literal["master", "worker"]
    address: Address
    connection: _Connection
    cores: Positive | None = None
    memory: Memory | None = None

    @model_validator(mode="after")
    def _worker_has_a_size(self) -> "Machine":
        sized = self.cores is not None, self.memory is not None
        if self.role == "worker" and not all(sized):
            raise ValueError("a worker needs cores and memory; add them")
        if self.role == "master" and any(sized):
            raise ValueError("cores and memory are of workers; remove them from the master")
        return self

    def slots(self, cores: int, memory: int) -> int:
        """Return how many executors fit, each with `cores` cores and `memory` MiB."""
        if self.cores is None or self.memory is None:
            return 0
        return min(self.cores // cores, mebibytes(self.memory) // memory)


class SshCluster(Cluster):
    """One master and its workers on hosts that are reached by SSH.

    Attributes:
        driver_at: the address of this machine as the hosts reach it.
        root: the package's own directory on every host: releases/, incoming/, nights/.
        local: on every host, a directory on a local disk for state and shuffle files.
        shared: a directory with the same content and path on every host and on this machine.
        python, java_home: on every host.
        max_clock_offset_s: how far a host's clock may be from this machine's.
        kafka: the connection of the Kafka for workloads that read it.
    """

    kind: Literal["ssh"]
    driver_at: Address
    root: AbsolutePath
    local: AbsolutePath | None = None
    shared: AbsolutePath
    python: AbsolutePath = "/usr/bin/python3"
    java_home: AbsolutePath
    max_clock_offset_s: Annotated[float, Field(gt=0, le=60)] = 0.5
    kafka: _Connection | None = None
    hosts: Annotated[Mapping[_Name, Machine], Field(min_length=2)]

    @model_validator(mode="after")
    def _hosts_fit(self) -> "SshCluster":
        masters = [name for name, host in self.hosts.items() if host.role == "master"]
        if len(masters) != 1:
            named = " and ".join(masters) or "none"
            raise ValueError(f"exactly one host is the master, there is {named}; correct the roles")
        addresses = [host.address for host in self.hosts.values()]
        connections = [host.connection for host in self.hosts.values()]
        for field, values in (("address", addresses), ("connection", connections)):
            if len(set(values)) != len(values):
                raise ValueError(f"two hosts have the same {field}; give each its own")
        size = self.executor_cores, mebibytes(self.executor_memory)
        slots = sum(host.slots(*size) for host in self.hosts.values())
        if slots < self.executors:
            each = f"{self.executor_cores} cores and {self.executor_memory}"
            room = f"the workers have room for {slots}; lower executors or their size"
            raise ValueError(f"{self.executors} executors of {each} do not fit, {room}")
        return self

    @property
    def master(self) -> str:
        """The name of the master's host."""
        return next(name for name, host in self.hosts.items() if host.role == "master")

    @property
    def master_address(self) -> str:
        """The address of the master's host."""
        return self.hosts[self.master].address

    @property
    def driver_address(self) -> str:
        """This machine, as the hosts reach it."""
        return self.driver_at

    @property
    def workers(self) -> tuple[int, ...]:
        """The cores of each worker: one on each host but the master's."""
        return tuple(host.cores for host in self.hosts.values() if host.cores)

    @property
    def local_dir(self) -> str:
        """`local`, which is below `root` if it is not given."""
        return self.local or f"{self.root}/local"


AnyCluster: TypeAlias = Annotated[EmbeddedCluster | SshCluster, Field(discriminator="kind")]

KINDS: Mapping[str, type[Cluster]] = {"embedded": EmbeddedCluster, "ssh": SshCluster}
