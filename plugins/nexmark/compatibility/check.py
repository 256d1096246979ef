"""The check: each side begins runs, the other side goes on with them, the tables are compared.

first side     begins its runs, dumps the events for the reference
second side    goes on with them; begins runs of its own
first side     goes on with those

Steps of the same build that follow each other are one Spark application.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from nexmark.compatibility.application import Application, Half
from nexmark.compatibility.classes import Case, Compatibility, Ending, Input, Restart, Side
from nexmark.compatibility.plans import PlanDifference, QueryPlan, carried_confs, compare, overruled
from nexmark.interrupts import temporary_directory
from nexmark.model import Say
from nexmark_jobs.host.whole_files import write_whole

Records = Mapping[str, Mapping[str, Any]]

_LEFT_OUT = "left out"
_TABLE = "table"
_PREFIX = "nexmark-compat-"


@dataclass(frozen=True)
class _Way:
    """One direction of a case: who begins it, who goes on, and where its files are.

    Cases that begin with the same formulation share the first half: each goes on in a copy.
    """

    name: str
    case: Case
    sides: tuple[Side, Side]
    formulations: tuple[str, str]
    work: Path

    @property
    def ids(self) -> tuple[str, str]:
        """The ids of both halves; people see them as progress."""
        first = f"{self.case.query} ({self.formulations[0]}), {self.name}, first half"
        return first, f"{self.case}, {self.name}, second half"

    @property
    def begun(self) -> Path:
        """The directory that the first half leaves behind."""
        return self.work / self.name / f"{self.case.query}-{self.formulations[0]}"

    @property
    def directory(self) -> Path:
        """The directory of the second half."""
        return self.work / self.name / f"{self.case.query}-{'-to-'.join(self.formulations)}"

    def half(self, part: int, events: Input, *, only_stateful: bool) -> Half:
        """The first half (`part` 0) or the second one (1)."""
        here = self.directory if part else self.begun
        arguments = [
            *("--query", self.case.query, "--formulation", self.formulations[part]),
            *("--checkpoint", f"{here}/kept", "--sink", f"parquet:{here}/{_TABLE}"),
            *("--result", f"{here.parent}/result.json", "--digest", "off"),
            *events.run_arguments,
        ]
        if part == 0:
            arguments += ["--stop-after-batch", str(events.last_batch_of_first_half)]
        return Half(
            self.ids[part],
            arguments,
            self.sides[part].confs,
            after=self.ids[0] if part else None,
            copies=(str(self.begun), str(self.directory)) if part else None,
            only_stateful=only_stateful,
        )


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
    """Run each case forward and, with `backward`, also the other way round.

    `only_stateful`: queries that keep no state are left out. All files are in a temporary directory
    (`below` one of the caller's), and nothing is left on disk, and no process, however this ends.
    ApplicationError: Spark does not start.
    """
    with temporary_directory(_PREFIX, below) as work:
        sides = first, second
        forward = [_Way("forward", x, sides, (x.first, x.second), work) for x in cases]
        back = [
            _Way("backward", x, sides[::-1], (x.second, x.first), work)
            for x in cases
            if backward and (first != second or x.first != x.second)
        ]
        for way in [*forward, *back]:
            way.begun.mkdir(parents=True, exist_ok=True)

        def halves(ways: list[_Way], part: int) -> list[Half]:
            made = [way.half(part, events, only_stateful=only_stateful) for way in ways]
            return list({half.id: half for half in made}.values())

        dumped = work / "events"
        dump = [*events.generator_arguments, "--out", str(dumped), "--format", "parquet"]
        steps = [
            (first, halves(forward, 0)),
            (second, [*halves(forward, 1), *halves(back, 0)]),
            (first, halves(back, 1)),
        ]
        records = _run(steps, work, dump, events, say)
        found = {way.case: way for way in back}
        return [
            _comparison(way, found.get(way.case), records, dumped)
            for way in forward
            if records[way.ids[0]]["state"] != _LEFT_OUT
        ]


def write_corpus(
    side: Side, cases: Sequence[Case], events: Input, say: Say, directory: Path
) -> list[str]:
    """Leave the checkpoints of a side's first halves in a new directory; returns what is missing.

    <directory>/<query>-<formulation>/kept   the checkpoint, and which input it is of
    <directory>/corpus.json                  the build, the events, what became of each query

    ApplicationError: Spark does not start.
    """
    with temporary_directory(_PREFIX) as work:
        ways = [_Way("forward", x, (side, side), (x.first, x.first), work) for x in cases]
        for way in ways:
            way.begun.mkdir(parents=True)
        halves = [way.half(0, events, only_stateful=True) for way in ways]
        records = _run([(side, halves)], work, None, events, say)
        told = {way.begun.name: records[way.ids[0]]["state"] for way in ways}
        for way in ways:
            if told[way.begun.name] == "done":
                shutil.copytree(way.begun, directory / way.begun.name)
        about = {"build": side.build.id, "spark": side.build.version, "confs": dict(side.confs)}
        about |= {"input": events.run_arguments, "queries": told}
        write_whole(directory / "corpus.json", json.dumps(about, indent=1) + "\n")
    return [name for name, state in told.items() if state == "failed"]


def check_plans(
    first: Side,
    second: Side,
    cases: Sequence[Case],
    events: Input,
    say: Say,
    *,
    only_stateful: bool = False,
) -> list[Compatibility]:
    """Compare the plans of each case; nothing is run. See `check`."""
    with temporary_directory(_PREFIX) as work:

        def plan(case: Case, number: int) -> Half:
            side, formulation = ((first, case.first), (second, case.second))[number]
            return Half(
                f"{case}, plan {number + 1}",
                [
                    *("--query", case.query, "--formulation", formulation),
                    *("--result", f"{work}/result.json", *events.run_arguments),
                ],
                side.confs,
                only_plan=True,
                only_stateful=only_stateful,
            )

        steps = [(side, [plan(x, at) for x in cases]) for at, side in enumerate((first, second))]
        records = _run(steps, work, None, events, say)
        pairs = [(case, records[f"{case}, plan 1"], records[f"{case}, plan 2"]) for case in cases]
        return [
            Compatibility(case, *_plans(one, other, same_build=first.build == second.build))
            for case, one, other in pairs
            if one["state"] != _LEFT_OUT
        ]


def _run(
    steps: Sequence[tuple[Side, list[Half]]],
    work: Path,
    dump: list[str] | None,
    events: Input,
    say: Say,
) -> Records:
    """Run the halves of the steps, in as few applications as there are changes of the build."""
    runs = groupby((step for step in steps if step[1]), key=lambda step: step[0].build.id)
    records: dict[str, Mapping[str, Any]] = {}
    for number, (_, same) in enumerate(runs, start=1):
        sides, lists = zip(*same, strict=True)
        build, halves = sides[0].build, [half for each in lists for half in each]
        every = {half.id for half in halves}
        here = []
        for half in halves:
            if half.after in every:
                here.append(half)
            elif half.after is None or records[half.after]["state"] == "done":
                here.append(replace(half, after=None))
            else:
                records[half.id] = {"state": _LEFT_OUT, "plan": {}}
        say(f"Spark {build.version}: {len(here)} halves of queries, application {number}")
        place = work / f"application-{number}"
        application = Application(build, here, place, dump, events.formulations)
        records |= application.run(say) if here else {}
        dump = None
    return records


def _comparison(
    forward: _Way, backward: _Way | None, records: Records, events: Path
) -> Compatibility:
    case = forward.case
    begun, resumed = (records[id_] for id_ in forward.ids)
    other = resumed if backward is None else records[backward.ids[0]]
    first, second = forward.sides
    same_build = first.build.id == second.build.id
    planned = other if other.get("plan") else resumed
    plans, difference = _plans(begun, planned, same_build=same_build)
    outcome = _outcome(forward, records, events)
    back = outcome if first == second and case.first == case.second else None
    carried = carried_confs(forward.begun / "kept" / "checkpoint")
    ignored = overruled(carried, second.confs, "the second side")
    if backward is not None:
        back = _outcome(backward, records, events)
        own = carried_confs(backward.begun / "kept" / "checkpoint")
        ignored += overruled(own, first.confs, "going back, the first side")
    ignored += [
        f"{name} is not a conf of a query, and was not set"
        for name in sorted({*begun.get("unset", ()), *other.get("unset", ())})
    ]
    return Compatibility(case, plans, difference, outcome, back, carried, tuple(ignored))


def _plans(
    one: Mapping[str, Any], other: Mapping[str, Any], *, same_build: bool
) -> tuple[tuple[QueryPlan | None, QueryPlan | None], PlanDifference | None]:
    first, second = (QueryPlan.read(x["plan"]) if x.get("plan") else None for x in (one, other))
    difference = compare(first, second, same_build=same_build) if first and second else None
    return (first, second), difference


def _outcome(way: _Way, records: Records, events: Path) -> Restart:
    """Return the outcome of both halves, with the final table compared with the reference."""
    begun, resumed = (records[id_] for id_ in way.ids)
    is_begun = begun["state"] == "done"
    half, table = resumed if is_begun else begun, way.directory / _TABLE
    found = ended(half, way.case.query, table, events)
    return found if is_begun else replace(found, ending=Ending.NOT_BEGUN)


def ended(record: Mapping[str, Any], query: str, table: Path, events: Path) -> Restart:
    """The ending of a half; of one that is done, whether its final table equals the reference.

    An error of Spark's has a class. An application that died, or was ended, has none.
    """
    if record["state"] == "wrong":
        return Restart(Ending.WRONG, reason=record["reason"])
    if record["state"] != "done":
        refused = record.get("error_class", "")
        reason = record.get("reason", "").replace(f"{events.parent}/", "")
        return Restart(Ending.REFUSED if refused else Ending.NOT_ENDED, refused, reason)

    from nexmark.expectations.contract import ExpectationsError
    from nexmark.expectations.suites import validate

    try:
        found = validate(query, table, events)
    except ExpectationsError as error:
        return Restart(Ending.WRONG, reason=str(error))
    if found.success:
        return Restart(Ending.RIGHT)
    wrong, rows = (found.statistics[name] for name in ("unexpected_rows", "rows"))
    told = f"{wrong} of {rows} rows are not in the reference"
    return Restart(Ending.WRONG, reason=told if wrong else found.failures[0])
