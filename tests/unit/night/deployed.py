"""A build that is deployed for a night in the tests, as far as submissions look at it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nexmark.night.deployments import Deployment, Deployments


def deployed(directory: Path, queries: Iterable[str]) -> Deployments:
    """Return one build in `directory` as the candidate, and as the baseline of some queries."""
    (directory / "spark" / "jars").mkdir(parents=True)
    deployment = Deployment(
        build="0123456789abcdef",
        spark_version="4.3.0",
        spark_home=str(directory / "spark"),
        source="pypi:4.3.0",
        jobs="fedc",
        jobs_home="/jobs",
        program="0123",
    )
    return Deployments(candidate=deployment, baselines=dict.fromkeys(queries, deployment))
