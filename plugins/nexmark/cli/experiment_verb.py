"""The verb that measures experiments: is an optimisation worth it, and is it right?"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nexmark.cli.shared_options import (
    Engine,
    Out,
    check_new,
    given,
    number_option,
    text_option,
    whole,
)
from nexmark.terminal import columns, say
from nexmark_jobs.host.leases import write_whole

if TYPE_CHECKING:
    from nexmark.config import Experiment
    from nexmark.engines import Build
    from nexmark.evidence.experiment_evidence import MeasuredArm
    from nexmark.experiments.experiment_run import ExperimentResult


def experiment(
    name: Annotated[
        str | None, typer.Argument(callback=given, help="Of experiments.yaml; or new.")
    ] = None,
    new_name: Annotated[
        str | None, typer.Argument(callback=given, help="Of new: the entry to add.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All experiments.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Name them, measure nothing.")] = False,
    sizes: Annotated[str | None, text_option("Events per micro-batch: 20000,300000.")] = None,
    pairs: Annotated[
        int | None, number_option(1, 100, help="Runs of each arm (default: 4; with --quick 1).")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="See that all runs and agrees; the figures say little.")
    ] = False,
    engine: Engine = None,
    out: Out = None,
) -> int:
    """Measure the arms of an experiment in turns: what each saves, and whether results are equal.

    `nexmark experiment new NAME` adds a commented entry to experiments.yaml. 0 if all arms were
    measured and all results are equal and right, 1 if not.
    """
    from nexmark.config import load_experiments

    known = load_experiments()
    if name == "new":
        return _add(new_name, known)
    if new_name is not None:
        raise typer.BadParameter(f"{new_name!r}: one experiment at a time, or --all")
    if listed:
        rows = [[one.name, ",".join(one.queries), one.question] for one in known.values()]
        say(columns(("experiment", "queries", "question"), rows))
        return 0
    check_new(out)
    if quick:
        from nexmark.experiments.arm_runs import quick as made_quick

        known = {each: made_quick(one) for each, one in known.items()}
    chosen = _chosen(name, known, every=every, sizes=sizes)
    return _measured(chosen, engine, pairs or (1 if quick else 4), out, kept=not quick)


def _measured(
    chosen: Sequence[Experiment], engine: str | None, pairs: int, out: Path | None, *, kept: bool
) -> int:
    """Measure the experiments; of several, one that fails is named, and the others go on.

    `kept`: what was found goes to the results database, and has a page.
    """
    from nexmark.evidence.experiment_evidence import HEADS, cells, remarks
    from nexmark.experiments.experiment_rows import as_json, recorded
    from nexmark.experiments.experiment_run import applications_of, check_arms, measure_experiment
    from nexmark.experiments.local_applications import LocalApplications
    from nexmark.interrupts import temporary_directory

    results: list[ExperimentResult] = []
    arms: list[MeasuredArm] = []
    failed: dict[str, str] = {}
    countdown = _Countdown({one.name: applications_of(one, pairs) for one in chosen})
    with temporary_directory("nexmark-experiment-") as work:
        applications = LocalApplications(work)
        for one in chosen:
            try:
                builds = _builds(one, engine)
                check_arms(one, builds)
                tick = partial(countdown.tick, one.name)
                results.append(measure_experiment(one, builds, pairs, applications, say, tick))
                aside = f"sqlite:///{applications.work}/results.db"
                arms += _kept(results[-1]) if kept else recorded(results[-1], one.name, aside).arms
            except Exception as error:  # whatever it is, the others go on
                if len(chosen) == 1:
                    raise
                failed[one.name] = f"{type(error).__name__}: {error}"
                say(f"{one.name}: failed: {failed[one.name]}")
            countdown.ended(one.name)
            if out is not None:
                text = json.dumps({**as_json(results), "failed": failed}, indent=1)
                write_whole(out, text + "\n")
    lines = [*remarks(arms), *(f"{name}: failed: {why}" for name, why in failed.items())]
    say("\n" + columns(HEADS, [cells(arm) for arm in arms]) + "\n\n" + "\n".join(lines))
    return 0 if not failed and all(result.is_right for result in results) else 1


def _kept(result: ExperimentResult) -> Sequence[MeasuredArm]:
    """Record a result, write its page, and return its arms."""
    from nexmark.config import paths
    from nexmark.experiments.experiment_rows import keep

    run = f"{result.experiment.name}-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    found, page = keep(result, run, paths.home() / "experiments" / run)
    say(f"{result.experiment.name}: {page}")
    return found.arms


class _Countdown:
    """How many applications there are still to run, and about how long they take."""

    def __init__(self, planned: Mapping[str, int]) -> None:
        self._left = dict(planned)
        self._done = 0
        self._start = time.monotonic()

    def tick(self, name: str) -> str:
        """An application of `name` has ended; the place in the whole, in words."""
        from nexmark.night.night_progress import duration

        self._left[name] -= 1
        self._done += 1
        left = sum(self._left.values())
        seconds = (time.monotonic() - self._start) / self._done * left
        return f"; {self._done} of {self._done + left}, about {duration(seconds)} left"

    def ended(self, name: str) -> None:
        """An experiment has ended, maybe too early."""
        self._left[name] = 0


def _chosen(
    name: str | None, known: Mapping[str, Experiment], *, every: bool, sizes: str | None
) -> list[Experiment]:
    from nexmark.errors import suggest
    from nexmark_jobs.knobs import MAX_EVENTS

    if every == (name is not None):
        raise typer.BadParameter("give the name of one experiment, or --all; --list names them")
    if name is not None and name not in known:
        raise typer.BadParameter(f"{name!r} is not an experiment; {suggest(name, known)}")
    found = list(known.values()) if name is None else [known[name]]
    if sizes is None:
        return found
    number = whole(100, MAX_EVENTS // 1000)
    wanted = tuple(sorted({number(text.strip()) for text in sizes.split(",")}))
    return [one.model_copy(update={"sizes": wanted}) for one in found]


def _builds(one: Experiment, engine: str | None) -> dict[str, Build]:
    """The build of each arm: its own, or the engine's."""
    from nexmark.config import load, paths
    from nexmark.engines import java_problem, resolve
    from nexmark.errors import NexmarkError

    usual = load().engine(engine).build
    sources = {arm: each.build or usual for arm, each in one.arms.items()}
    found = {arm: resolve(each, paths.builds_dir(), say=say) for arm, each in sources.items()}
    for build in found.values():
        if problem := java_problem(build.version):
            raise NexmarkError(f"Spark {build.version}: {problem}")
    return found


def _add(name: str | None, known: Mapping[str, Experiment]) -> int:
    """Add a template to the file, and load it."""
    from nexmark.config import load_experiments, paths
    from nexmark.errors import NexmarkError
    from nexmark.experiments.template import entry_of

    if name is None:
        raise typer.BadParameter("new: no name is given; write: nexmark experiment new NAME")
    if name in known:
        raise typer.BadParameter(f"new: there is an experiment {name!r}; take another name")
    path = paths.conf_dir() / "experiments.yaml"
    before = path.read_text(encoding="utf-8") if path.exists() else "experiments:\n"
    try:
        path.write_text(before.rstrip("\n") + "\n\n" + entry_of(name), encoding="utf-8")
        load_experiments()
    except NexmarkError:
        path.write_text(before, encoding="utf-8")
        raise
    say(f"added to {path}; edit it, then: nexmark experiment {name}")
    return 0
