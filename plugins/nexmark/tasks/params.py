"""The params of the DAGs and their schema."""

from __future__ import annotations

from airflow.sdk import Param

from nexmark.config import KNOWN_QUERIES, Config, Engine

_NAMES = "|".join(KNOWN_QUERIES)


def nightly_params(engine: Engine, config: Config) -> dict[str, Param]:
    """The params of an engine's DAG, with JSON schema, so that Airflow refuses a bad value."""
    cluster = engine.cluster or next(iter(config.clusters))
    return {
        "queries": Param(
            None,
            type=["null", "string", "array"],
            title="Queries",
            description="A list, or names separated by commas; empty: what the workload says.",
            items={"type": "string", "enum": list(KNOWN_QUERIES)},
            uniqueItems=True,
            pattern=rf"^\s*(({_NAMES})\s*(,\s*({_NAMES})\s*)*)?$",
            examples=list(KNOWN_QUERIES),
        ),
        "workload": Param(
            engine.workload,
            type="string",
            enum=list(config.workloads),
            title="Workload",
            description="What is run: include/conf/workloads.yaml.",
        ),
        "repetitions": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            maximum=100,
            title="Repetitions",
            description="Timed repetitions of each query; empty: what the workload says.",
        ),
        "candidate": Param(
            None,
            type=["null", "string"],
            maxLength=4096,
            title="Candidate build",
            description=(
                "pypi:4.3.0, tarball:PATH-OR-URL#sha512=HEX or directory:PATH; "
                "empty: the engine's build in include/conf/engines.yaml."
            ),
        ),
        "cluster": Param(
            cluster,
            type="string",
            enum=list(config.clusters),
            title="Cluster",
            description="Where Spark runs: include/conf/clusters.yaml.",
        ),
    }


def accept_params() -> dict[str, Param]:
    """The params of `nexmark_accept`; run and reason have no default, they must be given."""
    return {
        "run": Param(
            type="string",
            minLength=1,
            maxLength=500,
            title="Run",
            description="The run id of the night to accept, or a part of it that is unique.",
        ),
        "reason": Param(
            type="string",
            minLength=1,
            maxLength=2000,
            title="Reason",
            description="Why it is accepted, for those who ask later.",
        ),
        "by": Param(
            "",
            type="string",
            maxLength=200,
            title="By",
            description="Who accepts it; empty: who triggers the run.",
        ),
    }


__all__ = ["accept_params", "nightly_params"]
