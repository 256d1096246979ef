"""The verb `rollout`: a conf or a build given to stages of queries, each judged before the next."""

from __future__ import annotations

from collections.abc import Sequence
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
from nexmark.night.params import help_of
from nexmark.terminal import INTERRUPTED, say

if TYPE_CHECKING:
    from nexmark.rollout.state import Rollout
    from nexmark.store import Store


def rollout(
    conf: Annotated[list[str] | None, confs_option("Of the new arm.")] = None,
    build: Annotated[str | None, text_option(f"Of the new arm, {BUILD}; else the old one.")] = None,
    against: Annotated[str | None, text_option("Build of the old arm; else the engine's.")] = None,
    stages: Annotated[str | None, text_option(help_of("stages"))] = None,
    engine: Engine = None,
    workload: EngineWorkload = None,
    cluster: EngineCluster = None,
    repetitions: Repetitions = None,
    name: Annotated[str | None, text_option("To resume it by (default: the time).")] = None,
    resume: Annotated[str | None, text_option(help_of("resume"))] = None,
    accept: Annotated[str | None, text_option(help_of("accept"))] = None,
    by: By = None,
) -> int:
    """Give a conf or a build to queries stage by stage; 0 if all stages have it.

    1 if a stage is red (then it stops, and says whether the way back is right) or cannot be run;
    2 for bad arguments.
    """
    from nexmark.config import load
    from nexmark.night.params import RolloutParams
    from nexmark.rollout.rolling import resumed, table, write_page
    from nexmark.rollout.state import rollout_of

    given = {
        **{"candidate_conf": confs_of(conf), "build": build, "against": against, "stages": stages},
        **{"engine": engine, "workload": workload, "cluster": cluster, "name": name},
        **{"repetitions": repetitions, "resume": resume, "accept": accept},
    }
    try:
        found = rollout_of(RolloutParams.of(given), load())
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
