"""What one DAG run does, decided once in preflight and then only read.

<run directory>/night.json        Night: engine, workload, cluster, queries, gate as they were
<run directory>/deployment.json   Deployments: the builds and the jobs that were deployed
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import Field

from nexmark.cluster import Release, SparkCluster, open_cluster
from nexmark.config import (
    BASELINE,
    CANDIDATE,
    AnyCluster,
    BuildSource,
    Engine,
    Gate,
    Mode,
    SparkConf,
    Workload,
    paths,
)
from nexmark.config.fields import Model
from nexmark.errors import NexmarkError

_M = TypeVar("_M", bound=Model)


class Night(Model):
    """The plan of one DAG run: a change of `include/conf` while it runs does not reach it.

    Attributes:
        candidate_conf: Spark confs of the candidate alone, where a setting is what is tested.
        mode: how it is judged: by bounds, paired, or by its history (`include/conf/gate.yaml`).
        against: the build that each query is compared with in this very night, if it is.
        accepted: the build of these that was accepted, by its id.
        self_test: by arm (control, slowed) the query by which the gate itself is tested.
        seed: decides which arm of a query is first.
    """

    dag_id: str
    run_id: str
    engine: Engine
    workload: Workload
    cluster: AnyCluster
    gate: Gate
    queries: tuple[str, ...]
    candidate: BuildSource
    candidate_conf: SparkConf = Field(default_factory=dict)
    mode: Mode = "bounds"
    against: Mapping[str, BuildSource] = Field(default_factory=dict)
    accepted: Mapping[str, str] = Field(default_factory=dict)
    self_test: Mapping[str, str] = Field(default_factory=dict)
    seed: int = 0

    @property
    def directory(self) -> Path:
        """The run directory."""
        return paths.run_dir(self.dag_id, self.run_id)

    @property
    def name(self) -> str:
        """The name of the night in the results database."""
        return f"{self.dag_id}/{self.run_id}"

    @property
    def conf_profile(self) -> str:
        """The engine's conf profile, else the workload's."""
        return self.engine.conf_profile or self.workload.conf_profile

    @cached_property
    def clusters(self) -> Mapping[str, SparkCluster]:
        """The cluster of each arm that there can be."""
        return {
            arm: open_cluster(self.cluster.of_arm(arm), paths.home())
            for arm in (CANDIDATE, BASELINE)
        }

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms of this night."""
        return (CANDIDATE, BASELINE) if self.against else (CANDIDATE,)

    @property
    def spark_cluster(self) -> SparkCluster:
        """The cluster of the candidate, which is also that of all that is not timed."""
        return self.clusters[CANDIDATE]

    @property
    def data_dir(self) -> Path:
        """Where applications write what executors write; the run directory if it can be."""
        return self.spark_cluster.data_dir(self.directory)

    @property
    def events_dir(self) -> Path:
        """The events of the verification runs, as the reference reads them."""
        return self.data_dir / "events"

    def query_dir(self, query: str) -> Path:
        """Where everything about `query` goes."""
        return self.directory / query

    def verified_dir(self, query: str) -> Path:
        """What the verification run of `query` puts out."""
        return self.data_dir / query / "verify" / "output"

    def position(self, query: str) -> str:
        """`[ 3/24] q2`, for messages."""
        from nexmark.tasks.runs import run_order

        order = [name for name in run_order(self.gate) if name in self.queries]
        place = order.index(query) + 1
        width = len(str(len(self.queries)))
        return f"[{place:>{width}}/{len(self.queries)}] {query:<4}"

    def write(self) -> None:
        """Write it where `read` finds it."""
        _write(self.directory / "night.json", self)

    @classmethod
    def read(cls, dag_id: str, run_id: str) -> Night:
        """The plan of a DAG run; NexmarkError if its preflight has not been passed."""
        return _read(paths.run_dir(dag_id, run_id) / "night.json", cls)

    @classmethod
    def current(cls) -> Night:
        """The plan of the DAG run that the running task is of."""
        from airflow.sdk import get_current_context

        run = get_current_context()["dag_run"]
        return cls.read(run.dag_id, run.run_id)


class Deployment(Model):
    """What was deployed: a Spark build and the jobs, each named by its content."""

    build: str
    spark_version: str
    spark_home: str
    source: str
    jobs: str
    jobs_home: str

    @property
    def spark_release(self) -> Release:
        """The build as it is deployed."""
        return Release(f"spark-{self.build}", self.build, Path(self.spark_home))

    @property
    def jobs_release(self) -> Release:
        """The jobs as they are deployed."""
        return Release(f"jobs-{self.jobs}", self.jobs, Path(self.jobs_home))


class Deployments(Model):
    """The builds of the arms of a night; a query that is compared with none has no baseline."""

    candidate: Deployment
    baselines: Mapping[str, Deployment] = Field(default_factory=dict)

    def of(self, arm: str, query: str) -> Deployment:
        """What `arm` of `query` runs."""
        return self.candidate if arm == CANDIDATE else self.baselines[query]

    def arms(self, query: str) -> list[Deployment]:
        """What the arms of `query` run: the candidate, and the baseline if there is one."""
        return [self.candidate, *([self.baselines[query]] if query in self.baselines else [])]

    def write(self, night: Night) -> None:
        """Write it where `read` finds it."""
        _write(night.directory / "deployment.json", self)

    @classmethod
    def read(cls, night: Night) -> Deployments:
        """The deployments of `night`; NexmarkError if there are none."""
        return _read(night.directory / "deployment.json", cls)


def _write(path: Path, content: Model) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(content.model_dump_json(indent=1))
    temporary.replace(path)


def _read(path: Path, model: type[_M]) -> _M:
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise NexmarkError(f"{path}: there is no such file; start the DAG run anew") from None
    return model.model_validate_json(text)


__all__ = ["Deployment", "Deployments", "Night"]
