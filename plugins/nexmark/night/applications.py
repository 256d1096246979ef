"""The applications of a night, each as the submission that SparkSubmit is given.

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

To make a submission writes nothing: what it needs on the disk is made when it is submitted.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from nexmark.cluster import OWNER_VARIABLE
from nexmark.config import Job, Size
from nexmark.engines.jvm import temporary_files
from nexmark.engines.short_runs import C1, ClassArchive, checkpoint_confs
from nexmark.flames.jfr import RECORDER
from nexmark.model import PROFILED, Arm
from nexmark.night.deployments import OWN, Deployment, Deployments
from nexmark.night.kinds import kind_for, kind_of
from nexmark.night.kinds.bounded import formulation_arguments, generator_arguments
from nexmark.night.night_plan import Night
from nexmark.night.private_confs import profile_confs, split
from nexmark.night.run_directory import VERIFY, ApplicationDirectory, Run
from nexmark.night.submission import (
    EventDump,
    QueryVerification,
    Repetition,
    SharedQuery,
    SharedVerification,
    SparkApplication,
    Submission,
)
from nexmark.secrets import key_path
from nexmark_jobs.redaction import KEY_VARIABLE, SPARK_REGEX

#: The profile of runs of seconds.
QUICK = "quick"
#: Queries that test a sink: their verification run writes with that sink.
SINKS = {"q10": "filesystem"}
_DRIVER = "spark.driver.defaultJavaOptions"
_EXECUTOR = "spark.executor.defaultJavaOptions"
_JARS = "spark.jars"


def _archive(night: Night, deployment: Deployment) -> ClassArchive:
    home, conf_dir = Path(deployment.spark_home), night.spark_cluster.conf_dir
    return ClassArchive.of(home, deployment.spark_version, conf_dir)


def dump_submission(night: Night, deployment: Deployment) -> EventDump:
    """Return the application that writes the events of the verification runs for the reference."""
    arguments = generator_arguments(night, night.workload.verify)
    arguments += ["--out", str(night.events_dir), "--format", "parquet"]
    application = _application(night, deployment, "dump_events", "dump_events.py", arguments)
    driver = _archive(night, deployment).use()
    return EventDump(
        application=application.with_confs(_untimed_confs(night, deployment, driver)),
        directories=(night.events_dir,),
    )


def verify_submission(night: Night, deployment: Deployment, query: str) -> QueryVerification:
    """Return the verification run of `query`: its whole result, at the workload's `verify` size.

    In the same application the query runs over the boundary events.
    """
    directory, output = night.files.group(query).verify, night.verified_dir(query)
    sink = f"{verify_sink(query)}:{output}"
    arguments = _query_arguments(night, query, directory, night.workload.verify, sink)
    job = night.job_of_candidate(query)
    # Without a reference they prove nothing, and a job with own files does not read them.
    if job is None or (job.is_proven and job.own_tables is None):
        arguments += ["--boundary", str(night.boundary_dir(query))]
    if job is not None and not night.compares_verified_arms(query):
        arguments += ["--again", str(night.again_dir(query))]
    label = f"{query} {VERIFY}"
    application = _application(night, deployment, label, "run_query.py", arguments, job=job)
    elsewhere = () if output.parent == directory.path else (output.parent,)
    return QueryVerification(
        application=_with_archive(night, deployment, application),
        directories=(directory.path, *elsewhere),
        renames=_renames(night, deployment),
        query=query,
    )


def baseline_verification(night: Night, deployments: Deployments, query: str) -> Submission | None:
    """Return the run by which the candidate's rows are compared with the baseline's.

    None where a reference says which rows are right, or there is no baseline.
    """
    if not night.compares_verified_arms(query):
        return None
    deployment = deployments.of(Arm.BASELINE, query)
    directory, output = night.files.group(query).verify_baseline, night.baseline_dir(query)
    sink = f"{verify_sink(query)}:{output}"
    arguments = _query_arguments(night, query, directory, night.workload.verify, sink)
    arguments += ["--again", str(night.again_dir(query))]
    label = f"{query} {VERIFY} {Arm.BASELINE}"
    application = _application(
        night,
        deployment,
        label,
        "run_query.py",
        arguments,
        arm=Arm.BASELINE,
        job=night.job_of(Arm.BASELINE, query),
    )
    elsewhere = () if output.parent == directory.path else (output.parent,)
    driver = _archive(night, deployment).use()
    return Submission(
        application=application.with_confs(_untimed_confs(night, deployment, driver)),
        directories=(directory.path, *elsewhere),
    )


def shared_submission(
    night: Night, deployment: Deployment, queries: Mapping[str, SharedQuery]
) -> SharedVerification:
    """Return the application that runs the verification runs of a plan (`verify_queries.py`)."""
    files = night.files
    arguments = ["--plan", str(files.verify_plan), "--log", str(files.verify_log)]
    application = _application(night, deployment, VERIFY, "verify_queries.py", arguments)
    return SharedVerification(
        application=_with_archive(night, deployment, application),
        directories=(files.verify,),
        renames=_renames(night, deployment),
        queries=queries,
    )


def _untimed_confs(night: Night, deployment: Deployment, driver: Sequence[str]) -> dict[str, str]:
    """Return the confs with which an application that is not timed starts quickly.

    `driver` are the options of its driver about the class archive.
    """
    used = _archive(night, deployment).use() if night.cluster.kind == "embedded" else []
    return {_DRIVER: " ".join([C1, *driver]), _EXECUTOR: " ".join([C1, *used])}


def _with_archive(
    night: Night, deployment: Deployment, application: SparkApplication
) -> SparkApplication:
    """Return an application that uses the class archive, and makes it where there is none."""
    archive = _archive(night, deployment)
    driver = archive.use() or [archive.make(night.spark_cluster.mark)]
    return application.with_confs(_untimed_confs(night, deployment, driver))


def _renames(night: Night, deployment: Deployment) -> tuple[tuple[Path, Path], ...]:
    """Return where the class archive is while it is made, and where it goes then."""
    archive = _archive(night, deployment)
    unfinished = archive.unfinished(night.spark_cluster.mark)  # one night at a time has it
    return ((unfinished, archive.path),)


def repetition_submission(night: Night, deployments: Deployments, run: Run) -> Repetition:
    """Return a timed repetition, with Spark's event log kept."""
    directory = night.files.application(run)
    deployment = deployments.of(run.cluster_arm, run.query)
    kind, arm = kind_for(night, run.query), run.cluster_arm
    program = kind.program(night, run)
    application = _application(
        night,
        deployment,
        run.label,
        program.name,
        program.arguments,
        arm=arm,
        job=night.job_of(arm, run.query),
    )
    all_confs = {
        **kind.base_confs(night, deployment),
        **application.confs,
        **kind.confs(night, run),
        **_timed_confs(night, deployments, run),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": directory.events.as_uri(),
        "spark.eventLog.compress": "true",
        "spark.eventLog.compression.codec": "zstd",
    }
    if job := night.job_of(arm, run.query):
        all_confs |= job.file_confs(Path(deployment.jobs_home) / OWN, all_confs)
    shown, secret = split(all_confs)
    changes = {
        "confs": shown,
        "secret_confs": {**application.secret_confs, **secret},
        "java_class": program.java_class,
        "job_file": night.job_file(arm, run.query) if night.is_application(run.query) else None,
    }
    return Repetition(
        application=application.model_copy(update=changes),
        directories=(directory.path, *kind.directories(night, run), directory.events),
        run=run,
        outcome="ignored" if run.stage == PROFILED else "counts",
        spark_version=deployment.spark_version,
        history_server=night.cluster.history_server,
    )


def _timed_confs(night: Night, deployments: Deployments, run: Run) -> dict[str, str]:
    """Return the JVM options of a timed application: the same for both arms, or none."""
    archives = {arm.build: _archive(night, arm) for arm in deployments.arms(run.query)}
    starts = kind_for(night, run.query).has_short_starts
    fair = starts and all(archive.use() for archive in archives.values())
    build = deployments.of(run.cluster_arm, run.query).build
    options = {_DRIVER: " ".join(archives[build].use())} if fair else {}
    if run.stage == PROFILED:
        options[_EXECUTOR] = " ".join(RECORDER)
    elif fair and night.cluster.kind == "embedded" and night.workload.conf_profile == QUICK:
        options[_EXECUTOR] = options[_DRIVER]
    return options


def verify_sink(query: str) -> str:
    """Return the sink of the verification run of `query`: parquet, or filesystem for q10."""
    return SINKS.get(query, "parquet")


def _query_arguments(
    night: Night, query: str, directory: ApplicationDirectory, size: Size, sink: str
) -> list[str]:
    """Return the arguments of `run_query.py`.

    Args:
        night: the night that it is of.
        query: the query.
        directory: where its result file goes.
        size: the events that it reads.
        sink: where its rows go.
    """
    return [
        "--query",
        query,
        *formulation_arguments(night, query),
        *kind_for(night, query).source_arguments(night, query, size),
        "--sink",
        sink,
        "--result",
        str(directory.result_file),
        "--conf-profile",
        night.conf_profile,
    ]


def _application(
    night: Night,
    deployment: Deployment,
    label: str,
    program: str,
    arguments: Sequence[str],
    *,
    arm: str = Arm.CANDIDATE,
    job: Job | None = None,
) -> SparkApplication:
    """Return a program of the jobs with the confs that every application of the night has.

    Args:
        night: the night that it is of.
        deployment: the build and the jobs.
        label: what messages call it; no other application of the night has it.
        program: the file of the program among the jobs.
        arguments: the arguments of the program.
        arm: the arm on whose cluster it runs.
        job: the job of a person's own that it runs, which may have confs; None for another.
    """
    cluster = night.clusters[arm]
    spark_home = Path(deployment.spark_home)
    environment = cluster.driver_environment(spark_home)
    confs, secret = split(_confs(night, deployment, label, arm, job))
    return SparkApplication(
        label=label,
        program=str(Path(deployment.jobs_home) / program),
        arguments=tuple(arguments),
        arm=arm,
        profile=night.conf_profile,
        confs=confs,
        secret_confs=secret,
        environment={
            **{key: value for key, value in environment.items() if key.startswith("SPARK_")},
            # a killed driver's files go with the cluster and do not stay in /tmp
            "SPARK_SUBMIT_OPTS": temporary_files(cluster.scratch / "local"),
            "PYSPARK_PYTHON": cluster.worker_python(deployment.python),
            "PYSPARK_DRIVER_PYTHON": deployment.python,
            "PYTHONPATH": "",
            OWNER_VARIABLE: cluster.mark,
            KEY_VARIABLE: str(key_path()),
        },
        connection=cluster.config.spark_connection,
        spark_binary=str(spark_home / "bin" / "spark-submit"),
        kafka=kind_of(night.workload).kafka_connection(night),
        engine=night.engine.name,
        private=cluster.scratch / "private",
    )


def _confs(
    night: Night, deployment: Deployment, label: str, arm: str, job: Job | None
) -> dict[str, str]:
    """Return the Spark confs of an application; the last one of a name counts.

    Args:
        night: The night.
        deployment: The build that runs it.
        label: The label of the application.
        arm: The arm on whose cluster it runs.
        job: The job of a person's own that it runs, None for another.
    """
    cluster = night.clusters[arm]
    config = cluster.config
    checkpoints = cluster.checkpoints / label.replace(" ", "-")
    # Spark's redaction for event logs is the same as ours, unless the profile sets another.
    redaction = {"spark.redaction.regex": SPARK_REGEX}
    if redaction.keys() & profile_confs(night.conf_profile).keys():
        redaction = {}
    kind = kind_of(night.workload)
    given = {
        **night.engine.conf,
        **(job.confs if job else {}),
        **(night.candidate_conf if arm == Arm.CANDIDATE else {}),
    }
    of_job = job.jar_paths(Path(deployment.jobs_home) / OWN) if job else []
    added = [*kind.jars(deployment.spark_version), *of_job]
    jars = [*filter(None, [given.get(_JARS)]), *map(str, added)]
    short = night.conf_profile == QUICK and kind.has_short_starts
    return {
        **redaction,
        **(checkpoint_confs(deployment.spark_version) if short else {}),
        "spark.sql.shuffle.partitions": str(config.shuffle_partitions),
        **given,
        **({_JARS: ",".join(jars)} if jars else {}),
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
