"""Check an upgrade: one side starts queries, the other side resumes them, tables are compared.

1. The first side writes the events for the reference, and starts the queries that go forward.
2. The second side resumes these queries, and starts the queries that go backward.
3. The first side resumes the queries that the second side has started.

Steps of the same build that follow each other are one Spark application. A job of a person's own
is checked in the same way; without a reference, the first side also runs it without a stop, and the
tables are compared with its table.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nexmark.compatibility.application import Application, CheckpointRun
from nexmark.compatibility.arguments import (
    application_confs,
    dump_arguments,
    events_of,
    input_arguments,
    query_arguments,
    write_jobs,
)
from nexmark.compatibility.cases import Case, Input, Side
from nexmark.compatibility.plans import PlanDifference, QueryPlan, carried_confs, compare, overruled
from nexmark.compatibility.results import Compatibility, Restart, RestartOutcome
from nexmark.compatibility.resumed_rows import RightRows
from nexmark.interrupts import temporary_directory
from nexmark.model import Say
from nexmark_jobs.host.whole_files import write_whole

Records = Mapping[str, Mapping[str, Any]]

_LEFT_OUT = "left out"
_TABLE, _WHOLE = "table", "whole"
_PREFIX = "nexmark-compat-"


@dataclass(frozen=True)
class _Direction:
    """One direction of a case: which side starts the query, which one resumes it, and where.

    Cases that start with the same formulation share the first run, and each resumes in a copy of
    its directory.

    Attributes:
        name: "forward" or "backward".
        case: the query.
        sides: the side that starts the query, and the one that resumes it.
        formulations: the formulations on these sides.
        work: the directory of the whole check.
    """

    name: str
    case: Case
    sides: tuple[Side, Side]
    formulations: tuple[str, str]
    work: Path

    @property
    def ids(self) -> tuple[str, str]:
        """The ids of the first run and of the resumed run, which are shown as progress."""
        first = f"{self.case.query} ({self.formulations[0]}), {self.name}, first run"
        return first, f"{self.case}, {self.name}, resumed run"

    @property
    def first_directory(self) -> Path:
        """The directory of the first run."""
        return self.work / self.name / f"{self.case.query}-{self.formulations[0]}"

    @property
    def resumed_directory(self) -> Path:
        """The directory of the resumed run."""
        return self.work / self.name / f"{self.case.query}-{'-to-'.join(self.formulations)}"

    @property
    def whole_id(self) -> str:
        """The id of the run that is not interrupted, which both directions share."""
        return f"{self.case.query} ({self.case.first}), uninterrupted run"

    @property
    def has_whole_run(self) -> bool:
        """Whether a run that is not interrupted says which rows are right."""
        job = self.sides[0].job
        return job is not None and not job.is_proven

    def run(self, part: int, events: Input, *, only_stateful: bool) -> CheckpointRun:
        """Return the first run (`part` 0) or the resumed run (`part` 1)."""
        here = self.resumed_directory if part else self.first_directory
        arguments = self._arguments(part, here, events)
        if part == 0:
            arguments += ["--stop-after-batch", str(events.last_batch_of_first_run)]
        return CheckpointRun(
            self.ids[part],
            arguments,
            self.sides[part].confs,
            after=self.ids[0] if part else None,
            copies=(str(self.first_directory), str(self.resumed_directory)) if part else None,
            only_stateful=only_stateful,
        )

    def whole_run(self, events: Input, *, only_stateful: bool) -> CheckpointRun:
        """Return the run of the first side that is not interrupted."""
        arguments = self._arguments(0, self.work / _WHOLE, events)
        confs = self.sides[0].confs
        return CheckpointRun(self.whole_id, arguments, confs, only_stateful=only_stateful)

    def right_rows(self) -> RightRows:
        """Return what the final table of the resumed run is compared with."""
        whole = self.work / _WHOLE / _TABLE if self.has_whole_run else None
        job = self.sides[1].job
        return RightRows(self.case.query, events_of(self.work), job, whole)

    def _arguments(self, part: int, here: Path, events: Input) -> list[str]:
        """Return the arguments of a run on a side whose files are in a directory."""
        return [
            *query_arguments(self.case.query, self.formulations[part], self.sides[part], self.work),
            "--checkpoint",
            f"{here}/kept",
            "--sink",
            f"parquet:{here}/{_TABLE}",
            "--result",
            f"{here.parent}/result.json",
            "--digest",
            "off",
            *input_arguments(self.sides[part], events, self.work),
        ]


def check(
    first: Side,
    second: Side,
    cases: Sequence[Case],
    events: Input,
    say: Say,
    *,
    only_stateful: bool = False,
    backward: bool = True,
    below: Path | None = None,
) -> list[Compatibility]:
    """Start each case on the first side and resume it on the second, and the other way round.

    All files are in a temporary directory. No file and no process is left, however this ends.

    Args:
        first: the side that jobs run on now.
        second: the side that jobs will run on after the upgrade.
        cases: the queries.
        events: the generated events.
        say: called with each line of progress.
        only_stateful: leave out queries that keep no state.
        backward: also start each case on the second side and resume it on the first.
        below: the parent of the temporary directory; the system's by default.

    Raises:
        ApplicationError: Spark does not start.
    """
    with temporary_directory(_PREFIX, below) as work:
        sides = first, second
        forward = [
            _Direction("forward", case, sides, (case.first, case.second), work) for case in cases
        ]
        back = [
            _Direction("backward", case, sides[::-1], (case.second, case.first), work)
            for case in cases
            if backward and (first != second or case.first != case.second)
        ]
        for direction in [*forward, *back]:
            direction.first_directory.mkdir(parents=True, exist_ok=True)
        write_jobs((first, second), work, say)

        def runs(directions: list[_Direction], part: int) -> list[CheckpointRun]:
            every = [one.run(part, events, only_stateful=only_stateful) for one in directions]
            return list({run.id: run for run in every}.values())

        whole = [
            one.whole_run(events, only_stateful=only_stateful)
            for one in forward
            if one.has_whole_run
        ]
        dump = dump_arguments(first, events, work)
        steps = [
            (first, [*whole, *runs(forward, 0)]),
            (second, [*runs(forward, 1), *runs(back, 0)]),
            (first, runs(back, 1)),
        ]
        records = _run(steps, work, dump, events, say)
        back_of = {direction.case: direction for direction in back}
        return [
            _comparison(direction, back_of.get(direction.case), records)
            for direction in forward
            if records[direction.ids[0]]["state"] != _LEFT_OUT
        ]


def write_corpus(
    side: Side, cases: Sequence[Case], events: Input, say: Say, directory: Path
) -> list[str]:
    """Start queries on a side and keep their checkpoints; return the names of those that failed.

    <directory>/<query>-<formulation>/kept   the checkpoint, and a note on its input
    <directory>/corpus.json                  the build, the events, the outcome of each query

    Args:
        side: the build and its confs.
        cases: the queries; those that keep no state are left out.
        events: the generated events.
        say: called with each line of progress.
        directory: the directory to make.

    Raises:
        ApplicationError: Spark does not start.
    """
    with temporary_directory(_PREFIX) as work:
        directions = [
            _Direction("forward", case, (side, side), (case.first, case.first), work)
            for case in cases
        ]
        for direction in directions:
            direction.first_directory.mkdir(parents=True)
        runs = [direction.run(0, events, only_stateful=True) for direction in directions]
        records = _run([(side, runs)], work, None, events, say)
        states = {
            direction.first_directory.name: records[direction.ids[0]]["state"]
            for direction in directions
        }
        for direction in directions:
            checkpoint = direction.first_directory
            if states[checkpoint.name] == "done":
                shutil.copytree(checkpoint, directory / checkpoint.name)
        about = {"build": side.build.id, "spark": side.build.version, "confs": dict(side.confs)}
        about |= {"input": events.run_arguments, "queries": states}
        write_whole(directory / "corpus.json", json.dumps(about, indent=1) + "\n")
    return [name for name, state in states.items() if state == "failed"]


def check_plans(
    first: Side,
    second: Side,
    cases: Sequence[Case],
    events: Input,
    say: Say,
    *,
    only_stateful: bool = False,
) -> list[Compatibility]:
    """Compare the plans of each case without running a query.

    Args:
        first: the side that jobs run on now.
        second: the side that jobs will run on after the upgrade.
        cases: the queries.
        events: the generated events.
        say: called with each line of progress.
        only_stateful: leave out queries that keep no state.

    Raises:
        ApplicationError: Spark does not start.
    """
    with temporary_directory(_PREFIX) as work:
        write_jobs((first, second), work, say)

        def plan(case: Case, number: int) -> CheckpointRun:
            side, formulation = ((first, case.first), (second, case.second))[number]
            return CheckpointRun(
                f"{case}, plan {number + 1}",
                [
                    *query_arguments(case.query, formulation, side, work),
                    "--result",
                    f"{work}/result.json",
                    *input_arguments(side, events, work),
                ],
                side.confs,
                only_plan=True,
                only_stateful=only_stateful,
            )

        steps = [
            (side, [plan(case, number) for case in cases])
            for number, side in enumerate((first, second))
        ]
        records = _run(steps, work, None, events, say)
        pairs = [(case, records[f"{case}, plan 1"], records[f"{case}, plan 2"]) for case in cases]
        return [
            Compatibility(case, *_plans(one, other, same_build=first.build == second.build))
            for case, one, other in pairs
            if one["state"] != _LEFT_OUT
        ]


def _run(
    steps: Sequence[tuple[Side, list[CheckpointRun]]],
    work: Path,
    dump: list[str] | None,
    events: Input,
    say: Say,
) -> Records:
    """Make the runs of the steps; steps of one program that follow each other are one application.

    Args:
        steps: each a side and its runs, in order.
        work: the directory of the whole check.
        dump: arguments of `dump_events.py` for the first application; None for no events.
        events: the generated events.
        say: called with each line of progress.

    Returns:
        The outcome of each run by its id; its state is `left out` if its first run was not done.
    """
    records: dict[str, Mapping[str, Any]] = {}
    for number, (side, runs) in enumerate(_of_programs(steps), start=1):
        build = side.build
        ids = {run.id for run in runs}
        ready = []
        for run in runs:
            if run.after in ids:
                ready.append(run)
            elif run.after is None or records[run.after]["state"] == "done":
                ready.append(replace(run, after=None))
            else:
                records[run.id] = {"state": _LEFT_OUT, "plan": {}}
        say(f"Spark {build.version}: {len(ready)} runs of queries, application {number}")
        directory = work / f"application-{number}"
        confs = application_confs(side, work)
        application = Application(build, ready, directory, dump, events.formulations, confs)
        records |= application.run(say) if ready else {}
        dump = None
    return records


def _of_programs(
    steps: Sequence[tuple[Side, list[CheckpointRun]]],
) -> list[tuple[Side, list[CheckpointRun]]]:
    """Return the steps with runs, as one step where the same program follows itself."""
    joined: list[tuple[Side, list[CheckpointRun]]] = []
    for side, runs in steps:
        if runs and joined and joined[-1][0].same_program(side):
            joined[-1][1].extend(runs)
        elif runs:
            joined.append((side, list(runs)))
    return joined


def _comparison(
    forward: _Direction, backward: _Direction | None, records: Records
) -> Compatibility:
    """Return the result of a case from the outcomes of its runs.

    Args:
        forward: the direction from the first side to the second.
        backward: the direction from the second side to the first; None if it was not run.
        records: the outcome of each run by its id.
    """
    case = forward.case
    first_run, resumed_run = (records[id_] for id_ in forward.ids)
    second_side = resumed_run if backward is None else records[backward.ids[0]]
    first, second = forward.sides
    same_build = first.build.id == second.build.id
    planned = second_side if second_side.get("plan") else resumed_run
    plans, difference = _plans(first_run, planned, same_build=same_build)
    restart = _restart(forward, records)
    back = restart if first == second and case.first == case.second else None
    carried = carried_confs(forward.first_directory / "kept" / "checkpoint")
    ignored = overruled(carried, second.confs, "the second side")
    if backward is not None:
        back = _restart(backward, records)
        carried_back = carried_confs(backward.first_directory / "kept" / "checkpoint")
        ignored += overruled(carried_back, first.confs, "going back, the first side")
    ignored += [
        f"{name} is not a conf of a query, and was not set"
        for name in sorted({*first_run.get("unset", ()), *second_side.get("unset", ())})
    ]
    return Compatibility(case, plans, difference, restart, back, carried, tuple(ignored))


def _plans(
    first: Mapping[str, Any], second: Mapping[str, Any], *, same_build: bool
) -> tuple[tuple[QueryPlan | None, QueryPlan | None], PlanDifference | None]:
    """Return the plans in the outcomes of two runs, and their difference if both have one."""
    plans = _plan(first), _plan(second)
    one, other = plans
    difference = compare(one, other, same_build=same_build) if one and other else None
    return plans, difference


def _plan(record: Mapping[str, Any]) -> QueryPlan | None:
    return QueryPlan.read(record["plan"]) if record.get("plan") else None


def _restart(direction: _Direction, records: Records) -> Restart:
    """Return how the resumed run ended; NOT_BEGUN if a run before it was not done."""
    right, table = direction.right_rows(), direction.resumed_directory / _TABLE
    before, resumed_run = direction.ids
    for id_ in (direction.whole_id, before) if direction.has_whole_run else (before,):
        if records[id_]["state"] != "done":
            return replace(right.restart(records[id_], table), outcome=RestartOutcome.NOT_BEGUN)
    return right.restart(records[resumed_run], table)
