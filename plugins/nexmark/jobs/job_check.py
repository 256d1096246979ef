"""Run a job small, before a night runs it: does it run on every engine, and is it right?"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexmark.config import Job
from nexmark.engines import Build
from nexmark.experiments.local_applications import RESULT, LocalApplications
from nexmark.inputs.layout import lay_out
from nexmark.model import Say

if TYPE_CHECKING:
    from nexmark.expectations.suites import ValidationOutcome

_EVENTS = {"--events": "20000", "--tps": "1000", "--seed": "1"}
_BATCH, _BATCHES = 10_000, 2
_ROWS = 3
_MEMORY = "1g"
_CONFS = {"spark.sql.shuffle.partitions": "2"}


@dataclass(frozen=True)
class Checked:
    """What a check of a job found on one engine.

    Attributes:
        engine: the engine.
        version: the version of its build.
        result: the result file of the run.
        columns: the columns of the output with their types, as DuckDB names them.
        rows: the first rows of the output.
        outcome: whether the rows are right.
    """

    engine: str
    version: str
    result: Mapping[str, Any]
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    outcome: ValidationOutcome

    def lines(self) -> Iterator[str]:
        """Yield what a person reads of it."""
        plan, statistics = self.result["plan"], self.outcome.statistics
        yield f"columns: {', '.join(self.columns)}"
        yield "plan:"
        yield from (f"  {line}" for line in plan["skeleton"].splitlines())
        operators = self.result["state"]["operators"]
        kept = [f"{each['name']} ({each['rows']} rows at the end)" for each in operators]
        yield f"keeps state: {', '.join(kept) or 'nothing'}"
        yield f"rows: {statistics['rows']} of {self.result['input_rows']} events, the first ones:"
        yield from (f"  {', '.join(map(str, row))}" for row in self.rows)
        if self.outcome.failures:
            yield from (f"WRONG: {failure}" for failure in self.outcome.failures)
        elif statistics["proven"]:
            yield f"right: {statistics['reference_rows']} rows equal the reference; two runs agree"
        else:
            yield "two runs agree; not proven: the job has no reference"


@dataclass(frozen=True)
class JobCheck:
    """Checks a job in applications of its own below `work`, which is removed at the end.

    Attributes:
        job: the job.
        work: a directory of its own.
        say: called with each line of progress.
    """

    job: Job
    work: Path
    say: Say

    def on(self, engine: str, build: Build) -> Checked:
        """Run the job twice on a build, and compare its rows; NexmarkError if it does not run.

        Args:
            engine: The name of the engine.
            build: Its build.
        """
        from nexmark.expectations.own_results import validate_own

        self.say(f"{engine}: runs {self.job.name}, twice")
        events = self.events(build)
        place = self._run_job(build, self._arguments(engine), engine)
        again, output = (self._below(engine, name) for name in ("again", "output"))
        outcome = validate_own(self.job, output, events, again_dir=again)
        columns, rows = _shown(output)
        result = _read(place / RESULT)
        return Checked(engine, build.version, result, columns, rows, outcome)

    def runs_on(self, engine: str, build: Build) -> None:
        """Run the job once on a build, after `on`; NexmarkError if it does not run."""
        self.say(f"{engine}: runs {self.job.name}")
        self._run_job(build, self._arguments(engine, is_short=True), engine)

    def events(self, build: Build) -> Path:
        """Return what the job reads: events, written by a build once, or the first of its rows."""
        directory = self.work / "events"
        if not directory.exists() and self.job.own_tables is not None:
            lay_out(self.job.in_batches_of(_BATCH), directory, self.say, _BATCHES)
        elif not directory.exists():
            words = [word for pair in _EVENTS.items() for word in pair]
            arguments = [*words, "--out", str(directory), "--format", "parquet"]
            self._run(build, "dump_events.py", arguments, _CONFS, "dump")
        return directory

    @property
    def _jobs(self) -> Path:
        return self.work / "jobs"

    def _below(self, engine: str, name: str) -> Path:
        return self.work / f"{engine}-{name}"

    def _arguments(self, engine: str, *, is_short: bool = False) -> list[str]:
        self.job.write(self._jobs)
        result = self.work / engine / RESULT
        words = ["--query", self.job.name, "--jobs", str(self._jobs), "--result", str(result)]
        if self.job.own_tables is not None:
            words += ["--source", f"tables:{self.work / 'events'}"]
        else:
            words += [word for pair in _EVENTS.items() for word in pair]
            words += ["--rows-per-batch", str(_BATCH)]
        if is_short:
            return words
        again, output = (self._below(engine, name) for name in ("again", "output"))
        return [*words, "--sink", f"parquet:{output}", "--again", str(again)]

    def _run_job(self, build: Build, arguments: list[str], name: str) -> Path:
        confs, jars = {**_CONFS, **self.job.confs}, self.job.jar_paths(self._jobs)
        confs |= {"spark.jars": ",".join(map(str, jars))} if jars else {}
        return self._run(build, "run_query.py", arguments, confs, name)

    def _run(
        self,
        build: Build,
        program: str,
        arguments: list[str],
        confs: Mapping[str, str],
        name: str,
    ) -> Path:
        applications = LocalApplications(self.work)
        return applications.run(build, program, arguments, confs=confs, memory=_MEMORY, name=name)


def checked_in(work: Path, job: Job, say: Say, run: Callable[[JobCheck], int]) -> int:
    """Return what `run` returns of a check in `work`, which is removed at the end.

    Args:
        work: A directory for the check alone.
        job: The job.
        say: Called with each line of progress.
        run: Makes the check.
    """
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        return run(JobCheck(job, work, say))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _read(path: Path) -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _shown(output: Path) -> tuple[tuple[str, ...], tuple[tuple[object, ...], ...]]:
    """Return the columns and the first rows of an output."""
    from nexmark.expectations.own_results import first_rows

    columns, rows = first_rows(output, _ROWS)
    return tuple(map(str, columns)), tuple(rows)
