"""The arguments of SparkSubmit for each kind of application of a night."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nexmark.cluster import OWNER_VARIABLE
from nexmark.config import Size, profile_path
from nexmark.model import Arm, Stage
from nexmark.night.jvm import Archive, recorded_options, timed_options, untimed_options
from nexmark.night.kafka_input import (
    NightKafka,
    connection_of,
    generator_arguments,
    source_arguments,
    source_confs,
)
from nexmark.night.paced_night import paced_arguments
from nexmark.night.plan import Deployment, Deployments, Night
from nexmark.night.private_confs import profile_confs, split
from nexmark.night.recovery_night import kept_dir, recovery_arguments, recovery_confs
from nexmark.night.runs import Run, group
from nexmark.secrets import key_path
from nexmark_jobs.redaction import KEY_VARIABLE, SPARK_REGEX

#: The run of a query whose rows are compared with the reference.
VERIFY = "verify"
#: The profile of runs of seconds.
QUICK = "quick"
#: Queries that test a sink: their verification run writes with that sink.
SINKS = {"q10": "filesystem"}


def dump_submission(night: Night, deployment: Deployment) -> dict[str, Any]:
    """The application that writes the events of the verification runs for the reference."""
    size = night.workload.verify
    arguments = [
        *generator_arguments(night, size),
        *("--out", str(night.events_dir), "--format", "parquet"),
    ]
    submission = _submission(
        night, deployment, "dump_events.py", arguments, name="dump_events", clear=night.events_dir
    )
    archive = _archive(night, deployment)
    submission["conf"] |= untimed_options(
        archive, may_make=False, executors_here=night.cluster.kind == "embedded"
    )
    return submission


def verify_submission(night: Night, deployment: Deployment, query: str) -> dict[str, Any]:
    """The verification run of `query`: its whole result, at the workload's `verify` size.

    In the same application the query runs over the boundary events.
    """
    directory = night.query_dir(query) / VERIFY
    output = night.verified_dir(query)
    sink = f"{verify_sink(query)}:{output}"
    submission = _query(night, deployment, query, directory, night.workload.verify, sink)
    submission["application_args"] += ["--boundary", str(night.boundary_dir(query))]
    archive = _archive(night, deployment)
    submission["conf"] |= untimed_options(
        archive, may_make=True, executors_here=night.cluster.kind == "embedded"
    )
    if output.parent != directory:
        submission["directories"].append(str(output.parent))
    submission["renames"] = [[str(archive.unfinished), str(archive.path)]]
    return submission


def shared_submission(
    night: Night, deployment: Deployment, plan: Path, log: Path
) -> dict[str, Any]:
    """The application that runs the verification runs of a plan (`verify_queries.py`)."""
    arguments = ["--plan", str(plan), "--log", str(log)]
    submission = _submission(
        night,
        deployment,
        "verify_queries.py",
        arguments,
        name=VERIFY,
        clear=night.directory / VERIFY,
    )
    archive = _archive(night, deployment)
    submission["conf"] |= untimed_options(
        archive, may_make=True, executors_here=night.cluster.kind == "embedded"
    )
    submission["renames"] = [[str(archive.unfinished), str(archive.path)]]
    return submission


def repetition_submission(night: Night, deployments: Deployments, run: Run) -> dict[str, Any]:
    """A timed repetition, with Spark's event log kept."""
    directory = night.query_dir(run.query) / run.name
    deployment = deployments.of(run.cluster_arm, run.query)
    size = night.slowed if run.arm == Arm.SLOWED else night.workload
    if night.workload.is_paced:
        submission = _paced(night, deployment, run, directory)
    elif night.workload.recovery:
        submission = _killed(night, deployment, run, directory)
    else:
        submission = _query(
            night, deployment, run.query, directory, size, "noop", arm=run.cluster_arm
        )
    events = directory / "events"
    archives = {arm.build: _archive(night, arm) for arm in deployments.arms(run.query)}
    fair = all(archive.use() for archive in archives.values()) and not night.workload.recovery
    archive = archives[deployment.build] if fair else None
    if run.stage == Stage.PROFILED:
        submission["conf"] |= recorded_options(archive)
    else:
        here = night.cluster.kind == "embedded"
        quick = here and night.workload.conf_profile == QUICK
        submission["conf"] |= timed_options(archive, quick_executors=quick)
    submission["conf"] |= {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "true",
        "spark.eventLog.compression.codec": "zstd",
    }
    submission["directories"].append(str(events))
    submission["history_server"] = night.cluster.history_server
    if run.stage == Stage.PROFILED:
        submission["recorded"] = run.cluster_arm
    else:
        submission["sampled_with"] = group(run)
    return submission


def _archive(night: Night, deployment: Deployment) -> Archive:
    return Archive.of(deployment, night.spark_cluster.conf_dir, night.cluster.name)


def verify_sink(query: str) -> str:
    """The sink of the verification run of `query`: parquet, or filesystem for q10."""
    return SINKS.get(query, "parquet")


def _query(
    night: Night,
    deployment: Deployment,
    query: str,
    directory: Path,
    size: Size,
    sink: str,
    arm: str = Arm.CANDIDATE,
) -> dict[str, Any]:
    arguments = [
        *("--query", query, *source_arguments(night, size)),
        *("--sink", sink, "--result", str(directory / "result.json")),
        *("--conf-profile", night.conf_profile),
    ]
    name = f"{query} {directory.name}"
    return _submission(
        night, deployment, "run_query.py", arguments, name=name, clear=directory, arm=arm
    )


def _paced(night: Night, deployment: Deployment, run: Run, directory: Path) -> dict[str, Any]:
    """The query that runs while its task sends it events; one slot for the shuffle is enough."""
    servers = NightKafka.read(night).servers
    submission = _submission(
        night,
        deployment,
        "paced_query.py",
        paced_arguments(night, run.query, directory, servers),
        name=f"{run.query} {run.name}",
        clear=directory,
        arm=run.cluster_arm,
    )
    submission["conf"]["spark.sql.shuffle.partitions"] = "1"
    submission["conf"] |= night.slowed_confs if run.arm == Arm.SLOWED else {}
    submission["paced"] = run.query
    return submission


def _killed(night: Night, deployment: Deployment, run: Run, directory: Path) -> dict[str, Any]:
    """The query that its task kills and starts again."""
    kept = kept_dir(night, run.query, run.name)
    submission = _submission(
        night,
        deployment,
        "run_query.py",
        recovery_arguments(night, run.query, run.name),
        name=f"{run.query} {run.name}",
        clear=directory,
        arm=run.cluster_arm,
    )
    submission["conf"] = recovery_confs(night, deployment) | submission["conf"]
    submission["directories"].append(str(kept))
    return submission | {"killed": run.query, "kept": str(kept), "arm": run.cluster_arm}


def _submission(
    night: Night,
    deployment: Deployment,
    program: str,
    arguments: Sequence[str],
    *,
    name: str,
    clear: Path,
    arm: str = Arm.CANDIDATE,
) -> dict[str, Any]:
    """The arguments of the operator; plain data, since it passes through XCom.

    `clear` is the directory that the application fills: it is emptied before every try. `renames`
    are pairs of paths, renamed after it has succeeded. `secret_confs` has fingerprints: what stands
    behind them is put into a file below `private` (see `private_confs`). A repetition that is only
    for flame graphs has its arm in `recorded`: its failure is none of the night. Others have the
    group of their samplers in `sampled_with`.
    """
    cluster = night.clusters[arm]
    config = cluster.config
    spark_home = Path(deployment.spark_home)
    checkpoints = cluster.checkpoints / name.replace(" ", "-")
    python = {"PYSPARK_PYTHON": cluster.worker_python, "PYSPARK_DRIVER_PYTHON": sys.executable}
    spark_environment = {
        key: value
        for key, value in cluster.driver_environment(spark_home).items()
        if key.startswith("SPARK_")
    }
    # a killed driver's files go with the cluster and do not stay in /tmp
    temporary = spark_environment["SPARK_LOCAL_DIRS"]
    spark_environment["SPARK_SUBMIT_OPTS"] = f'"-Djava.io.tmpdir={temporary}"'
    confs, secret = split(
        {
            **_redaction(night),
            **source_confs(night, deployment),
            "spark.sql.shuffle.partitions": str(config.shuffle_partitions),
            **night.engine.conf,
            **(night.candidate_conf if arm == Arm.CANDIDATE else {}),
            "spark.nexmark.build": deployment.build,
            "spark.driver.host": config.driver_address,
            "spark.driver.bindAddress": config.driver_address,
            "spark.driver.memory": config.driver_memory,
            "spark.executor.memory": config.executor_memory,
            "spark.executor.cores": str(config.executor_cores),
            "spark.cores.max": str(config.executors * config.executor_cores),
            "spark.sql.streaming.checkpointLocation": checkpoints.as_uri(),
            "spark.ui.enabled": "false",
            "spark.log.level": "WARN",
        }
    )
    return {
        "label": name,
        "night": str(night.directory),
        "directories": [str(clear)],
        "renames": [],
        "application": str(Path(deployment.jobs_home) / program),
        "application_args": list(arguments),
        "name": f"nexmark {name}",
        "conn_id": config.spark_connection,
        "spark_binary": str(spark_home / "bin" / "spark-submit"),
        "properties_file": str(cluster.properties_file(profile_path(night.conf_profile))),
        "env_vars": {
            **spark_environment,
            **python,
            "PYTHONPATH": "",
            OWNER_VARIABLE: cluster.mark,
            KEY_VARIABLE: str(key_path()),
        },
        "conf": confs,
        "secret_confs": secret,
        "kafka": connection_of(night),
        "engine": night.engine.name,
        "private": str(cluster.scratch / "private"),
    }


def _redaction(night: Night) -> dict[str, str]:
    """Return Spark's redaction for event logs: the same as ours, unless a profile sets another."""
    name = "spark.redaction.regex"
    return {} if name in profile_confs(night.conf_profile) else {name: SPARK_REGEX}
