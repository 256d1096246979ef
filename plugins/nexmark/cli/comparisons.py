"""Runs a comparison that a person asked for, and goes on with an earlier one.

An earlier one left queries undecided, or was interrupted before it had measured them all.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import typer

from nexmark.cli import shared_options as option
from nexmark.config import BUILD_DAG_ID, Config, pick
from nexmark.model import CANDIDATE_JOB, MEASURED_ON, MIN_PAIRS, SUITE
from nexmark.terminal import INTERRUPTED, show_line

if TYPE_CHECKING:
    from nexmark.store import Store
    from nexmark.store.table_rows import NightRow
    from nexmark.verdict.verdict import Verdict

Verb: TypeAlias = Literal["build", "soak"]
"""The verbs that run a comparison."""
_MAY_CHANGE = frozenset({"engine", "continued", "pairs", "minutes", "until", "queries"})
"""The options that --continue does not take from the run."""


def compare(verb: Verb, config: Config, engine: str, params: Mapping[str, Any]) -> int:
    """Run a night of the DAG of builds on demand; say how to go on if it is interrupted.

    Args:
        verb: The verb that runs it.
        config: The configuration.
        engine: The engine of the night.
        params: The params of the run.

    Returns:
        The exit code, as `night_runner.run_night`.
    """
    from nexmark.cli.night_runner import newest_run, run_night

    begun = datetime.now(UTC)
    code = run_night(config, BUILD_DAG_ID, engine, params)
    if code == INTERRUPTED and (run := newest_run(BUILD_DAG_ID, begun)):
        show_line(f"to go on with what it has not measured: nexmark {verb} --continue '{run}'")
    return code


def go_on(
    verb: Verb,
    run: str,
    config: Config,
    options: Mapping[str, Any],
    given: Mapping[str, Any] | None = None,
) -> int:
    """Run a night that goes on with a run; return the exit code, 0 if nothing is left to measure.

    Args:
        verb: The verb that runs it.
        run: The name of the run, or latest.
        config: The configuration.
        options: The options of the command.
        given: Params of the new run.
    """
    engine, params = _undecided(verb, run, config, options)
    if not params:
        show_line(f"{run}: every query is decided; there is nothing to go on with")
        return 0
    show_line("the verdict counts the pairs of both runs, the line after a pair only this run's")
    return compare(verb, config, engine, {**params, **(given or {})})


def _undecided(
    verb: Verb, run: str, config: Config, options: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return the engine of a run, and the params of a run that goes on with it.

    {} where each query is decided. A night may have compared its queries with several builds; the
    params are for the first of them, and what is left for another command is said.

    Args:
        verb: The verb of the command.
        run: The name of the run, or latest.
        config: The configuration.
        options: The options of the command.

    Raises:
        BadParameter: An option says what the run has decided, or names a decided query.
        NexmarkError: The run still runs, or was interrupted and its files are gone.
    """
    from nexmark.night.make_night import query_names

    for name, value in options.items():
        if name not in _MAY_CHANGE and value:
            given = name.replace("_", "-")
            problem = f"--continue keeps what the run compared; leave out --{given}"
            raise typer.BadParameter(problem)
    with option.opened(None) as store:
        night = option.named_run(store, run, options["engine"])
        left = _left(store, night)
        undecided = {query: verdict.baseline_build for query, verdict in left.items()}
        asked = query_names(options["queries"])
        if decided := [query for query in asked if query not in undecided]:
            problem = f"{night.id} left {', '.join(undecided) or 'no query'} undecided"
            raise typer.BadParameter(f"--queries: {problem}; leave out {', '.join(decided)}")
        open_ = {query: undecided[query] for query in asked or undecided}
        if not open_:
            return night.engine, {}
        baseline = next(iter(open_.values()))
        queries = [query for query, build in open_.items() if build == baseline]
        if others := [query for query in open_ if query not in queries]:
            command = f"nexmark {verb} --continue '{night.id}' --queries {','.join(others)}"
            show_line(f"{', '.join(others)}: compared with another build; go on with {command}")
        return night.engine, {
            "build": store.build(night.build_id).source,
            "against": store.build(baseline).source,
            "engine": night.engine,
            "workload": night.workload,
            "cluster": night.cluster,
            "queries": ",".join(queries),
            "repetitions": _first_round(night, [left[query] for query in queries]),
            **_batches_of_soak(night, config),
            **_of_candidate_alone(night.candidate_conf or {}),
        }


def _left(store: "Store", night: "NightRow") -> dict[str, "Verdict"]:
    """Return the verdicts of the queries that a night has left to measure, by query.

    A night that was interrupted has no verdicts: then what it has measured is recorded and judged.
    """
    from nexmark.cli.record_verb import completed
    from nexmark.night.kept_nights import kept_night

    if not {verdict.query for verdict in store.verdicts(night.id)}.issuperset(night.queries):
        completed(kept_night(night.id), store)
    return {
        verdict.query: verdict
        for verdict in store.verdicts(night.id)
        if verdict.decides and verdict.value in MEASURED_ON and verdict.query != SUITE
        if verdict.baseline_build
    }


def _batches_of_soak(night: "NightRow", config: Config) -> dict[str, int]:
    """Return the param for the batches of a soak, if it had not those that its workload says."""
    from nexmark.evidence.explaining import batches_of

    workload = pick("workload", night.workload, config.workloads)
    usual, ran = workload.model_dump(mode="json"), night.workload_spec
    if workload.soak is None or all(ran.get(key) == usual[key] for key in ("events", "sizes")):
        return {}
    return {"batches": batches_of(night)}


def _first_round(night: "NightRow", undecided: "Sequence[Verdict]") -> int:
    """Return the pairs of the first round that goes on with a night: what decides the first query.

    Pairs of both nights count, so it may have fewer than a first round has; a night has at least
    as many as the gate judges.
    """
    further = [verdict.further_pairs for verdict in undecided if verdict.further_pairs]
    return min(night.repetitions, max(MIN_PAIRS, min(further, default=night.repetitions)))


def _of_candidate_alone(recorded: Mapping[str, str]) -> dict[str, Any]:
    """Return the params for what a night recorded of its candidate alone: confs, changed jobs."""
    confs = {name: value for name, value in recorded.items() if not _is_of_job(name)}
    return {"candidate_conf": confs or None, "candidate_job": recorded.get(CANDIDATE_JOB)}


def _is_of_job(name: str) -> bool:
    return name == CANDIDATE_JOB or name.startswith(f"{CANDIDATE_JOB}.")
