"""The verbs that measure without a night: `experiment` and `latency`."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nexmark.cli import shared_options as option
from nexmark.config import Experiment, load, load_experiments, paths
from nexmark.errors import NexmarkError, suggest
from nexmark.interrupts import temporary_directory
from nexmark.model import grouped
from nexmark.terminal import COULD_NOT_RUN, FOUND_RED, columns, show_line
from nexmark_jobs.generator_config import MAX_EVENTS
from nexmark_jobs.host.processes import OWNER_VARIABLE

if TYPE_CHECKING:
    from nexmark.engines import Build
    from nexmark.experiments.experiment_run import ExperimentResult
    from nexmark.latency.figures import LatencyFigures
    from nexmark.store.table_rows import ExperimentRow

_TRIGGERS = ("micro-batch", "real-time")
_HEADS = ("query", "trigger", "rate/s", "p50", "p90", "p99", "p99.9", "max", "events", "lag p99")


def experiment(
    name: Annotated[
        str | None,
        typer.Argument(callback=option.given, help="The experiment, of experiments.yaml; or new."),
    ] = None,
    new_name: Annotated[
        str | None, typer.Argument(callback=option.given, help="After new: the entry to add.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Measure all experiments.")] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="List the experiments; measure nothing.")
    ] = False,
    sizes: Annotated[str | None, option.text("Events per micro-batch, as 20000,300000.")] = None,
    pairs: Annotated[
        int | None, option.number(1, 100, help="Runs of each arm (default: 4; with --quick 1).")
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Check that all arms run and agree; the figures say little."),
    ] = False,
    engine: option.Engine = None,
    out: option.Out = None,
) -> int:
    """Measure the arms of an experiment in turns.

    It prints what each arm saves, and whether the results are equal. `nexmark experiment new NAME`
    adds a commented entry to experiments.yaml. 0 if all arms were measured and all results are
    equal and right, 1 if not, 2 if one could not be run.
    """
    known = load_experiments()
    if name == "new":
        return _add(new_name, known)
    if new_name is not None:
        raise typer.BadParameter(f"{new_name!r}: one experiment at a time, or --all")
    if listed:
        rows = [[one.name, ",".join(one.queries), one.question] for one in known.values()]
        show_line(columns(("experiment", "queries", "question"), rows))
        return 0
    if quick:
        from nexmark.experiments.arm_runs import quick as made_quick

        known = {each: made_quick(one) for each, one in known.items()}
    chosen = _chosen(name, known, every=every, sizes=sizes)
    return _measured(chosen, engine, pairs or (1 if quick else 4), out, kept=not quick)


def _measured(
    chosen: Sequence[Experiment], engine: str | None, pairs: int, out: Path | None, *, kept: bool
) -> int:
    """Measure experiments one after the other, and print a table of their arms.

    If there are several, an experiment that fails is named, and the next one goes on.

    Args:
        chosen: The experiments.
        engine: The engine whose build runs the arms that name none; None for the newest engine.
        pairs: How often each arm runs.
        out: The file for the results as JSON; None for no file.
        kept: Whether the results go to the results database and have a page.

    Returns:
        0 if all arms were measured and all results are equal and right; 1 if not; else 2 if an
        experiment failed.
    """
    from nexmark.evidence.experiment_evidence import HEADS, cells, remarks
    from nexmark.experiments.experiment_rows import as_json, recorded
    from nexmark.experiments.experiment_run import applications_of, check_arms, measure_experiment
    from nexmark.experiments.local_applications import LocalApplications

    results: list[ExperimentResult] = []
    arms: list[ExperimentRow] = []
    failed: dict[str, str] = {}
    countdown = _Countdown({one.name: applications_of(one, pairs) for one in chosen})
    with temporary_directory("nexmark-experiment-") as work:
        applications = LocalApplications(work)
        for one in chosen:
            try:
                builds = _builds(one, engine)
                check_arms(one, builds)
                tick = partial(countdown.tick, one.name)
                results.append(
                    measure_experiment(one, builds, pairs, applications, show_line, tick)
                )
                option.write(out, {**as_json(results), "failed": failed})
                aside = f"sqlite:///{applications.work}/results.db"
                arms += _kept(results[-1]) if kept else recorded(results[-1], one.name, aside).arms
            except Exception as error:  # whatever it is, the others go on
                if len(chosen) == 1:
                    raise
                failed[one.name] = f"{type(error).__name__}: {error}"
                show_line(f"{one.name}: failed: {failed[one.name]}")
            countdown.left[one.name] = 0  # it may have ended too early
            option.write(out, {**as_json(results), "failed": failed})
    lines = [*remarks(arms), *(f"{name}: failed: {why}" for name, why in failed.items())]
    show_line("\n" + columns(HEADS, [cells(arm) for arm in arms]) + "\n\n" + "\n".join(lines))
    if not all(result.is_right for result in results):
        return FOUND_RED
    return COULD_NOT_RUN if failed else 0


def _kept(result: "ExperimentResult") -> "Sequence[ExperimentRow]":
    """Record a result, write its page, and return its arms."""
    from nexmark.experiments.experiment_rows import keep

    run = f"{result.experiment.name}-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"
    rows, page = keep(result, run, paths.home() / "experiments" / run)
    show_line(f"{result.experiment.name}: {page}")
    return rows.arms


@dataclass
class _Countdown:
    """The applications that are still to run, and an estimate of the time that they take.

    `left` is their number by the name of the experiment, `done` how many have ended, `start` the
    time of the monotonic clock (s) when the first one began.
    """

    left: dict[str, int]
    done: int = 0
    start: float = field(default_factory=time.monotonic)

    def tick(self, name: str) -> str:
        """Note that an application of the experiment `name` has ended; return what is left."""
        from nexmark.night.night_progress import duration

        self.left[name] -= 1
        self.done += 1
        left = sum(self.left.values())
        seconds = (time.monotonic() - self.start) / self.done * left
        return f"; {self.done} of {self.done + left}, about {duration(seconds)} left"


def _chosen(
    name: str | None, known: Mapping[str, Experiment], *, every: bool, sizes: str | None
) -> list[Experiment]:
    """Return the experiments that the options choose.

    Args:
        name: The name of one experiment; None for all.
        known: All experiments by name.
        every: Whether --all is given.
        sizes: The value of --sizes: events per micro-batch; None for each experiment's own sizes.
    """
    if every == (name is not None):
        raise typer.BadParameter("give the name of one experiment, or --all; --list names them")
    if name is not None and name not in known:
        raise typer.BadParameter(f"{name!r} is not an experiment; {suggest(name, known)}")
    chosen = list(known.values()) if name is None else [known[name]]
    if sizes is None:
        return chosen
    number = option.whole(100, MAX_EVENTS // 1000)
    wanted = tuple(sorted({number(text.strip()) for text in sizes.split(",")}))
    return [one.model_copy(update={"sizes": wanted}) for one in chosen]


def _builds(one: Experiment, engine: str | None) -> "dict[str, Build]":
    """Return the build of each arm of an experiment: its own, or the engine's."""
    from nexmark.engines import usable

    usual = load().engine(engine).build
    sources = {arm: each.build or usual for arm, each in one.arms.items()}
    return {arm: usable(each, paths.builds_dir(), say=show_line) for arm, each in sources.items()}


def _add(name: str | None, known: Mapping[str, Experiment]) -> int:
    """Add a template named `name` to experiments.yaml; leave the file as it was if it is wrong."""
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
    show_line(f"added to {path}; edit it, then: nexmark experiment {name}")
    return 0


def latency(
    query: Annotated[str, option.query("One or more queries, as q0,q17.")] = "q0",
    rate: Annotated[
        str,
        option.text(
            "Events per second, as 500,1000; 500-16000 is doubled until a query falls behind."
        ),
    ] = "1000",
    trigger: Annotated[
        str, option.text("The trigger: micro-batch, real-time, or both.")
    ] = "micro-batch",
    seconds: Annotated[int, option.number(5, 3600, "S", "How long is measured.")] = 30,
    warm_up: Annotated[int, option.number(0, 600, "S", "Seconds before that, not counted.")] = 10,
    engine: option.Engine = None,
    conf: option.Conf = None,
    out: option.Out = None,
) -> int:
    """Measure the latency of queries from Kafka to Kafka.

    Events come at fixed rates. Starts a broker and ends it. 0 if every figure can be believed, 1 if
    not.
    """
    from nexmark.kafka import broker
    from nexmark.kafka.jars import connector
    from nexmark.kafka.topics import KafkaCluster
    from nexmark.latency.matching import MATCHINGS
    from nexmark.latency.measuring import PacedRuns

    queries = _listed("--query", query, tuple(MATCHINGS))
    triggers = _listed("--trigger", trigger, _TRIGGERS)
    rates, until_behind = _rates(rate)
    _, build = option.build_of(engine, show_line)
    _check_real_time(queries, triggers, build.version)
    jars, brokers = connector(build.version, show_line), broker.of_this_machine("latency")
    measured: list[LatencyFigures] = []
    try:
        kafka = KafkaCluster(brokers.up(1, broker.LATENCY_PORT, show_line))
        with tempfile.TemporaryDirectory(prefix="nexmark-latency-") as directory:
            mark = {OWNER_VARIABLE: brokers.mark}
            runs = PacedRuns(build, jars, kafka, mark, Path(directory), show_line)
            for each, how in product(queries, triggers):
                for at in rates:
                    run = runs.run(each, how, at, seconds, warm_up, option.confs_of(conf))
                    measured.append(run)
                    p50, _, p99, _ = run.percentiles
                    show_line(f"{each} {how} at {at:,}/s: p50 {p50:,} ms, p99 {p99:,} ms")
                    if until_behind and (run.invalid or not run.keeps_up):
                        break
    finally:
        brokers.down()
    print(f"\nSpark {build.version}; milliseconds")
    print(columns((*_HEADS, "remark"), [_row(each) for each in measured]))
    if until_behind:
        print(f"\n{sustained(measured)}")
    option.write(out, {"spark_version": build.version, "runs": [asdict(run) for run in measured]})
    return int(any(run.invalid for run in measured))


def sustained(measured: "list[LatencyFigures]") -> str:
    """Return a line for each query and trigger, with the highest rate that the query sustains."""
    lines = []
    by_query = grouped(measured, lambda run: (run.query, run.trigger))
    for (query, trigger), runs in by_query.items():
        kept = [each.rate for each in runs if each.keeps_up and not each.invalid]
        rate = f"{max(kept):,}/s" if kept else f"below {runs[0].rate:,}/s"
        more = ", and maybe more" if all(each.keeps_up for each in runs) else ""
        lines.append(f"{query} {trigger}: sustainable rate {rate}{more}")
    return "\n".join(lines)


def _rates(text: str) -> tuple[list[int], bool]:
    """Return the rates of `--rate` (events/s), and whether to stop where a query falls behind."""
    number = option.whole(1, 1_000_000)
    first, dash, last = text.partition("-")
    if not dash:
        return [number(each) for each in text.split(",")], False
    low, high = number(first), number(last)
    if low > high:
        raise typer.BadParameter(f"--rate: {text!r} goes down; write it as 500-16000")
    return [low * 2**n for n in range((high // low).bit_length())], True


def _check_real_time(queries: list[str], triggers: list[str], version: str) -> None:
    """Refuse a query that Spark cannot run in Real-Time Mode, before anything is started."""
    from nexmark_jobs.real_time import refusal

    for query in queries if "real-time" in triggers else ():
        if refused := refusal(query, version):
            problem = f"{query} cannot run in Real-Time Mode on Spark {version}: {refused.why}"
            raise typer.BadParameter(f"--trigger: {problem}; take --trigger micro-batch")


def _row(each: "LatencyFigures") -> list[str]:
    behind = "" if each.keeps_up else "falls behind"
    remark = f"INVALID: {each.invalid}" if each.invalid else behind
    return [
        each.query,
        each.trigger,
        f"{each.rate:,}",
        *(f"{number:,}" for number in (*each.percentiles, each.longest, each.events)),
        f"{each.lag_p99:.1f}",
        remark,
    ]


def _listed(option: str, text: str, known: tuple[str, ...]) -> list[str]:
    """Return the names in the value of an option, as q0,q17; refuse a name that is not known."""
    names = list(known) if text == "both" and "micro-batch" in known else text.split(",")
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"{option}: {name!r} is not known; take {', '.join(known)}")
    return names
