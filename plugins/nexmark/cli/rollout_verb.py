"""The verb `rollout`: a conf or a build given to stages of queries, each judged before the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

from nexmark.cli.acceptance import user
from nexmark.cli.shared_options import (
    BUILD,
    By,
    Engine,
    EngineCluster,
    EngineWorkload,
    Repetitions,
    confs_of,
    confs_option,
    on_stderr,
    text_option,
)
from nexmark.errors import NexmarkError
from nexmark.terminal import INTERRUPTED, say

if TYPE_CHECKING:
    from nexmark.rollout.state import Rollout
    from nexmark.store import Store


def rollout(
    conf: Annotated[list[str] | None, confs_option("Of the new arm.")] = None,
    build: Annotated[str | None, text_option(f"Of the new arm, {BUILD}; else the old one.")] = None,
    against: Annotated[str | None, text_option("Build of the old arm; else the engine's.")] = None,
    stages: Annotated[str | None, text_option("Queries by stage: 'q0,q1; q2-q8; all'.")] = None,
    engine: Engine = None,
    workload: EngineWorkload = None,
    cluster: EngineCluster = None,
    repetitions: Repetitions = None,
    name: Annotated[str | None, text_option("To resume it by (default: the time).")] = None,
    resume: Annotated[str | None, text_option("Go on with the rollout of that name.")] = None,
    accept: Annotated[str | None, text_option("With --resume: why the red stage is fine.")] = None,
    by: By = None,
) -> int:
    """Give a conf or a build to queries stage by stage; 0 if all stages have it.

    1 if a stage is red (then it stops, and says whether the way back is right) or cannot be run;
    2 for bad arguments.
    """
    from nexmark.rollout.rolling import resumed, table, write_page
    from nexmark.rollout.state import Rollout

    try:
        if resume is None:
            if accept is not None:
                raise NexmarkError("--accept: needs --resume NAME; give both")
            found = _begun(
                (build, against, stages or ""),
                (engine, workload, cluster),
                conf=confs_of(conf),
                repetitions=repetitions,
                name=name,
            )
        else:
            if any(x is not None for x in (conf, build, against, stages, name, repetitions)):
                raise NexmarkError("--resume: a rollout keeps its first options; give no other")
            found = Rollout.read(resume)
    except NexmarkError as error:
        on_stderr(f"nexmark rollout: {error}")
        return 2
    if resume is not None:
        with _opened() as store:
            found = resumed(found, store, by or user(), accept)
    done = _roll(found)
    say(table(done))
    say(f"page: {write_page(done)}")
    return 0 if done.next is None else 1


def _begun(
    arms: tuple[str | None, str | None, str],
    place: tuple[str | None, str | None, str | None],
    *,
    conf: Mapping[str, str],
    repetitions: int | None,
    name: str | None,
) -> Rollout:
    """A new rollout, written; NexmarkError for what cannot be."""
    from nexmark.config import BUILD_DAG_ID, load, pick
    from nexmark.engines import parse_source
    from nexmark.night.planning import make_night, spark_confs
    from nexmark.rollout.state import Rollout, RolloutStage, file_of, parse_stages

    build, against, stages = arms
    if build is None and not conf:
        raise NexmarkError("nothing to roll out: give --conf KEY=VALUE or --build BUILD")
    if not stages:
        raise NexmarkError("--stages: none are given; write them like 'q0,q1; q2-q8; all'")
    config = load()
    chosen = config.engine(place[0])
    workload = pick("workload", place[1] or chosen.workload, config.workloads)
    old = str(parse_source(against)) if against else str(chosen.build)
    new = Rollout(
        name=name or f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}",
        engine=chosen.name,
        workload=workload.name,
        cluster=place[2] or config.cluster_of(chosen),
        build=str(parse_source(build)) if build else old,
        against=old,
        repetitions=repetitions or config.gate.pairs,
        conf=spark_confs(conf),
        stages=tuple(RolloutStage(queries=x) for x in parse_stages(stages, workload.queries)),
    )
    if file_of(new.name).exists():
        raise NexmarkError(f"--name: rollout {new.name} is there; --resume it, or name another")
    if new.build == new.against and not new.conf:
        raise NexmarkError(f"--build: {new.build} is the old arm as well; give another, or --conf")
    make_night(config, chosen.name, BUILD_DAG_ID, "", {**new.params, "queries": None})
    new.write()
    return new


def _roll(found: Rollout) -> Rollout:
    from nexmark.rollout.rolling import roll

    say(f"rollout {found.name}: {len(found.stages)} stages; to go on: --resume {found.name}")
    try:
        return roll(found, partial(_measure, found), _opened, say)
    except KeyboardInterrupt:
        say(f"interrupted: nexmark rollout --resume {found.name} goes on from here")
        raise


def _measure(found: Rollout, queries: Sequence[str]) -> str:
    """Run a night of some queries; returns the name of its run."""
    from nexmark.cli.night_runner import run_night
    from nexmark.config import BUILD_DAG_ID, load

    with _opened() as store:
        before = {row.id for row in store.nights()}
    params = {**found.params, "queries": ",".join(queries)}
    if run_night(load(), BUILD_DAG_ID, found.engine, params) == INTERRUPTED:
        raise KeyboardInterrupt
    with _opened() as store:
        for row in store.nights():
            if row.id not in before and (row.dag_id, row.queries) == (BUILD_DAG_ID, list(queries)):
                return str(row.id)
    raise NexmarkError(
        f"the night of {', '.join(queries)} ended before it was measured, see above; mend it, "
        f"then nexmark rollout --resume {found.name}"
    )


def _opened() -> Store:
    from nexmark.config import paths
    from nexmark.store import open_store

    return open_store(paths.database_url())
