"""Which build brought a change: `nexmark bisect`.

Measures builds against a good one, each by a night of the DAG `nexmark_build`, until one is the
first bad one with 95 %. Started again with the same arguments it goes on where it was.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nexmark.airflow_site.build_runs import running_airflow
from nexmark.bisect.measured_builds import MeasuredBuilds
from nexmark.bisect.search import Search, answer, read_builds, table
from nexmark.cli.night_runner import engine_of, run_night
from nexmark.config import BUILD_DAG_ID, load
from nexmark.errors import NexmarkError
from nexmark.terminal import say

if TYPE_CHECKING:
    from nexmark.verdict.bisection import Bisection


def run(
    ends: tuple[str, str, str],
    query: str,
    *,
    engine: str | None,
    workload: str | None,
    cluster: str | None,
    repetitions: int | None,
    most: int,
    airflow: str | None,
) -> int:
    """Search among the builds ``ends``: good, bad, those between.

    Returns:
        0 if the build is found, 1 if not.
    """
    builds = read_builds(*ends)
    config = load()
    chosen = engine_of(config, engine)
    params = {
        "engine": chosen.name,
        "queries": query,
        "workload": workload or chosen.workload,
        "cluster": cluster or config.cluster_of(chosen),
        "against": builds[0],
        "mode": "paired",
        "repetitions": repetitions or config.gate.pairs,
    }
    elsewhere = running_airflow(airflow) if airflow else None
    run_it = elsewhere.night if elsewhere else partial(run_night, config, BUILD_DAG_ID, chosen.name)
    nights = MeasuredBuilds(config, chosen.name, params, run_it)
    if not query.strip() or len(nights.plan(builds[0]).queries) != 1:
        raise NexmarkError(f"query: {query!r} is not one query; give --query q5")
    if elsewhere is not None:
        elsewhere.check()
    for build in (builds[0], builds[-1]):
        nights.fetch(build)
    search = Search(builds, nights.known(builds), config.gate.noise_floor)
    if search.nights:
        say(f"{len(search.nights)} nights of an earlier search are used")
    try:
        state = search.run(nights.measure, most, _show, say)
    except KeyboardInterrupt:
        say("interrupted: the same command goes on from here")
        raise
    say(answer(query, search, state))
    return 0 if state.found else 1


def _show(search: Search, state: Bisection) -> None:
    say(table(search, state))
