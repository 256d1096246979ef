"""What a night will do, and what on this machine would keep it from doing it.

Free of Airflow, so that `make run` can say what is wrong before Airflow is even imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from nexmark.config import (
    KNOWN_QUERIES,
    BuildSource,
    Config,
    EmbeddedCluster,
    Workload,
    paths,
    suggest,
)
from nexmark.engines import BuildError, disk_problem, java_problem, parse_source
from nexmark.errors import NexmarkError
from nexmark.tasks.night import Night

_T = TypeVar("_T")

#: State, event logs, outputs and events of one night on this machine, bytes.
RUN_BYTES = 2 * 10**9


def make_night(
    config: Config, engine: str, dag_id: str, run_id: str, params: Mapping[str, Any]
) -> Night:
    """The plan of the DAG run; NexmarkError for a param that names nothing."""
    workload: Workload = pick("workload", params["workload"], config.workloads)
    if params.get("repetitions"):
        workload = workload.model_copy(update={"repetitions": params["repetitions"]})
    queries = select_queries(params.get("queries"), workload)
    engine_config = pick("engine", engine, config.engines)
    candidate = params.get("candidate")
    return Night(
        dag_id=dag_id,
        run_id=run_id,
        engine=engine_config,
        workload=workload,
        cluster=pick("cluster", params["cluster"], config.clusters),
        gate=config.gate,
        queries=queries,
        candidate=parse_source(candidate) if candidate else engine_config.build,
    )


def select_queries(value: str | Sequence[str] | None, workload: Workload) -> tuple[str, ...]:
    """The queries to run, in the order of `KNOWN_QUERIES`.

    `value` is a list or names separated by commas; empty stands for the workload's own. Raises
    NexmarkError for an unknown name.
    """
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    names = tuple(value or workload.queries)
    for name in names:
        if name not in KNOWN_QUERIES:
            raise NexmarkError(f"queries: unknown query {name!r}; {suggest(name, KNOWN_QUERIES)}")
    return tuple(name for name in KNOWN_QUERIES if name in names)


def pick(section: str, name: str, known: Mapping[str, _T]) -> _T:
    """The entry `name` of `known`; NexmarkError with the nearest name if there is none."""
    if name not in known:
        raise NexmarkError(f"{section}: unknown {section} {name!r}; {suggest(name, known)}")
    return known[name]


def find_problems(night: Night) -> Iterator[str]:
    """Each thing that is wrong with this machine or with what is asked, in one line.

    Hosts that are reached by SSH are looked at in preflight, which has the connections.
    """
    yield from filter(None, [_build_problem(night.candidate), _generator_problem(night.workload)])
    yield from filter(None, [java_problem(_major(night.candidate))])
    yield from filter(None, [disk_problem(paths.home(), RUN_BYTES)])
    if isinstance(night.cluster, EmbeddedCluster):
        yield from night.spark_cluster.problems()


def _build_problem(source: BuildSource) -> str:
    """What can be said against a build without fetching it, or ''."""
    location = source.directory or source.tarball or ""
    if not location or "://" in location or Path(location).expanduser().exists():
        return ""
    return str(BuildError(f"build {source}: {location} does not exist; correct the path"))


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


__all__ = ["find_problems", "make_night", "pick", "select_queries"]
