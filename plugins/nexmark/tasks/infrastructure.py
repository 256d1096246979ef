"""The tasks around the queries: reap, deploy, start the cluster, stop it."""

import contextlib
import os
import shutil
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowRuntimeError

from nexmark.cluster import ClusterError, Lease, identify
from nexmark.config import BuildSource, load_retention, paths
from nexmark.engines import (
    Build,
    BuildError,
    UnusableBuild,
    job_python,
    job_python_problem,
    usable,
)
from nexmark.errors import NexmarkError
from nexmark.model import Arm
from nexmark.night.applications import dump_submission
from nexmark.night.kinds import kind_of
from nexmark.night.night_progress import say
from nexmark.night.plan import Deployment, Deployments, Night, deploy_jobs
from nexmark.night.submission import written
from nexmark.night.timed_program import timed_program
from nexmark.night.verification import Verification
from nexmark.reaper import command_of_environment
from nexmark.tasks import current_night, failing, results
from nexmark.tasks.recording import night_record
from nexmark.tasks.sampling import kafka_of
from nexmark_jobs.host.facts import brief

#: The user that `DAG.test()` runs as: there the whole night is one process.
_DAG_TEST_USER = "dag_test"
_NOT_FOUND = 404


def reap() -> None:
    """Claim the cluster for this night, and end what an earlier, killed night left on it.

    Where another night uses it, a scheduler tries again later; `airflow dags test` fails at once.
    """
    night = current_night()
    mine = _lease(night)
    for arm, cluster in night.clusters.items():
        # An earlier night may have left processes on the baseline's cluster as well.
        if arm not in night.arms and not cluster.state.exists():
            continue
        with failing(ClusterError, AirflowFailException if mine.holder else AirflowException):
            ended = cluster.reap(mine, _is_active)
            if arm not in night.arms:
                cluster.release()
        for line in ended:
            say(f"reap: ended what an earlier night left: {line}")


def deploy() -> None:
    """Bring the builds and the jobs to where they run from; writes the Deployments."""
    night = current_night()
    jobs, jobs_home = deploy_jobs(paths.home() / "jobs")
    program = timed_program(jobs_home)

    sources = dict.fromkeys([night.candidate, *night.against.values()])
    builds = {source: _build(source) for source in sources}
    versions = [build.version for build in builds.values()]
    if problem := job_python_problem(*versions):  # of a tarball, whose version was not known yet
        raise AirflowFailException(problem)
    python = job_python(*versions)

    def deployed(source: BuildSource) -> Deployment:
        build = builds[source]
        with failing(NexmarkError, AirflowFailException):
            kind_of(night.workload).check_build(night, build.version)
        return Deployment(
            build=build.id,
            spark_version=build.version,
            spark_home=str(build.spark_home),
            source=build.source,
            jobs=jobs,
            jobs_home=str(jobs_home),
            program=program,
            python=python,
        )

    candidate = deployed(night.candidate)
    known = {source: deployed(source) for source in dict.fromkeys(night.against.values())}
    baselines = {query: known[source] for query, source in night.against.items()}
    deployments = Deployments(candidate=candidate, baselines=baselines)
    releases = {x.spark_release.name: x.spark_release for x in (candidate, *known.values())}
    with failing(ClusterError):
        night.spark_cluster.claim(_lease(night), _is_active)  # to fetch the builds took a while
        sent = [*releases.values(), candidate.jobs_release]
        night.spark_cluster.deploy(sent, load_retention().host_builds, say)
    for query, build in night.accepted.items():
        if baselines[query].build != build:
            raise AirflowFailException(
                f"{query}: the accepted build {build} was {night.against[query]}, where there is "
                f"build {baselines[query].build} now; accept a run of a build that can be had"
            )
    deployments.write(night)
    record_night(night, deployments)
    say(f"deployed Spark {candidate.spark_version}, build {candidate.build}, jobs {jobs}")
    for each in known.values():
        same = ", the same as the candidate" * (each.build == candidate.build)
        say(f"deployed the baseline, Spark {each.spark_version}, build {each.build}{same}")


def _build(source: BuildSource) -> Build:
    with failing(BuildError), failing(UnusableBuild, AirflowFailException):
        return usable(source, paths.builds_dir(), full_check=True, say=say)


def record_night(night: Night, deployments: Deployments) -> None:
    """Record that the night has begun, and on which builds."""
    with results() as store:
        store.record_night(night_record(night, deployments, datetime.now(UTC)))


def start_cluster() -> dict[str, Any]:
    """Start the clusters and wait until all are ready; fill the topics of a night of Kafka.

    Returns the submission with which SparkSubmit dumps the events of the verification runs.
    """
    night = current_night()
    with failing(ClusterError):
        for arm in night.arms:
            night.clusters[arm].reap(_lease(night), _is_active)  # an earlier try of this task
    deployments = Deployments.read(night)
    _start(night, Arm.CANDIDATE, deployments.candidate)
    note_hosts(night)
    with failing(NexmarkError):
        kind_of(night.workload).begin(night, deployments, kafka_of(night))
    return written(dump_submission(night, deployments.candidate))


def note_hosts(night: Night) -> None:
    """Record the facts of the hosts for the evidence; if that fails, the night goes on."""
    try:
        found = {host: brief(facts) for host, facts in night.spark_cluster.describe().items()}
        night.files.write_hosts(found)
    except (ClusterError, OSError) as error:
        say(f"the facts of the hosts are not recorded: {error}")


def heal(night: Night, query: str) -> None:
    """Make the clusters whole that `query` needs, each on the build that it is to run.

    Restarts a cluster that lost a process, and the baseline's cluster when this query has another
    baseline build. The night keeps its lease meanwhile: no other night gets in between.
    """
    deployments = Deployments.read(night)
    for arm in night.arms:
        if arm != Arm.CANDIDATE and query not in night.against:
            continue
        deployment, cluster = deployments.of(arm, query), night.clusters[arm]
        with failing(ClusterError):
            cluster.claim(_lease(night), _is_active)
            if not (trouble := cluster.trouble_with(deployment.spark_release)):
                continue
            if cluster.started:
                say(f"cluster {cluster.config.name}: {trouble}; restarting it")
            cluster.clear()
        _start(night, arm, deployment)


def _start(night: Night, arm: str, deployment: Deployment) -> None:
    cluster = night.clusters[arm]
    with failing(ClusterError):
        cluster.start(deployment.spark_release, night.files.cluster(arm), _lease(night))
    say(f"cluster {cluster.config.name} is up at {cluster.config.master_url}")


def stop_cluster() -> None:
    """End the cluster and trim the disk.

    Removes Spark's scratch space, and the files that the same seed gives again: the events of the
    verification and the right results. A wrong result stays, as evidence.
    """
    night = current_night()
    mine = _lease(night)
    problems = []
    try:
        if kafka := kafka_of(night):
            kind_of(night.workload).end(night, kafka)
    except NexmarkError as error:
        problems.append(str(error))
    try:
        for arm in reversed(night.arms):
            cluster = night.clusters[arm]
            try:
                cluster.claim(mine, _is_active)  # a night that began since may have the cluster
                ended = cluster.stop(night.files.cluster(arm))
                say(f"cluster {cluster.config.name} is down ({len(ended)} processes ended)")
            except ClusterError as error:
                problems.append(str(error))
    finally:
        _trim(night)
    if problems:
        raise AirflowException(" | ".join(problems))


def _trim(night: Night) -> None:
    shutil.rmtree(night.events_dir, ignore_errors=True)
    for path in kind_of(night.workload).leftovers(night):
        shutil.rmtree(path, ignore_errors=True)
    for query in night.queries:
        verification = Verification.read(night.query_dir(query))
        if verification is not None and verification.success:
            shutil.rmtree(night.verified_dir(query), ignore_errors=True)
            shutil.rmtree(night.boundary_dir(query), ignore_errors=True)
    if night.data_dir != night.directory and night.data_dir.is_dir():
        shutil.copytree(night.data_dir, night.directory, dirs_exist_ok=True)
        shutil.rmtree(night.data_dir)
        for parent in night.data_dir.parents[:2]:  # runs/, and what is this cluster's
            with contextlib.suppress(OSError):
                parent.rmdir()


def _lease(night: Night) -> Lease:
    run = get_current_context()["dag_run"]
    in_this_process = getattr(run, "triggering_user_name", None) == _DAG_TEST_USER
    holder = identify(os.getpid()) if in_this_process else None
    return Lease(night.dag_id, night.run_id, holder, command_of_environment())


def _is_active(lease: Lease) -> bool:
    """Whether Airflow still runs the DAG run of `lease`; one it does not know has ended."""
    instance = get_current_context()["ti"]
    try:
        return instance.get_dagrun_state(lease.dag_id, lease.run_id) in ("queued", "running")
    except AirflowRuntimeError as error:
        if (error.error.detail or {}).get("status_code") == _NOT_FOUND:
            return False
        raise
