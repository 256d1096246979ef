"""What a night will do, and what on this machine would keep it from doing it.

Free of Airflow, so that `make run` can say what is wrong before Airflow is even imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from nexmark.config import (
    KNOWN_QUERIES,
    BuildSource,
    Config,
    EmbeddedCluster,
    Gate,
    SparkConf,
    Workload,
    paths,
    suggest,
)
from nexmark.engines import (
    BuildError,
    disk_problem,
    java_majors,
    java_problem,
    parse_source,
    snapshot,
)
from nexmark.errors import NexmarkError
from nexmark.tasks.night import Night

_T = TypeVar("_T")

#: The fewest pairs that a verdict is given on (`nexmark.verdict.rules`).
MIN_PAIRS = 3
#: State, event logs, outputs and events of one night on this machine, bytes.
RUN_BYTES = 2 * 10**9


def make_night(
    config: Config, engine: str, dag_id: str, run_id: str, params: Mapping[str, Any]
) -> Night:
    """The plan of the DAG run; NexmarkError for a param that names nothing.

    A build on demand (param `build`) is the candidate; what else is not given is the engine's. The
    gate is not tested on the way: it is in the nights, and it would double what a query costs.
    """
    engine_config = pick("engine", engine, config.engines)
    name = params.get("workload") or engine_config.workload
    workload: Workload = pick("workload", name, config.workloads)
    gate = _gate(config.gate, workload.name, params)
    mode = gate.mode
    repetitions = params.get("repetitions") or (gate.pairs if mode == "paired" else 0)
    if mode != "bounds" and 0 < repetitions < MIN_PAIRS:
        raise NexmarkError(
            f"repetitions: {repetitions} are too few for a verdict in mode {mode}; "
            f"give at least {MIN_PAIRS}, or mode bounds"
        )
    if repetitions:
        workload = workload.model_copy(update={"repetitions": repetitions})
    if scale := params.get("verify_scale"):
        events = round(workload.verify.events * scale)
        larger = workload.verify.model_copy(update={"events": events})
        workload = workload.model_copy(update={"verify": larger})
    queries = select_queries(params.get("queries"), workload)
    candidate, against = _candidate(params), params.get("against")
    cluster = params.get("cluster") or config.cluster_of(engine_config)
    return Night(
        dag_id=dag_id,
        run_id=run_id,
        engine=engine_config,
        workload=workload,
        cluster=pick("cluster", cluster, config.clusters),
        gate=gate,
        mode=mode,
        queries=queries,
        candidate=parse_source(candidate) if candidate else engine_config.build,
        candidate_conf=spark_confs(params.get("candidate_conf")),
        against=dict.fromkeys(queries, parse_source(against)) if against else {},
    )


def spark_confs(value: Mapping[str, Any] | None) -> dict[str, str]:
    """The Spark confs of the candidate alone; NexmarkError for one that cannot be set."""
    try:
        return TypeAdapter(SparkConf).validate_python(dict(value or {}))  # type: ignore[return-value]
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise NexmarkError(f"candidate_conf: {reason}") from None


def with_snapshot(night: Night, params: Mapping[str, Any], moment: datetime | None) -> Night:
    """`night` with the build of its date as candidate, where its engine has one for each.

    A candidate that is given goes before it. MissingBuild when there is none of this date.
    """
    snapshots = night.engine.snapshots
    if snapshots is None or moment is None or _candidate(params):
        return night
    return night.model_copy(update={"candidate": snapshot(snapshots, moment.date())})


def _candidate(params: Mapping[str, Any]) -> str:
    return params.get("build") or params.get("candidate") or ""


def _gate(gate: Gate, workload: str, params: Mapping[str, Any]) -> Gate:
    """The gate of a night; a build to compare with is for pairs."""
    against = params.get("against")
    mode = params.get("mode") or ("paired" if against else gate.mode_of(workload))
    if against and mode != "paired":
        raise NexmarkError(
            f"against: nights in mode {mode} measure no second build; leave out mode, or against"
        )
    on_demand = {"self_test": 0.0} if "build" in params else {}
    return gate.model_copy(update={"mode": mode, **on_demand})


def select_queries(value: str | Sequence[str] | None, workload: Workload) -> tuple[str, ...]:
    """The queries to run, in the order of `KNOWN_QUERIES`.

    `value` is a list or names separated by commas; empty stands for the workload's own. Raises
    NexmarkError for an unknown name.
    """
    names = query_names(value) or workload.queries
    for name in names:
        if name not in KNOWN_QUERIES:
            raise NexmarkError(f"queries: unknown query {name!r}; {suggest(name, KNOWN_QUERIES)}")
    return tuple(name for name in KNOWN_QUERIES if name in names)


def query_names(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """The names in a list, or in a text that separates them by commas."""
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    return tuple(value or ())


def pick(section: str, name: str, known: Mapping[str, _T]) -> _T:
    """The entry `name` of `known`; NexmarkError with the nearest name if there is none."""
    if name not in known:
        raise NexmarkError(f"{section}: unknown {section} {name!r}; {suggest(name, known)}")
    return known[name]


def find_problems(night: Night) -> Iterator[str]:
    """Each thing that is wrong with this machine or with what is asked, in one line.

    Hosts that are reached by SSH are looked at in preflight, which has the connections.
    """
    builds = dict.fromkeys([night.candidate, *night.against.values()])
    yield from filter(None, map(_build_problem, builds))
    yield from filter(None, [_generator_problem(night.workload)])
    yield from filter(None, dict.fromkeys(java_problem(_major(build)) for build in builds))
    yield from filter(None, [disk_problem(paths.home(), RUN_BYTES)])
    if isinstance(night.cluster, EmbeddedCluster):
        for arm in night.arms:
            yield from night.clusters[arm].problems()


def _build_problem(source: BuildSource) -> str:
    """What can be said against a build without fetching it, or ''."""
    location = source.directory or source.tarball or ""
    if not location or "://" in location or Path(location).expanduser().exists():
        return ""
    return str(BuildError(f"build {source}: {location} does not exist; correct the path"))


def java_of(night: Night) -> tuple[int, ...]:
    """The versions of the JDK that every build of the night supports."""
    builds = [night.candidate, *night.against.values()]
    first, *others = [java_majors(_major(build)) for build in builds]
    return tuple(major for major in first if all(major in other for other in others))


def _major(source: BuildSource) -> str:
    return source.pypi or "4"


def _generator_problem(workload: Workload) -> str:
    if not workload.generator:
        return ""
    from nexmark_jobs.generator.config import GeneratorConfig

    try:
        GeneratorConfig(**{"tps": workload.tps, "seed": workload.seed, **workload.generator})
    except (TypeError, ValueError) as error:
        return (
            f"workload {workload.name}: generator: {error}; "
            "correct it in include/conf/workloads.yaml"
        )
    return ""


__all__ = [
    "find_problems",
    "java_of",
    "make_night",
    "pick",
    "query_names",
    "select_queries",
    "with_snapshot",
]
