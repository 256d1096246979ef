"""Plan a night's check of running queries: builds, confs and queries.

<run directory>/compatibility.json    the results, with the plans of both arms
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from nexmark.compatibility.cases import Input, Side, cases_of
from nexmark.compatibility.check import check
from nexmark.compatibility.results import Compatibility
from nexmark.engines import Build
from nexmark.model import Say, grouped
from nexmark.night.plan import Deployment, Deployments, Night
from nexmark.night.private_confs import profile_confs, split
from nexmark_jobs.redaction import is_secret

_OF_QUERIES = "spark.sql."


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
        """Return a build with its confs of this night; `confs` are those of this side only.

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
        return "candidate and baseline are the same build"
    return ""


def upgrades(night: Night, deployments: Deployments) -> Iterator[Upgrade]:
    """Yield, for each baseline build that differs from the candidate, its queries as an upgrade."""
    compared = [query for query in night.queries if query in deployments.baselines]
    builds = grouped(compared, lambda query: deployments.baselines[query].build)
    for build, queries in builds.items():
        if build != deployments.candidate.build or night.candidate_conf:
            baseline = deployments.baselines[queries[0]]
            yield Upgrade(baseline, deployments.candidate, tuple(queries))
