"""The plan of one DAG run: preflight decides it once, tasks only read it."""

import json
import socket
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path

from pydantic import Field

from nexmark import config
from nexmark.cluster import SparkCluster, open_cluster
from nexmark.config import BuildSource, paths
from nexmark.config.fields import Model
from nexmark.config.own_jobs import FOLDER
from nexmark.errors import NexmarkError
from nexmark.home import write_text
from nexmark.model import ARMS, Arm, Mode, RunKey
from nexmark.night.run_directory import RunDirectory


class Night(Model):
    """The plan of one DAG run: a change of `include/conf` while it runs does not reach it.

    Attributes:
        candidate_conf: Spark confs of the candidate alone, if the night tests a setting.
        mode: how it is judged (`include/conf/gate.yaml`).
        against: by query the build to compare with in this night, if there is one.
        accepted: by query the id of the build in `against`, if it is the accepted build.
        teaches: whether the gate learns from it (`make_night.teaches`).
        compatibility: the size at which the baseline and the candidate go on from each other's
            checkpoints; None: they do not.
        self_test: by arm (control, slowed) the query by which the gate itself is tested.
        slowed_confs: in a paced night, what makes the rows of the slowed arm later.
        seed: decides which arm of a query is first.
        deadline: when the budget of the night ends: a round that would last longer is not begun.
        machine: the name of the machine that the preflight ran on.
        jobs: the jobs of a person's own among the queries.
        candidate_jobs: the versions that the candidate runs in place of some of `jobs`.
        candidate_job: the directory of the changed versions; '' for none.
        started_by: the user who started the run; the kind of the run (`scheduled`) if no user did.
    """

    dag_id: str
    run_id: str
    engine: config.Engine
    workload: config.Workload
    cluster: config.AnyCluster
    gate: config.Gate
    queries: tuple[str, ...]
    candidate: BuildSource
    candidate_conf: config.SparkConf = Field(default_factory=dict)
    mode: Mode = Mode.BOUNDS
    teaches: bool = True
    against: Mapping[str, BuildSource] = Field(default_factory=dict)
    accepted: Mapping[str, str] = Field(default_factory=dict)
    compatibility: config.Span | None = None
    self_test: Mapping[str, str] = Field(default_factory=dict)
    slowed_confs: Mapping[str, str] = Field(default_factory=dict)
    seed: int = 0
    deadline: datetime | None = None
    machine: str = Field(default_factory=socket.gethostname)
    started_by: str = ""
    jobs: Mapping[str, config.Job] = Field(default_factory=dict)
    candidate_jobs: Mapping[str, config.Job] = Field(default_factory=dict)
    candidate_job: str = ""

    @property
    def files(self) -> RunDirectory:
        """The files of the night."""
        return RunDirectory.of(self.dag_id, self.run_id)

    @property
    def directory(self) -> Path:
        """The run directory."""
        return self.files.path

    @property
    def name(self) -> str:
        """The name of the night in the results database."""
        return str(RunKey(self.dag_id, self.run_id))

    @property
    def conf_profile(self) -> str:
        """The engine's conf profile, else the workload's."""
        return self.engine.conf_profile or self.workload.conf_profile

    @cached_property
    def clusters(self) -> Mapping[str, SparkCluster]:
        """The cluster of each arm that there can be."""
        return {arm: open_cluster(self.cluster.of_arm(arm), paths.home()) for arm in ARMS}

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms of this night."""
        return (Arm.CANDIDATE, Arm.BASELINE) if self.against else (Arm.CANDIDATE,)

    @property
    def spark_cluster(self) -> SparkCluster:
        """The cluster of the candidate; it also runs every application that is not timed."""
        return self.clusters[Arm.CANDIDATE]

    @property
    def data_dir(self) -> Path:
        """Where applications write what executors write; the run directory if it can be."""
        return self.spark_cluster.data_dir(self.directory)

    @property
    def events_dir(self) -> Path:
        """The events of the verification runs, as the reference reads them."""
        return self.data_dir / "events"

    def tables_dir(self, query: str) -> Path:
        """Return the files of a job's own tables, laid out in micro-batches."""
        return self.data_dir / "tables" / query

    def query_dir(self, query: str) -> Path:
        """Return where everything about `query` goes."""
        return self.files.group(query).path

    def verified_dir(self, query: str) -> Path:
        """Return the output of the verification run of `query`."""
        return RunDirectory(self.data_dir).group(query).verify.path / "output"

    def boundary_dir(self, query: str) -> Path:
        """Return the output of the verification run of `query` over the boundary events."""
        return self.verified_dir(query).with_name("boundary")

    def job_of_candidate(self, query: str) -> config.Job | None:
        """Return the job that the candidate runs as `query`; None for a query of Nexmark."""
        return self.candidate_jobs.get(query) or self.jobs.get(query)

    def job_of(self, arm: str, query: str) -> config.Job | None:
        """Return the job that an arm runs as `query`; None for a query of Nexmark."""
        return self.job_of_candidate(query) if arm == Arm.CANDIDATE else self.jobs.get(query)

    def job_file(self, arm: str, query: str) -> Path:
        """Return the file of the version of a job that an arm runs."""
        is_changed = arm == Arm.CANDIDATE and query in self.candidate_jobs
        beside = Path(self.candidate_job).expanduser() if is_changed else paths.conf_dir() / FOLDER
        return beside / f"{query}.yaml"

    def compares_verified_arms(self, query: str) -> bool:
        """Tell whether the baseline's rows say what is right: of a job without a reference."""
        job = self.job_of_candidate(query)
        if job is None or job.application is not None:
            return False
        return not job.is_proven and query in self.against

    def is_application(self, query: str) -> bool:
        """Tell whether a query is an application of a person's own."""
        job = self.jobs.get(query)
        return job is not None and job.application is not None

    def reads_own_tables(self, query: str) -> bool:
        """Tell whether a query is a job that reads files of a person's own."""
        job = self.jobs.get(query)
        return job is not None and job.own_tables is not None

    def baseline_dir(self, query: str) -> Path:
        """Return the output of the baseline's verification run of such a job."""
        return RunDirectory(self.data_dir).group(query).verify_baseline.path / "output"

    def again_dir(self, query: str) -> Path:
        """Return the output of the second run of a job: of the baseline, if that is verified."""
        of_baseline = self.compares_verified_arms(query)
        first = self.baseline_dir(query) if of_baseline else self.verified_dir(query)
        return first.with_name("again")

    def write(self) -> None:
        """Write it where `read` finds it; NexmarkError if the directory is another run's.

        Characters that a file name should not have are all alike in the name of a directory.
        """
        path = self.files.night
        other = json.loads(path.read_text()).get("run_id") if path.exists() else self.run_id
        if other != self.run_id:
            remedy = "start the DAG run again, with a run id of other letters or digits"
            raise NexmarkError(f"{self.directory}: is the directory of run {other}; {remedy}")
        self.directory.mkdir(parents=True, exist_ok=True)
        write_text(path, self.model_dump_json(indent=1))

    @classmethod
    def read(cls, dag_id: str, run_id: str) -> "Night":
        """Return the plan of a DAG run; NexmarkError if its preflight has not been passed."""
        return cls.model_validate_json(text_of(RunDirectory.of(dag_id, run_id).night))


def text_of(path: Path) -> str:
    """Return the text of a file of a night; NexmarkError if it is not there."""
    try:
        return path.read_text()
    except FileNotFoundError:
        raise NexmarkError(f"{path}: there is no such file; start a new DAG run") from None
