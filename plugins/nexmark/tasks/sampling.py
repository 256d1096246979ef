"""Beside the queries: the CPU samplers, the canary before and after, and the topics of Kafka."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException

from nexmark.cluster import ClusterError
from nexmark.cluster.base import SAMPLER_MAX_SECONDS
from nexmark.errors import NexmarkError
from nexmark.kafka import KafkaError
from nexmark.model import Mode
from nexmark.night.kinds import kind_of
from nexmark.night.kinds.kafka import NightKafka
from nexmark.night.night_progress import say
from nexmark.night.plan import Deployments, Night
from nexmark.night.repetition_plan import runs_of
from nexmark.night.run_directory import (
    Moment,
    failure_kept,
    prepare,
)
from nexmark.tasks import current_night, failing
from nexmark_jobs.cause import last_words
from nexmark_jobs.host.processes import end, plain_environment, start_detached, with_word

if TYPE_CHECKING:
    from nexmark.kafka.topics import KafkaCluster


def run_canary(night: Night, group: str, moment: Moment) -> None:
    """Run the canary on all hosts at once and keep its figures; if it fails, the night goes on.

    If a host fails the canary, its queries fail too, with a better message.
    """
    if night.mode == Mode.BOUNDS or not night.gate.canary:
        return
    try:
        found = [night.spark_cluster.canary() for _ in range(night.gate.canary)]
    except ClusterError as error:
        say(f"{group}: no canary {moment}: {error}")
        return
    night.files.group(group).write_canary(moment, found)


_START_TIMEOUT_S = 30.0
_STOP_GRACE_S = 30.0
_POLL_S = 0.05


def start_samplers(query: str) -> None:
    """Start the samplers of all hosts and wait until their first readings are written."""
    night = current_night()
    waiting = [night.files.application(run) for run in runs_of(night, query)]
    with failing(NexmarkError), failure_kept(*waiting):
        _stop_here(night, query)  # an earlier try may have left a sampler
        run_canary(night, query, "before")
        night.files.group(query).remove_samples()
        _start_here(night, query)
        jobs = Deployments.read(night).candidate.jobs_release
        night.spark_cluster.start_samplers(jobs, query, night.workload.sampling_interval_s)


def stop_samplers(query: str) -> None:
    """End the samplers; they write a last reading first. Ending none is no error."""
    night = current_night()
    fetched = night.files.group(query).fetched_samples
    prepare([fetched.path])
    _stop_here(night, query)
    with failing(ClusterError), failure_kept(fetched):
        night.spark_cluster.stop_samplers(query, night.query_dir(query))
    run_canary(night, query, "after")


def _start_here(night: Night, query: str) -> None:
    directory = night.files.group(query)
    log, pid_file = directory.sampler_log, directory.sampler_pid
    program = Path(Deployments.read(night).candidate.jobs_home) / "cpu_sampler.py"
    command = [
        *(sys.executable, "-I", str(program)),
        *("--out", str(directory.driver_samples), "--pid-file", str(pid_file)),
        *("--interval", str(night.workload.sampling_interval_s)),
        *("--max-seconds", str(SAMPLER_MAX_SECONDS)),
    ]
    process = start_detached(command, plain_environment(), night.spark_cluster.mark, log)
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not pid_file.exists():
        if not process.alive or time.monotonic() > deadline:
            end([process])
            why = last_words(log.read_text(errors="replace"))
            raise AirflowException(f"{query}: the sampler did not start: {why[:300]}; see {log}")
        time.sleep(_POLL_S)


def _stop_here(night: Night, query: str) -> None:
    """End the sampler that has this pid file among its arguments: a pid may be another's by now."""
    pid_file = night.files.group(query).sampler_pid
    end(with_word(night.spark_cluster.mark, str(pid_file)), grace_s=_STOP_GRACE_S)
    pid_file.unlink(missing_ok=True)  # a killed sampler leaves it; the next one is not ready yet


def kafka_problem(night: Night) -> str:
    """Return why the night cannot have its topics in the Kafka of its connection, or ''."""
    try:
        kafka_confs(kind_of(night.workload).kafka_connection(night))
        kafka = kafka_of(night)
        return "" if kafka is None else kafka.problem()
    except (NexmarkError, AirflowNotFoundException) as error:
        return str(error)


def connect(night: Night) -> "KafkaCluster":
    """Return the Kafka that the night reads: its own, or the one of the cluster's connection."""
    from nexmark.kafka.topics import KafkaCluster

    return kafka_of(night) or KafkaCluster(NightKafka.read(night).servers)


def kafka_confs(connection: str | None) -> dict[str, str]:
    """The Spark confs with which a query connects to the Kafka of an Airflow connection.

    KafkaError for a setting that Spark's client does not have.
    """
    if connection is None:
        return {}
    from nexmark.kafka.jvm_settings import spark_confs

    try:
        return spark_confs(_settings(connection))
    except KafkaError as error:
        raise KafkaError(f"connection {connection}: {error}") from None


def kafka_of(night: Night) -> "KafkaCluster | None":
    """The Kafka of the cluster's connection, if the night reads it; else None."""
    connection = kind_of(night.workload).kafka_connection(night)
    if connection is None:
        return None
    from nexmark.kafka.topics import KafkaCluster

    settings = _settings(connection)
    servers = settings.pop("bootstrap.servers", "")
    if not servers:
        problem = "no bootstrap.servers in its extra; add HOST:PORT,..."
        raise NexmarkError(f"connection {connection}: {problem}")
    return KafkaCluster(servers, settings)


def _settings(connection: str) -> dict[str, str]:
    """The extra of a connection of Airflow's Kafka provider: librdkafka's settings."""
    extra = BaseHook.get_connection(connection).extra_dejson
    return {str(name): str(value) for name, value in extra.items()}
