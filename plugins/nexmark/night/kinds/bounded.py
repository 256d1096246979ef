"""Nights whose repetitions read what the generator gives, as fast as they can."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from nexmark.config import AnyCluster, Gate, Size, Workload
from nexmark.model import MIN_PAIRS, Arm
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.kinds.night_kind import JobProgram, Ready
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import ApplicationDirectory, Run
from nexmark.night.submission import Repetition

if TYPE_CHECKING:
    from nexmark.kafka.topics import KafkaCluster
    from nexmark.store.table_rows import RepetitionRow


def generator_arguments(night: Night, size: Size) -> list[str]:
    """Return the arguments that make the generator give the events of `size`."""
    settings = night.workload.generator.items()
    return [
        "--events",
        str(size.events),
        "--tps",
        str(size.tps),
        "--seed",
        str(night.workload.seed),
        *(word for key, value in settings for word in ("--generator", f"{key}={value}")),
    ]


def formulation_arguments(night: Night, query: str) -> list[str]:
    """Return the arguments that choose the formulation of a query, if the workload names one."""
    name = night.workload.formulations.get(query)
    return ["--formulation", name] if name else []


class Bounded:
    """The usual kind; the other kinds change what differs from it."""

    is_judged_by_pairs_only = False
    has_flame_graphs = True
    has_slowed_arm = True
    has_short_starts = True
    compares_digests = True
    runs_own_jobs = True
    runs_own_inputs = True

    def gate(self, gate: Gate) -> Gate:
        """Return the usual gate."""
        return gate

    def least_pairs(self) -> int:
        """Return what the gate on pairs needs."""
        return MIN_PAIRS

    def cluster(self, workload: Workload, cluster: AnyCluster) -> AnyCluster:
        """Return the cluster as it is."""
        return cluster

    def problems(self, night: Night) -> list[str]:
        """Return none."""
        return []

    def check_build(self, night: Night, spark_version: str) -> None:
        """Take any build."""

    def slowed_size(self, night: Night, query: str) -> Size:
        """Return more events in each batch, by `self_test`, that are not counted.

        The size of the slowdown is known and the same for every query, and it is real work of the
        query itself.
        """
        size, more = night.workload.size_of(query), 1 + night.gate.self_test
        batch = round(size.rows_per_batch * more)
        return Size(events=round(size.events * more), tps=size.tps, rows_per_batch=batch)

    def timed_size(self, night: Night, run: Run) -> Size:
        """Return what a repetition reads."""
        if run.arm == Arm.SLOWED:
            return self.slowed_size(night, run.query)
        return night.workload.size_of(run.query)

    def slowed_confs(
        self, night: Night, query: str, rows: Callable[[], Sequence["RepetitionRow"]]
    ) -> Mapping[str, str] | None:
        """Return none: the size is the slowdown."""
        return {}

    def kafka_connection(self, night: Night) -> str | None:
        """Return None: it reads no Kafka."""
        return None

    def jars(self, spark_version: str) -> list[Path]:
        """Return none."""
        return []

    def source_arguments(self, night: Night, query: str, size: Size) -> list[str]:
        """Return the arguments that make a query generate its events."""
        batches = ["--rows-per-batch", str(size.rows_per_batch)]
        return ["--source", "datagen", *generator_arguments(night, size), *batches]

    def program(self, night: Night, run: Run) -> JobProgram:
        """Return the query, whose rows go nowhere."""
        size = self.timed_size(night, run)
        arguments = [
            "--query",
            run.query,
            *formulation_arguments(night, run.query),
            *self.source_arguments(night, run.query, size),
            "--sink",
            "noop",
            "--result",
            str(night.files.application(run).result_file),
            "--conf-profile",
            night.conf_profile,
        ]
        return JobProgram(name="run_query.py", arguments=tuple(arguments))

    def base_confs(self, night: Night, deployment: Deployment) -> dict[str, str]:
        """Return none."""
        return {}

    def confs(self, night: Night, run: Run) -> dict[str, str]:
        """Return none."""
        return {}

    def directories(self, night: Night, run: Run) -> tuple[Path, ...]:
        """Return none."""
        return ()

    def begin(self, night: Night, deployments: Deployments, kafka: "KafkaCluster | None") -> None:
        """Prepare nothing."""

    def run(
        self,
        night: Night,
        submission: Repetition,
        ready: Ready,
        connect: Callable[[], "KafkaCluster"],
    ) -> None:
        """Run the application, with nothing beside it."""
        ready(submission.application.arguments, {})()

    @contextmanager
    def noted(self, night: Night, directory: ApplicationDirectory) -> Iterator[None]:
        """Note nothing."""
        yield

    def loses_executors(self, night: Night) -> bool:
        """Return False: executors live as long as the application."""
        return False

    def figures(
        self, night: Night, directory: ApplicationDirectory, size: Size, read_rate: float
    ) -> dict[str, float]:
        """Return none."""
        return {}

    def latency(self, directory: ApplicationDirectory) -> str | None:
        """Return None."""
        return None

    def ageing(self, directory: ApplicationDirectory) -> tuple[Mapping[str, object], ...] | None:
        """Return None."""
        return None

    def shown_result(
        self, directory: ApplicationDirectory, result: Mapping[str, JsonValue]
    ) -> Mapping[str, JsonValue]:
        """Return the result as it is."""
        return result

    def leftovers(self, night: Night) -> tuple[Path, ...]:
        """Return none."""
        return ()

    def end(self, night: Night, kafka: "KafkaCluster") -> None:
        """Remove nothing."""
