"""The clusters of a night: claimed, given their builds, started, healed and stopped."""

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nexmark.cluster import ClusterError, Lease
from nexmark.config import BuildSource, load_retention, paths
from nexmark.engines import Build, job_python, job_python_problem, usable
from nexmark.errors import FinalError, NexmarkError
from nexmark.inputs.layout import lay_out
from nexmark.model import Arm
from nexmark.night.deployments import Deployment, Deployments, deploy_jobs
from nexmark.night.kinds import kind_of
from nexmark.night.kinds.own import WRITTEN
from nexmark.night.night_kafka import connected_kafka
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say
from nexmark.night.run_directory import RunDirectory, failure_kept
from nexmark.night.timed_program import timed_program
from nexmark.night.verification import Verification
from nexmark_jobs.host.facts import brief


@dataclass(frozen=True)
class NightClusters:
    """What a night does with the clusters of its arms; ClusterError where one cannot be used.

    Attributes:
        night: the night.
        lease: its claim on the clusters.
        is_active: tells whether the night of another lease still runs.
    """

    night: Night
    lease: Lease
    is_active: Callable[[Lease], bool]

    def reap(self) -> None:
        """Claim the clusters, and end what an earlier, killed night left on them."""
        night = self.night
        for arm, cluster in night.clusters.items():
            # An earlier night may have left processes on the baseline's cluster as well.
            if arm not in night.arms and not cluster.state.exists():
                continue
            ended = cluster.reap(self.lease, self.is_active)
            if arm not in night.arms:
                cluster.release()
            for line in ended:
                say(f"reap: ended what an earlier night left: {line}")

    def deploy(self) -> Deployments:
        """Bring the builds and the jobs to where they run from, and write the Deployments.

        BuildError for a build that cannot be fetched now, FinalError for one that cannot be used.
        """
        night, cluster = self.night, self.night.spark_cluster
        deployments = _fetched(night)
        candidate = deployments.candidate
        releases = {
            each.spark_release.name: each.spark_release
            for each in (candidate, *deployments.baselines.values())
        }
        cluster.claim(self.lease, self.is_active)  # to fetch the builds took a while
        jobs = {
            each.jobs_release.name: each.jobs_release
            for each in (candidate, *deployments.baselines.values())
        }
        sent = [*releases.values(), *jobs.values()]
        cluster.deploy(sent, load_retention().host_builds, say)
        for query, build in night.accepted.items():
            if (now := deployments.baselines[query].build) != build:
                raise FinalError(
                    f"{query}: {night.against[query]} is build {now} now, and build {build} was "
                    "accepted; accept a run of a build that can be had"
                )
        deployments.write(night)
        say(f"deployed Spark {candidate.name}, jobs {candidate.jobs}")
        for baseline in {each.source: each for each in deployments.baselines.values()}.values():
            same = ", the same as the candidate" * (baseline.build == candidate.build)
            say(f"deployed the baseline, Spark {baseline.name}{same}")
        return deployments

    def start(self) -> None:
        """Start the candidate's cluster; lay out the tables of jobs, fill the topics of Kafka.

        The cluster of the baseline starts with the first query that has a baseline (`heal`). What
        the night writes into the shared directory is written after the reap, which empties it.
        """
        night, deployments = self.night, Deployments.read(self.night)
        for arm in night.arms:
            night.clusters[arm].reap(self.lease, self.is_active)  # an earlier try of this task
        for query in filter(night.reads_own_tables, night.queries):
            lay_out_tables(night, query)
        self._start(Arm.CANDIDATE, deployments.candidate)
        note_hosts(night)
        kind_of(night.workload).begin(night, deployments, connected_kafka(night))

    def heal(self, query: str) -> None:
        """Make the clusters whole that `query` needs, each on the build that it is to run.

        Restarts a cluster that lost a process, and the baseline's cluster where this query has
        another baseline build. The night keeps its lease meanwhile: no other night gets in between.
        """
        night, deployments = self.night, Deployments.read(self.night)
        for arm in night.arms:
            if arm != Arm.CANDIDATE and query not in night.against:
                continue
            deployment, cluster = deployments.of(arm, query), night.clusters[arm]
            cluster.claim(self.lease, self.is_active)
            if not (trouble := cluster.trouble_with(deployment.spark_release)):
                continue
            if cluster.started:
                say(f"cluster {cluster.config.name}: {trouble}; restarting it")
            cluster.clear()
            self._start(arm, deployment)

    def stop(self) -> None:
        """End the clusters and trim the disk; NexmarkError with all that has failed meanwhile."""
        night, problems = self.night, []
        try:
            if kafka := connected_kafka(night):
                kind_of(night.workload).end(night, kafka)
        except NexmarkError as error:
            problems.append(str(error))
        try:
            for arm in reversed(night.arms):
                cluster = night.clusters[arm]
                try:
                    # A night that has begun since may have the cluster.
                    cluster.claim(self.lease, self.is_active)
                    ended = cluster.stop(night.files.cluster(arm))
                    say(f"cluster {cluster.config.name} is down ({len(ended)} processes ended)")
                except ClusterError as error:
                    problems.append(str(error))
        finally:
            trim(night)
        if problems:
            raise NexmarkError(" | ".join(problems))

    def _start(self, arm: str, deployment: Deployment) -> None:
        cluster = self.night.clusters[arm]
        cluster.start(deployment.spark_release, self.night.files.cluster(arm), self.lease)
        say(f"cluster {cluster.config.name} is up at {cluster.config.master_url}")


def _fetched(night: Night) -> Deployments:
    """Return the builds and the jobs of a night, once they are all on this machine."""
    place = paths.home() / "jobs"
    of_baseline = deploy_jobs(place, night.jobs.values())
    of_candidate = deploy_jobs(place, {**night.jobs, **night.candidate_jobs}.values())
    programs = {home: timed_program(home) for _, home in {of_baseline, of_candidate}}
    builds = {
        source: checked_build(source)
        for source in dict.fromkeys([night.candidate, *night.against.values()])
    }
    versions = [build.version for build in builds.values()]
    if problem := job_python_problem(*versions):  # of a tarball, whose version was not known yet
        raise FinalError(problem)
    python = job_python(*versions)

    def deployment_of(source: BuildSource, deployed: tuple[str, Path]) -> Deployment:
        build, (jobs, jobs_home) = builds[source], deployed
        try:
            kind_of(night.workload).check_build(night, build.version)
        except NexmarkError as error:
            raise FinalError(str(error)) from None
        return Deployment(
            build=build.id,
            spark_version=build.version,
            spark_home=str(build.spark_home),
            source=build.source,
            jobs=jobs,
            jobs_home=str(jobs_home),
            program=programs[jobs_home],
            python=python,
            revision=build.revision,
        )

    return Deployments(
        candidate=deployment_of(night.candidate, of_candidate),
        baselines={
            query: deployment_of(source, of_baseline) for query, source in night.against.items()
        },
    )


def checked_build(source: BuildSource) -> Build:
    """Return a build whose every byte has been read; BuildError where there is none."""
    return usable(source, paths.builds_dir(), full_check=True, say=say)


def lay_out_tables(night: Night, query: str) -> None:
    """Lay the tables of a job out; if that fails, its query fails before it is run, alone."""
    kept = night.files.group(query).layout
    kept.forget_failure()
    try:
        with failure_kept(kept):
            lay_out(night.jobs[query], night.tables_dir(query), say)
    except NexmarkError as error:
        say(f"{query}: cannot be run, the others go on: {error}")


def check_layout(night: Night, query: str) -> None:
    """Raise FinalError for a job whose tables could not be laid out."""
    kept = night.files.group(query).layout
    if kept.has_failed:
        raise FinalError(kept.failure())


def note_hosts(night: Night) -> None:
    """Note the facts of the hosts for the evidence; if that fails, the night goes on."""
    try:
        facts = {host: brief(each) for host, each in night.spark_cluster.describe().items()}
        night.files.write_hosts(facts)
    except (ClusterError, OSError) as error:
        say(f"the facts of the hosts are not recorded: {error}")


def trim(night: Night) -> None:
    """Remove the files that can be had again, and bring the rest to the run directory.

    These are the events of the verification, what is laid out of the files of a person's own, what
    applications have written, and the right results. A wrong result stays, as evidence.
    """
    shutil.rmtree(night.events_dir, ignore_errors=True)
    for query in filter(night.reads_own_tables, night.queries):
        shutil.rmtree(night.tables_dir(query), ignore_errors=True)
    for query in filter(night.is_application, night.queries):
        for path in RunDirectory(night.data_dir).group(query).path.glob(f"*/{WRITTEN}"):
            shutil.rmtree(path, ignore_errors=True)  # of a repetition that has failed
    for path in kind_of(night.workload).leftovers(night):
        shutil.rmtree(path, ignore_errors=True)
    for query in night.queries:
        verification = Verification.read(night.query_dir(query))
        if verification is not None and verification.success:
            shutil.rmtree(night.verified_dir(query), ignore_errors=True)
            shutil.rmtree(night.boundary_dir(query), ignore_errors=True)
            if query in night.jobs:
                shutil.rmtree(night.again_dir(query), ignore_errors=True)
                shutil.rmtree(night.baseline_dir(query), ignore_errors=True)
    if night.data_dir != night.directory and night.data_dir.is_dir():
        shutil.copytree(night.data_dir, night.directory, dirs_exist_ok=True)
        shutil.rmtree(night.data_dir)
        for parent in night.data_dir.parents[:2]:  # runs/, and what is this cluster's
            with contextlib.suppress(OSError):
                parent.rmdir()
