"""The params of the DAGs and their schema."""

from __future__ import annotations

from airflow.sdk import Param

from nexmark.config import KNOWN_QUERIES, Config, Engine

_NAMES = "|".join(KNOWN_QUERIES)
_BUILD = "pypi:4.3.0, tarball:PATH-OR-URL#sha512=HEX or directory:PATH"

SIGNOFF_DAYS = 7
SIGNOFF_SCALE = 5


def nightly_params(engine: Engine, config: Config) -> dict[str, Param]:
    """The params of an engine's DAG, with JSON schema, so that Airflow refuses a bad value."""
    return {
        **_common(),
        "workload": _workload(engine.workload, config),
        "candidate": _optional_build(
            "Candidate build",
            f"{_BUILD}; empty: the engine's build, or that of the date, "
            "in include/conf/engines.yaml.",
        ),
        "cluster": _cluster(config.cluster_of(engine), config),
    }


def on_demand_params(config: Config) -> dict[str, Param]:
    """The params of `nexmark_build`; the build has no default, it must be given."""
    return {
        "build": _build(f"{_BUILD}."),
        **_common(),
        "engine": _engine(
            config, "Whose confs, workload, cluster and accepted builds are used: {}."
        ),
        "workload": _of_engine("Workload", list(config.workloads)),
        "cluster": _of_engine("Cluster", list(config.clusters)),
    }


def signoff_params(config: Config, more_pairs: int) -> dict[str, Param]:
    """The params of `nexmark_signoff`; the build has no default, it must be given.

    `more_pairs`: so many times the pairs of a night, where none are given.
    """
    workloads, clusters = list(config.workloads), list(config.clusters)
    return {
        "engine": _engine(config, "The version line, with its confs: {}."),
        "build": _build(f"What is to be signed off: {_BUILD}."),
        "against": _optional_build(
            "Against",
            "The build to compare with, the last release say; empty: the build that was "
            "accepted last for each query.",
        ),
        "workload": _workload("nightly" if "nightly" in workloads else workloads[0], config),
        "cluster": _cluster(clusters[0], config),
        "mode": _one_of(
            ["paired", "bounds"],
            "paired",
            "Mode",
            "paired: both builds are measured in this run; bounds: against the accepted run, "
            "to try things.",
        ),
        "pairs": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            maximum=100,
            title="Pairs",
            description=f"Pairs of each query; empty: {more_pairs} times those of a night.",
        ),
        "verify_scale": Param(
            SIGNOFF_SCALE,
            type="number",
            exclusiveMinimum=0,
            maximum=1000,
            title="Scale of the verification",
            description="Results are proven right on so many times the workload's verify events.",
        ),
        "timeout_days": Param(
            SIGNOFF_DAYS,
            type="number",
            exclusiveMinimum=0,
            maximum=365,
            title="Days to decide",
            description="After them the run fails: nobody decided.",
        ),
    }


def _build(description: str) -> Param:
    return Param(type="string", minLength=1, maxLength=4096, title="Build", description=description)


def _optional_build(title: str, description: str) -> Param:
    return Param(
        None, type=["null", "string"], maxLength=4096, title=title, description=description
    )


def _engine(config: Config, description: str) -> Param:
    text = description.format("include/conf/engines.yaml")
    return _one_of(list(config.engines), config.newest.name, "Engine", text)


def _workload(default: str, config: Config) -> Param:
    text = "What is run: include/conf/workloads.yaml."
    return _one_of(list(config.workloads), default, "Workload", text)


def _cluster(default: str, config: Config) -> Param:
    text = "Where Spark runs: include/conf/clusters.yaml."
    return _one_of(list(config.clusters), default, "Cluster", text)


def _one_of(names: list[str], default: str, title: str, description: str) -> Param:
    return Param(default, type="string", enum=names, title=title, description=description)


def _of_engine(title: str, names: list[str]) -> Param:
    return Param(
        None,
        type=["null", "string"],
        enum=[None, *names],
        title=title,
        description=f"include/conf/{title.lower()}s.yaml; empty: the engine's own.",
    )


def _common() -> dict[str, Param]:
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
        "repetitions": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            maximum=100,
            title="Repetitions",
            description=(
                "Timed repetitions, or pairs, of each query; empty: what the workload says, or "
                "in mode paired the gate."
            ),
        ),
        "candidate_conf": Param(
            None,
            type=["null", "object"],
            additionalProperties={"type": ["string", "number", "boolean"]},
            title="Candidate's Spark confs",
            description="Spark confs of the candidate alone, to test a setting instead of a build.",
        ),
        "mode": Param(
            None,
            type=["null", "string"],
            enum=[None, "bounds", "paired", "history"],
            title="Mode",
            description=(
                "bounds: medians against the accepted run; paired: against the accepted build, "
                "measured in the same night; history: against earlier nights; "
                "empty: what include/conf/gate.yaml says."
            ),
        ),
        "against": _optional_build(
            "Against",
            "The build that every query is compared with, in pairs, written as the "
            "candidate is; empty: the build that was accepted for each.",
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
        "queries": Param(
            None,
            type=["null", "string", "array"],
            items={"type": "string"},
            maxLength=2000,
            title="Queries",
            description="A list, or names separated by commas; empty: all of the run.",
            examples=list(KNOWN_QUERIES),
        ),
        "expires": Param(
            "",
            type=["null", "string"],
            maxLength=20,
            title="Expires",
            description=(
                "Until when it counts: a day (2027-01-31, UTC) or a number of days (30d); "
                "empty: without end."
            ),
        ),
        "link": Param(
            "",
            type=["null", "string"],
            maxLength=2000,
            title="Link",
            description="Where it was decided, an issue say.",
        ),
    }


__all__ = [
    "SIGNOFF_DAYS",
    "accept_params",
    "nightly_params",
    "on_demand_params",
    "signoff_params",
]
