"""The tasks around the queries: reap, deploy, start the cluster, stop it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
from pathlib import Path
from typing import Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRuntimeError,
)

from nexmark.cluster import ClusterError, Lease, identify
from nexmark.config import CANDIDATE, BuildSource, paths
from nexmark.engines import Build, BuildError, java_problem, resolve
from nexmark.engines.identity import Manifest, scan
from nexmark.errors import NexmarkError
from nexmark.tasks.night import Deployment, Deployments, Night
from nexmark.tasks.outcome import Verification
from nexmark.tasks.progress import say
from nexmark.tasks.recording import record_night
from nexmark.tasks.submission import dump_submission
from nexmark_jobs.host.facts import brief

#: The user that `DAG.test()` runs as: there the whole night is one process.
_DAG_TEST_USER = "dag_test"
_ACTIVE_STATES = frozenset({"queued", "running"})
_NOT_FOUND = 404


def reap() -> None:
    """End what an earlier, killed night left on the cluster, and claim it for this night.

    Where another night uses it, a scheduler tries again later; `airflow dags test` fails at once.
    """
    night = Night.current()
    mine = _lease(night)
    for arm, cluster in night.clusters.items():
        try:
            ended = cluster.reap(mine, _is_active) if _may_hold(night, arm) else []
        except ClusterError as error:
            raise (AirflowFailException if mine.holder else AirflowException)(str(error)) from None
        if arm in night.arms:
            cluster.claim(mine)
        for line in ended:
            say(f"reap: ended what an earlier night left: {line}")


def deploy() -> None:
    """Bring the builds and the jobs to where they run from; writes the Deployments."""
    night = Night.current()
    jobs, jobs_home = deploy_jobs(paths.jobs_dir())

    def deployed(source: BuildSource) -> Deployment:
        build = _build(source)
        return Deployment(
            build=build.id,
            spark_version=build.version,
            spark_home=str(build.spark_home),
            source=build.source,
            jobs=jobs,
            jobs_home=str(jobs_home),
        )

    candidate = deployed(night.candidate)
    known = {source: deployed(source) for source in dict.fromkeys(night.against.values())}
    baselines = {query: known[source] for query, source in night.against.items()}
    deployments = Deployments(candidate=candidate, baselines=baselines)
    releases = {
        each.spark_release.name: each.spark_release for each in (candidate, *known.values())
    }
    try:
        night.spark_cluster.deploy([*releases.values(), candidate.jobs_release], say)
    except ClusterError as error:
        raise AirflowException(str(error)) from None
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
    try:
        build = resolve(source, paths.builds_dir(), say=say)
    except BuildError as error:
        raise AirflowException(str(error)) from None
    problem = java_problem(build.version)
    if problem:
        raise AirflowFailException(problem)
    return build


def deploy_jobs(target: Path) -> tuple[str, Path]:
    """Copy `nexmark_jobs` to `<target>/<id>/nexmark_jobs`, where no later edit reaches it.

    Returns the id (hash of the content) and the directory of the package.
    """
    spec = importlib.util.find_spec("nexmark_jobs")
    if spec is None or spec.origin is None:
        raise NexmarkError("nexmark_jobs cannot be imported; run `make env`")
    source = Path(spec.origin).parent
    manifest: Manifest = scan(source)
    directory = target / manifest.id
    package = directory / "nexmark_jobs"
    if package.is_dir() and scan(package).id == manifest.id:
        return manifest.id, package
    temporary = target / f".{manifest.id}-{os.getpid()}"
    shutil.rmtree(temporary, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, temporary / "nexmark_jobs", ignore=ignored)
    shutil.rmtree(directory, ignore_errors=True)
    temporary.rename(directory)
    return manifest.id, package


def start_cluster() -> dict[str, Any]:
    """Start the candidate's master and workers and wait until all are ready.

    Returns what SparkSubmit is given to dump the events of the verification runs.
    """
    night = Night.current()
    for arm in night.arms:
        try:
            night.clusters[arm].reap(_lease(night), _is_active)  # an earlier try of this task
        except ClusterError as error:
            raise AirflowException(str(error)) from None
    deployments = Deployments.read(night)
    _start(night, CANDIDATE, deployments.candidate)
    note_hosts(night)
    return dump_submission(night, deployments.candidate)


def note_hosts(night: Night) -> None:
    """Note what the hosts are, for the evidence; a night goes on without."""
    try:
        found = {host: brief(facts) for host, facts in night.spark_cluster.describe().items()}
        (night.directory / paths.HOSTS).write_text(json.dumps(found, indent=1))
    except (ClusterError, OSError) as error:
        say(f"what the hosts are is not noted: {error}")


def heal(night: Night, query: str) -> None:
    """Make the clusters whole that `query` needs, each on the build that it is to run.

    One of which a part has died is started anew; so is the baseline's, where the query is
    compared with another build than the one before. What follows needs them whole.
    """
    deployments = Deployments.read(night)
    for arm in night.arms:
        if arm != CANDIDATE and query not in night.against:
            continue
        deployment, cluster = deployments.of(arm, query), night.clusters[arm]
        trouble = cluster.trouble_with(deployment.spark_release)
        if not trouble:
            continue
        if cluster.started:
            say(f"cluster {cluster.config.name}: {trouble}; starting it anew")
        try:
            cluster.stop()
        except ClusterError as error:
            raise AirflowException(str(error)) from None
        _start(night, arm, deployment)


def _start(night: Night, arm: str, deployment: Deployment) -> None:
    cluster = night.clusters[arm]
    try:
        cluster.start(deployment.spark_release, night.directory / "cluster" / arm, _lease(night))
    except ClusterError as error:
        raise AirflowException(str(error)) from None
    say(f"cluster {cluster.config.name} is up at {cluster.config.master_url}")


def _may_hold(night: Night, arm: str) -> bool:
    """Whether an earlier night can have left something of an arm; the candidate's any may."""
    return arm == CANDIDATE or arm in night.arms or night.clusters[arm].state.exists()


def stop_cluster() -> None:
    """End the cluster and trim the disk.

    Spark's scratch space goes, and what the same seed gives again: the events of the verification
    and the results that were right. A wrong result stays, as evidence.
    """
    night = Night.current()
    problems = []
    try:
        for arm in reversed(night.arms):
            cluster = night.clusters[arm]
            try:
                ended = cluster.stop(night.directory / "cluster" / arm)
                say(f"cluster {cluster.config.name} is down ({len(ended)} processes ended)")
            except ClusterError as error:
                problems.append(str(error))
    finally:
        _trim(night)
    if problems:
        raise AirflowException(" | ".join(problems))


def _trim(night: Night) -> None:
    shutil.rmtree(night.events_dir, ignore_errors=True)
    for query in night.queries:
        verification = Verification.read(night.query_dir(query))
        if verification is not None and verification.success:
            shutil.rmtree(night.verified_dir(query), ignore_errors=True)
    if night.data_dir != night.directory and night.data_dir.is_dir():
        shutil.copytree(night.data_dir, night.directory, dirs_exist_ok=True)
        shutil.rmtree(night.data_dir)
        for parent in night.data_dir.parents[:2]:  # runs/, and what is this cluster's
            with contextlib.suppress(OSError):
                parent.rmdir()


def _lease(night: Night) -> Lease:
    run = get_current_context()["dag_run"]
    in_this_process = getattr(run, "triggering_user_name", None) == _DAG_TEST_USER
    return Lease(night.dag_id, night.run_id, identify(os.getpid()) if in_this_process else None)


def _is_active(lease: Lease) -> bool:
    """Whether Airflow still runs the DAG run of `lease`; one it does not know has ended."""
    instance = get_current_context()["ti"]
    try:
        return instance.get_dagrun_state(lease.dag_id, lease.run_id) in _ACTIVE_STATES
    except AirflowRuntimeError as error:
        if (error.error.detail or {}).get("status_code") == _NOT_FOUND:
            return False
        raise


__all__ = ["deploy", "deploy_jobs", "heal", "reap", "start_cluster", "stop_cluster"]
