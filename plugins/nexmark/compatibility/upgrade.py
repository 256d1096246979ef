"""The check of a night: do running queries survive the change from baseline to candidate?

<run directory>/compatibility.json    the results, with the plans of both arms
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nexmark.compatibility.cases import Input, Side, cases_of
from nexmark.compatibility.check import check
from nexmark.compatibility.results import RED, Compatibility, UpgradeClass, as_json, carried, matrix
from nexmark.engines import Build
from nexmark.errors import NexmarkError
from nexmark.model import Say, grouped
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.night_plan import Night
from nexmark.night.private_confs import profile_confs, split
from nexmark.night.run_directory import UpgradeOutcome
from nexmark.reason import reason_of
from nexmark_jobs.host.whole_files import write_whole
from nexmark_jobs.redaction import is_secret

_OF_QUERIES = "spark.sql."
_UNFINISHED = "the check did not end; clear the task compatibility"


@dataclass(frozen=True)
class Upgrade:
    """Queries that the candidate resumes from the checkpoints of one baseline build."""

    baseline: Deployment
    candidate: Deployment
    queries: tuple[str, ...]

    def check(self, night: Night, say: Say) -> list[Compatibility]:
        """Resume with the candidate what the baseline started, and the other way round.

        Raises ApplicationError if Spark does not start.
        """
        size = night.compatibility
        assert size is not None
        first = self._side(night, self.baseline, {})
        second = self._side(night, self.candidate, night.candidate_conf)
        return check(
            first,
            second,
            cases_of(self.queries, (first.build, second.build)),
            Input(size.events, size.tps),
            say,
            only_stateful=True,
            below=night.spark_cluster.scratch / "compatibility",
        )

    def _side(self, night: Night, deployment: Deployment, confs: Mapping[str, str]) -> Side:
        """Return a build with its confs of this night; `confs` are of this side only.

        Only confs of Spark SQL matter to running queries, and no secret leaves the night.
        """
        given, _ = split(
            {
                **profile_confs(night.conf_profile),
                "spark.sql.shuffle.partitions": str(night.cluster.shuffle_partitions),
                **night.engine.conf,
                **confs,
            }
        )
        of_queries = {
            name: value
            for name, value in given.items()
            if name.startswith(_OF_QUERIES) and not is_secret(name, value)
        }
        home = Path(deployment.spark_home)
        build = Build(deployment.build, deployment.spark_version, home, deployment.source)
        return Side(build, of_queries)


def why_not(night: Night, deployments: Deployments) -> str:
    """Return why a night checks no upgrade, in one line; '' if it does."""
    if night.compatibility is None:
        return "neither the workload nor a person asks for it"
    if not night.against:
        return "there is no baseline build to go on from"
    if not list(upgrades(night, deployments)):
        if not set(night.queries) - set(night.jobs):
            return "jobs of your own are not checked"
        return "candidate and baseline are the same build"
    return ""


def upgrades(night: Night, deployments: Deployments) -> Iterator[Upgrade]:
    """Yield, for each baseline build that differs from the candidate, its queries as an upgrade.

    Jobs of a person's own are not checked.
    """
    known = [query for query in night.queries if query not in night.jobs]
    compared = [query for query in known if query in deployments.baselines]
    builds = grouped(compared, lambda query: deployments.baselines[query].build)
    for build, queries in builds.items():
        if build != deployments.candidate.build or night.candidate_conf:
            baseline = deployments.baselines[queries[0]]
            yield Upgrade(baseline, deployments.candidate, tuple(queries))


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
