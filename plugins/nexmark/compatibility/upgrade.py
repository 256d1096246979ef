"""The check of a night: do running queries survive the change from baseline to candidate?

<run directory>/compatibility.json    the results, with the plans of both arms
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nexmark.compatibility.cases import SQL, Input, Side, case_of_job, cases_of
from nexmark.compatibility.check import check
from nexmark.compatibility.own_application import check_application, hide_secrets, why_left_out
from nexmark.compatibility.results import RED, Compatibility, UpgradeClass, as_json, carried, matrix
from nexmark.config import Job
from nexmark.engines import Build
from nexmark.errors import NexmarkError
from nexmark.model import Arm, Say, grouped
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.kinds.own import current
from nexmark.night.night_plan import Night
from nexmark.night.private_confs import profile_confs, split
from nexmark.night.run_directory import UpgradeOutcome
from nexmark.reason import reason_of
from nexmark_jobs.host.whole_files import write_whole
from nexmark_jobs.redaction import is_secret

_UNFINISHED = "the check did not end; clear the task compatibility"


@dataclass(frozen=True)
class Upgrade:
    """Queries that the candidate resumes from the checkpoints of one baseline build.

    `jobs` are the baseline's and the candidate's version of the one query, if that is a job of a
    person's own.
    """

    baseline: Deployment
    candidate: Deployment
    queries: tuple[str, ...]
    jobs: tuple[Job, Job] | None = None

    def check(self, night: Night, say: Say) -> list[Compatibility]:
        """Resume with the candidate what the baseline started, and the other way round.

        Raises:
            NexmarkError: Spark does not start, or the tables of a job have too few rows.
        """
        size = night.compatibility
        assert size is not None
        job, changed = self._jobs_now(night)
        first = self._side(night, self.baseline, {}, job)
        second = self._side(night, self.candidate, night.candidate_conf, changed)
        below = night.spark_cluster.scratch / "compatibility"
        if job is not None and job.application is not None:
            return [check_application(first, second, say, below=below)]
        if self.jobs is None:
            cases = cases_of(self.queries, (first.build, second.build))
        else:
            cases = [case_of_job(*self.jobs)]
        return check(
            first,
            second,
            cases,
            Input(size.events, size.tps),
            say,
            only_stateful=True,
            below=below,
        )

    def _jobs_now(self, night: Night) -> tuple[Job | None, Job | None]:
        """Return both versions of the job, an application with its secrets; None for queries."""
        if self.jobs is None:
            return None, None
        job, changed = self.jobs
        if job.application is None:
            return job, changed
        job, changed = (
            version.model_copy(update={"application": current(night, arm, version.name)})
            for arm, version in ((Arm.BASELINE, job), (Arm.CANDIDATE, changed))
        )
        for version in (job, changed):
            hide_secrets(version)
        return job, changed

    def _side(
        self, night: Night, deployment: Deployment, confs: Mapping[str, str], job: Job | None
    ) -> Side:
        """Return a build with its confs of this night; `confs` and `job` are of this side only.

        Only confs of Spark SQL matter to running queries, and no secret leaves the night. An
        application needs all confs, and its own secrets; the engine's secrets are left out.
        """
        application = job.application if job else None
        of_job = application.confs if application else job.confs if job else {}
        given, _ = split(
            {
                **profile_confs(night.conf_profile),
                "spark.sql.shuffle.partitions": str(night.cluster.shuffle_partitions),
                **night.engine.conf,
                **of_job,
                **confs,
            }
        )
        home = Path(deployment.spark_home)
        build = Build(deployment.build, deployment.spark_version, home, deployment.source)
        if application is not None:
            return Side(build, given, job)
        of_queries = {
            name: value
            for name, value in given.items()
            if name.startswith(SQL) and not is_secret(name, value)
        }
        return Side(build, of_queries, job)


def why_not(night: Night, deployments: Deployments) -> str:
    """Return why a night checks no upgrade, in one line; '' if it does."""
    if night.compatibility is None:
        return "neither the workload nor a person asks for it"
    if not night.against:
        return "there is no baseline build to go on from"
    if not list(upgrades(night, deployments)):
        left_out = _left_out(night)
        if left_out.keys() >= {*night.queries}:
            return "; ".join(f"{query}: {reason}" for query, reason in left_out.items())
        return "candidate and baseline are the same build"
    return ""


def upgrades(night: Night, deployments: Deployments) -> Iterator[Upgrade]:
    """Yield, for each baseline build that differs from the candidate, its queries as an upgrade.

    Each job of a person's own is an upgrade by itself, also on the same build if it was changed.
    """
    left_out = _left_out(night)
    compared = [query for query in night.queries if query in deployments.baselines]
    known = [query for query in compared if query not in left_out]
    programs = grouped(
        known,
        lambda query: (deployments.baselines[query].build, query if query in night.jobs else None),
    )
    for (build, name), queries in programs.items():
        changes = build != deployments.candidate.build or night.candidate_conf
        if changes or name in night.candidate_jobs:
            baseline = deployments.baselines[queries[0]]
            jobs = None
            if name is not None:
                jobs = night.jobs[name], night.candidate_jobs.get(name, night.jobs[name])
            yield Upgrade(baseline, deployments.candidate, tuple(queries), jobs)


def _left_out(night: Night) -> dict[str, str]:
    """Return why applications of the night cannot be checked, by their names."""
    return {
        query: reason
        for query in filter(night.is_application, night.queries)
        for arm in (Arm.CANDIDATE, Arm.BASELINE)  # the baseline's reason goes before
        if (job := night.job_of(arm, query)) and (reason := why_left_out(job))
    }


def check_upgrades(
    night: Night,
    deployments: Deployments,
    record: Callable[[Sequence[UpgradeOutcome]], None],
    say: Say,
) -> list[UpgradeOutcome]:
    """Check the queries of a night, build by build.

    The outcome of a check that does not end is not known, and so it is red.

    Args:
        night: The night.
        deployments: Its builds.
        record: Records outcomes; called before the check (none is known) and after it.
        say: Called with each line of progress.
    """
    for query, reason in _left_out(night).items():
        say(f"compatibility: {query} is not checked: {reason}")
    planned = list(upgrades(night, deployments))
    outcomes = {row.query: row for upgrade in planned for row in _not_known(upgrade, _UNFINISHED)}
    results: list[Compatibility] = []
    record([*outcomes.values()])
    for upgrade in planned:
        versions = f"{upgrade.baseline.spark_version} to {upgrade.candidate.spark_version}"
        say(f"compatibility: {', '.join(upgrade.queries)} from Spark {versions} and back")
        try:
            checked = upgrade.check(night, say)
            of_build = [_outcome(upgrade.baseline.build, each) for each in checked]
            results += checked
        except (NexmarkError, OSError) as error:  # Spark does not start, the disk is full
            of_build = _not_known(upgrade, reason_of(error))
        outcomes = {query: row for query, row in outcomes.items() if query not in upgrade.queries}
        outcomes |= {row.query: row for row in of_build}
    write_whole(night.files.compatibility, json.dumps(as_json(results), indent=1) + "\n")
    record([*outcomes.values()])
    if results:
        say(matrix(results))
    return [*outcomes.values()]


def _outcome(baseline: str, each: Compatibility) -> UpgradeOutcome:
    """Return the outcome of a comparison with the build whose id is `baseline`."""
    baseline_plan, candidate_plan = each.plans
    return UpgradeOutcome(
        query=each.case.query,
        baseline_build=baseline,
        outcome=str(each.class_),
        red=each.class_ in RED,
        reason=each.reason,
        plans=str(each.difference.change) if each.difference else "-",
        forward=str(each.forward or "-"),
        backward=str(each.backward or "-"),
        checkpoint=carried(each),
        baseline_plan=baseline_plan.text if baseline_plan else None,
        candidate_plan=candidate_plan.text if candidate_plan else None,
    )


def _not_known(upgrade: Upgrade, reason: str) -> list[UpgradeOutcome]:
    """Return the outcomes of queries that were not checked."""
    return [
        UpgradeOutcome(
            query=query,
            baseline_build=upgrade.baseline.build,
            outcome=str(UpgradeClass.UNKNOWN),
            red=True,
            reason=reason,
        )
        for query in upgrade.queries
    ]
