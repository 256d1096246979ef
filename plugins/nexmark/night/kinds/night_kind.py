"""What a kind of night decides; every other module asks its kind instead of testing for it.

A new kind is one file, a class like `Bounded`, and one entry in `KINDS`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pydantic import JsonValue

from nexmark.config import AnyCluster, Gate, Size, Workload
from nexmark.config.fields import Model
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import ApplicationDirectory, Run
from nexmark.night.submission import Repetition

if TYPE_CHECKING:
    from nexmark.kafka.topics import KafkaCluster
    from nexmark.store.table_rows import RepetitionRow

Ready = Callable[[Sequence[str], Mapping[str, str]], Callable[[], object]]
"""Prepares an application with arguments and more confs; what it returns runs it to its end."""


class JobProgram(Model):
    """A program of the jobs, by its file name, and its arguments; a JAR has a main class."""

    name: str
    arguments: tuple[str, ...]
    java_class: str | None = None


class NightKind(Protocol):
    """What a kind of night decides.

    Attributes:
        is_judged_by_pairs_only: whether its nights cannot be judged by bounds.
        has_flame_graphs: whether what has changed runs once more with a flight recorder.
        has_slowed_arm: whether a slowdown of known size can test its gate.
        has_short_starts: whether class archives and the confs of short runs are used in its
            repetitions.
        compares_digests: whether its repetitions are right by their rows' number and digest.
        runs_own_jobs: whether it can run a person's own jobs over the events of Nexmark.
        runs_own_inputs: whether it can run applications, and jobs over a person's own files, too.
    """

    is_judged_by_pairs_only: bool
    has_flame_graphs: bool
    has_slowed_arm: bool
    has_short_starts: bool
    compares_digests: bool
    runs_own_jobs: bool
    runs_own_inputs: bool

    def gate(self, gate: Gate) -> Gate:
        """Return the gate that judges its nights."""

    def least_pairs(self) -> int:
        """Return the least number of pairs that allows a verdict."""

    def cluster(self, workload: Workload, cluster: AnyCluster) -> AnyCluster:
        """Return the cluster as the nights of a workload need it."""

    def problems(self, night: Night) -> list[str]:
        """Return the reasons, known on this machine, why the night cannot be measured."""

    def check_build(self, night: Night, spark_version: str) -> None:
        """NexmarkError if the night cannot run such a build."""

    def slowed_size(self, night: Night, query: str) -> Size:
        """Return what the slowed arm reads: the seeded slowdown, if it is one of size."""

    def timed_size(self, night: Night, run: Run) -> Size:
        """Return what a repetition reads."""

    def slowed_confs(
        self, night: Night, query: str, rows: Callable[[], Sequence["RepetitionRow"]]
    ) -> Mapping[str, str] | None:
        """Return the confs of the slowed arm of a query; None where it cannot be slowed.

        `rows` returns the repetitions of its accepted baseline.
        """

    def kafka_connection(self, night: Night) -> str | None:
        """Return the Airflow connection of the Kafka that is read; None where there is none."""

    def jars(self, spark_version: str) -> list[Path]:
        """Return the jars that its applications need besides Spark's own."""

    def source_arguments(self, night: Night, query: str, size: Size) -> list[str]:
        """Return the arguments that make a query read the events of `size`."""

    def program(self, night: Night, run: Run) -> JobProgram:
        """Return the program of a repetition."""

    def base_confs(self, night: Night, deployment: Deployment) -> dict[str, str]:
        """Return Spark confs of a repetition, which the night's own confs override."""

    def confs(self, night: Night, run: Run) -> dict[str, str]:
        """Return Spark confs of a repetition, which override the night's own confs."""

    def directories(self, night: Night, run: Run) -> tuple[Path, ...]:
        """Return more directories of a repetition that every try empties."""

    def begin(self, night: Night, deployments: Deployments, kafka: "KafkaCluster | None") -> None:
        """Prepare, when the cluster is up, what the applications read.

        `kafka` is the Kafka of the cluster's connection; None where the night starts its own.
        """

    def run(
        self,
        night: Night,
        submission: Repetition,
        ready: Ready,
        connect: Callable[[], "KafkaCluster"],
    ) -> None:
        """Run a repetition to its end, with what runs beside it; NexmarkError where it failed.

        Args:
            night: the night that it is of.
            submission: the repetition.
            ready: prepares its application.
            connect: returns the Kafka that it reads.
        """

    def noted(self, night: Night, directory: ApplicationDirectory) -> AbstractContextManager[None]:
        """Note in `directory` what the night's own services used while the context ran."""

    def loses_executors(self, night: Night) -> bool:
        """Tell whether executors of a repetition end before it does."""

    def figures(
        self, night: Night, directory: ApplicationDirectory, size: Size, read_rate: float
    ) -> dict[str, float]:
        """Return the figures of a repetition that its result does not have.

        NexmarkError for a repetition that does not count.

        Args:
            night: the night that it is of.
            directory: the directory of the repetition.
            size: what it has read.
            read_rate: records per second that it read.
        """

    def latency(self, directory: ApplicationDirectory) -> str | None:
        """Return the histogram of latencies of a repetition, None where it has none."""

    def ageing(self, directory: ApplicationDirectory) -> tuple[Mapping[str, object], ...] | None:
        """Return the samples of a repetition, one for each pause; None where it has none."""

    def shown_result(
        self, directory: ApplicationDirectory, result: Mapping[str, JsonValue]
    ) -> Mapping[str, JsonValue]:
        """Return the result of a repetition as pages show it."""

    def leftovers(self, night: Night) -> tuple[Path, ...]:
        """Return what is removed when the night ends, since the seed gives it again."""

    def end(self, night: Night, kafka: "KafkaCluster") -> None:
        """Remove what the night left in a Kafka that goes on."""
