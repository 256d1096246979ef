"""Which build brought a change: `python -m nexmark.bisect`, which is `make bisect`.

Measures builds against a good one, each by a night of the DAG `nexmark_build`, until one is the
first bad one with 95 %. Started again with the same arguments it goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nexmark.bisect.builds import read_builds
from nexmark.bisect.nights import Nights
from nexmark.bisect.running import running_airflow
from nexmark.bisect.search import Search
from nexmark.bisect.words import answer, table
from nexmark.command import Parser, check_repetitions, ending, engine_of, say
from nexmark.config import load
from nexmark.errors import NexmarkError

if TYPE_CHECKING:
    from nexmark.verdict.bisection import Bisection

_MOST = 40


def main(arguments: Sequence[str] | None = None) -> int:
    """Search; 0 if the build is found, 1 if not, 130 if interrupted."""
    return ending(_bisect, _parser().parse_args(arguments))


def _parser() -> Parser:
    parser = Parser(prog="nexmark.bisect", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--good", default="", help="a build without the change, as pypi:4.3.0")
    parser.add_argument("--bad", default="", help="a later build with it")
    parser.add_argument("--builds", default="", help="those between, in order: a file, or a,b,c")
    parser.add_argument("--query", default="", help="the query that changed")
    parser.add_argument("--engine", default="", help="of engines.yaml (default: the newest)")
    parser.add_argument("--workload", default="", help="of workloads.yaml (default: the engine's)")
    parser.add_argument("--cluster", default="", help="of clusters.yaml (default: the engine's)")
    parser.add_argument("--repetitions", type=int, help="pairs a night (default: gate.yaml)")
    parser.add_argument(
        "--measurements", type=int, default=_MOST, help=f"at most so many nights ({_MOST})"
    )
    parser.add_argument(
        "--airflow", default="", help="URL of a running Airflow whose scheduler runs the nights"
    )
    return parser


def _bisect(options: argparse.Namespace) -> int:
    builds = read_builds(options.good, options.bad, options.builds)
    nights = _nights(options, builds[0])
    for build in (builds[0], builds[-1]):
        nights.fetch(build)
    search = Search(builds, nights.known(builds), nights.config.gate.noise_floor)
    if search.nights:
        say(f"{len(search.nights)} nights of an earlier search are used")
    try:
        state = search.run(nights.measure, options.measurements, _show, say)
    except KeyboardInterrupt:
        say("interrupted: the same command goes on from here")
        raise
    say(answer(options.query, search, state))
    return 0 if state.found else 1


def _nights(options: argparse.Namespace, good: str) -> Nights:
    check_repetitions(options.repetitions)
    if options.measurements < 1:
        raise NexmarkError(f"measurements: {options.measurements} is too few; give 1 or more")
    config = load()
    engine = engine_of(config, options.engine)
    params = {
        "engine": engine.name,
        "queries": options.query,
        "workload": options.workload or engine.workload,
        "cluster": options.cluster or config.cluster_of(engine),
        "against": good,
        "mode": "paired",
        "repetitions": options.repetitions or config.gate.pairs,
    }
    airflow = running_airflow(options.airflow) if options.airflow else None
    nights = Nights(config, engine.name, params, airflow)
    queries = nights.plan(good).queries
    if not options.query.strip() or len(queries) != 1:
        raise NexmarkError(f"query: {options.query!r} is not one query; give QUERY=q5")
    if airflow is not None:
        airflow.check()
    return nights


def _show(search: Search, state: Bisection) -> None:
    say(table(search, state))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
