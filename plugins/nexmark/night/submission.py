"""The arguments of SparkSubmit for each kind of application of a night.

Most of the time of a short application is the start of its driver. Two JVM options halve it,
without touching what is measured:

- *A class archive* of the driver, made by the first verification run of a build and used by every
  driver after it, and by the executors of what is not timed. It changes how classes are loaded,
  nothing else. Timed pairs use it only where both builds have one.
- *C1 only* in applications that are not timed: for a run of seconds the optimising compiler costs
  more than it gives.

Executors of timed repetitions get no option at all, except for the flight recorder, if they are
recorded and count for nothing else, and for the archive with the profile `quick`, whose figures are
mostly the start of the JVM. The options are Spark's `defaultJavaOptions`, to which
`extraJavaOptions` of a profile or an engine are added.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nexmark.cluster import OWNER_VARIABLE
from nexmark.config import Size, profile_path
from nexmark.engines.jvm import temporary_files
from nexmark.engines.short_runs import C1, ClassArchive, checkpoint_confs
from nexmark.flames.jfr import RECORDER
from nexmark.kafka.jars import connector_files
from nexmark.model import Arm, Stage
from nexmark.night import kafka_input, paced_night, recovery_night
from nexmark.night.plan import Deployment, Deployments, Night
from nexmark.night.private_confs import profile_confs, split
from nexmark.night.run_directory import VERIFY, ApplicationDirectory, Run
from nexmark.secrets import key_path
from nexmark_jobs.redaction import KEY_VARIABLE, SPARK_REGEX

#: The profile of runs of seconds.
QUICK = "quick"
#: Queries that test a sink: their verification run writes with that sink.
SINKS = {"q10": "filesystem"}
_DRIVER = "spark.driver.defaultJavaOptions"
_EXECUTOR = "spark.executor.defaultJavaOptions"


def _archive(night: Night, deployment: Deployment) -> ClassArchive:
    home, conf_dir = Path(deployment.spark_home), night.spark_cluster.conf_dir
    return ClassArchive.of(home, deployment.spark_version, conf_dir)


def _untimed(
    submission: dict[str, Any], night: Night, deployment: Deployment, *, may_make: bool
) -> dict[str, Any]:
    """Let an application that is not timed start quickly, and make the archive if it may."""
    archive = _archive(night, deployment)
    driver = archive.use()
    executor = [C1, *(driver if night.cluster.kind == "embedded" else [])]
    if may_make:
        unfinished = archive.unfinished(night.spark_cluster.mark)  # one night at a time has it
        submission["renames"] = [[str(unfinished), str(archive.path)]]
        if not driver:
            archive.path.parent.mkdir(parents=True, exist_ok=True)
            driver = [archive.make(night.spark_cluster.mark)]
    submission["conf"] |= {_DRIVER: " ".join([C1, *driver]), _EXECUTOR: " ".join(executor)}
    return submission


def dump_submission(night: Night, deployment: Deployment) -> dict[str, Any]:
    """The application that writes the events of the verification runs for the reference."""
    arguments = kafka_input.generator_arguments(night, night.workload.verify)
    arguments += ["--out", str(night.events_dir), "--format", "parquet"]
    program, clear = "dump_events.py", night.events_dir
    made = _submission(night, deployment, program, arguments, clear, name="dump_events")
    return _untimed(made, night, deployment, may_make=False)


def verify_submission(night: Night, deployment: Deployment, query: str) -> dict[str, Any]:
    """The verification run of `query`: its whole result, at the workload's `verify` size.

    In the same application the query runs over the boundary events.
    """
    directory, output = night.files.group(query).verify, night.verified_dir(query)
    sink = f"{verify_sink(query)}:{output}"
    arguments = _query_arguments(night, query, directory, night.workload.verify, sink)
    arguments += ["--boundary", str(night.boundary_dir(query))]
    made = _submission(night, deployment, "run_query.py", arguments, directory.path)
    if output.parent != directory.path:
        made["directories"].append(str(output.parent))
    return _untimed(made, night, deployment, may_make=True)


def shared_submission(night: Night, deployment: Deployment) -> dict[str, Any]:
    """The application that runs the verification runs of a plan (`verify_queries.py`)."""
    program, files = "verify_queries.py", night.files
    arguments = ["--plan", str(files.verify_plan), "--log", str(files.verify_log)]
    made = _submission(night, deployment, program, arguments, files.verify, name=VERIFY)
    return _untimed(made, night, deployment, may_make=True)


def repetition_submission(night: Night, deployments: Deployments, run: Run) -> dict[str, Any]:
    """A timed repetition, with Spark's event log kept."""
    application = night.files.application(run)
    directory, events = application.path, application.events
    deployment = deployments.of(run.cluster_arm, run.query)
    if night.workload.is_paced:
        submission = _paced(night, deployment, run, directory)
    elif night.workload.recovery:
        submission = _killed(night, deployment, run, directory)
    else:
        size, arm = night.slowed if run.arm == Arm.SLOWED else night.workload, run.cluster_arm
        given = _query_arguments(night, run.query, application, size, "noop")
        submission = _submission(night, deployment, "run_query.py", given, directory, arm=arm)
    archives = {arm.build: _archive(night, arm) for arm in deployments.arms(run.query)}
    fair = all(archive.use() for archive in archives.values()) and not night.workload.recovery
    options = {_DRIVER: " ".join(archives[deployment.build].use())} if fair else {}
    if run.stage == Stage.PROFILED:
        submission["recorded"] = run.cluster_arm
        options[_EXECUTOR] = " ".join(RECORDER)
    else:
        submission["sampled_with"] = run.group
        if fair and night.cluster.kind == "embedded" and night.workload.conf_profile == QUICK:
            options[_EXECUTOR] = options[_DRIVER]
    submission["conf"] |= options | {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "true",
        "spark.eventLog.compression.codec": "zstd",
    }
    submission["directories"].append(str(events))
    submission["history_server"] = night.cluster.history_server
    return submission


def verify_sink(query: str) -> str:
    """The sink of the verification run of `query`: parquet, or filesystem for q10."""
    return SINKS.get(query, "parquet")


def _query_arguments(
    night: Night, query: str, directory: ApplicationDirectory, size: Size, sink: str
) -> list[str]:
    return [
        *("--query", query, *kafka_input.source_arguments(night, size)),
        *("--sink", sink, "--result", str(directory.result_file)),
        *("--conf-profile", night.conf_profile),
    ]


def _paced(night: Night, deployment: Deployment, run: Run, directory: Path) -> dict[str, Any]:
    """The query that runs while its task sends it events; one slot for the shuffle is enough."""
    servers, arm = kafka_input.NightKafka.read(night).servers, run.cluster_arm
    arguments = paced_night.paced_arguments(night, run, servers)
    submission = _submission(night, deployment, "paced_query.py", arguments, directory, arm=arm)
    submission["conf"]["spark.sql.shuffle.partitions"] = "1"
    submission["conf"] |= night.slowed_confs if run.arm == Arm.SLOWED else {}
    submission["paced"] = run.model_dump(mode="json")
    return submission


def _killed(night: Night, deployment: Deployment, run: Run, directory: Path) -> dict[str, Any]:
    kept, arm = str(recovery_night.kept_dir(night, run)), run.cluster_arm
    arguments = recovery_night.recovery_arguments(night, run)
    submission = _submission(night, deployment, "run_query.py", arguments, directory, arm=arm)
    submission["conf"] = recovery_night.recovery_confs(night, deployment) | submission["conf"]
    submission["directories"].append(kept)
    return submission | {"killed": run.query, "kept": kept, "arm": arm}


def _submission(
    night: Night,
    deployment: Deployment,
    program: str,
    arguments: Sequence[str],
    clear: Path,
    *,
    name: str = "",
    arm: str = Arm.CANDIDATE,
) -> dict[str, Any]:
    """The arguments of the operator; plain data, since it passes through XCom.

    `clear` is the directory that the application fills: it is emptied before every try. A run of a
    query has its name from there. `renames` are pairs of paths, renamed after it has succeeded.
    `secret_confs` has fingerprints: what stands behind them is put into a file below `private` (see
    `private_confs`). A repetition that is only for flame graphs has its arm in `recorded`: its
    failure is none of the night. Others have the group of their samplers in `sampled_with`.
    """
    name = name or f"{clear.parent.name} {clear.name}"
    cluster = night.clusters[arm]
    config = cluster.config
    spark_home = Path(deployment.spark_home)
    checkpoints = cluster.checkpoints / name.replace(" ", "-")
    environment = cluster.driver_environment(spark_home)
    profile = profile_path(night.conf_profile)
    # Spark's redaction for event logs is the same as ours, unless the profile sets another.
    redaction = {"spark.redaction.regex": SPARK_REGEX}
    if redaction.keys() & profile_confs(night.conf_profile).keys():
        redaction = {}
    reads_kafka = night.workload.source == "kafka"
    jars = connector_files(deployment.spark_version) if reads_kafka else ()
    short = night.conf_profile == QUICK and not night.workload.recovery
    confs, secret = split(
        {
            **redaction,
            **({"spark.jars": ",".join(map(str, jars))} if jars else {}),
            **(checkpoint_confs(deployment.spark_version) if short else {}),
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
            # No `as_uri`: Spark decodes nothing in it.
            "spark.sql.streaming.checkpointLocation": f"file://{checkpoints}",
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
        "properties_file": str(cluster.properties_file(profile)),
        "env_vars": {
            **{key: value for key, value in environment.items() if key.startswith("SPARK_")},
            # a killed driver's files go with the cluster and do not stay in /tmp
            "SPARK_SUBMIT_OPTS": temporary_files(cluster.scratch / "local"),
            "PYSPARK_PYTHON": cluster.worker_python(deployment.python),
            "PYSPARK_DRIVER_PYTHON": deployment.python,
            "PYTHONPATH": "",
            OWNER_VARIABLE: cluster.mark,
            KEY_VARIABLE: str(key_path()),
        },
        "conf": confs,
        "secret_confs": secret,
        "kafka": kafka_input.connection_of(night),
        "engine": night.engine.name,
        "private": str(cluster.scratch / "private"),
    }
