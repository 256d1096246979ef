"""Start queries, and resume queries that another Spark build has started: see --help.

All runs are in one application, because the start of Spark costs more than half of a run. Each run
has a session of its own. A run that fails is noted, and the next one begins.

The plan is a JSON file:

    {"dump": [arguments of dump_events.py] or null,
     "formulations": a file for `queries.add_formulations`, or null,
     "runs": [{"id": "..", "arguments": [arguments of run_query.py], "confs": {Spark conf: value},
               "after": id of the run that must be done before, or null,
               "copies": [directory, copy of it to make before], or null,
               "only_plan": do not run it, "only_stateful": do not run it without state}]}

A line of JSON is appended to the log when a run begins and when it ends:
{"id": "..", "state": "begun" | "done" | "wrong" | "failed" | "left out", "plan": {..},
"error_class": "..", "reason": "..", "unset": [confs that a session cannot have]}. A run is wrong
if Spark dropped rows behind the watermark. After a crash, the log names the run that was going on.

Exit codes: 0 all runs were tried, 1 the application failed, 2 wrong arguments.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # run by itself, Python puts this file's own directory first
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from nexmark_jobs.bytecode import use_directory

    use_directory()

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from nexmark_jobs import dump_events
from nexmark_jobs.errors import JobError, LateRowsError, QueryFailedError, error_class, one_line
from nexmark_jobs.exit_code import command, exit_with
from nexmark_jobs.options import DatagenOptions, Options, TablesOptions, parse
from nexmark_jobs.plan_fingerprint import fingerprint
from nexmark_jobs.queries import Source, Streams, add_formulations
from nexmark_jobs.run_query import run as run_query
from nexmark_jobs.session import work_directory
from nexmark_jobs.sources.datagen import Datagen
from nexmark_jobs.sources.table_files import open_tables
from nexmark_jobs.stateful_operators import stateful_operators
from nexmark_jobs.verify_queries import note, plan_parser, read_plan

_FIELDS_SHOWN = "spark.sql.debug.maxToStringFields"
RunPlan = dict[str, Any]


@dataclass
class CheckpointRuns:
    """The runs of one application, and the log of their outcomes."""

    spark: SparkSession
    log: Path
    done: set[str] = field(default_factory=set)

    def try_all(self, runs: list[RunPlan]) -> None:
        """Make the runs, one after the other."""
        for run in runs:
            note(self.log, id=run["id"], state="begun")
            plan: dict[str, Any] = {}
            session = self.spark.newSession()
            unset = [name for name in run["confs"] if not session.conf.isModifiable(name)]
            for name in run["confs"].keys() - set(unset):
                session.conf.set(name, run["confs"][name])
            try:
                state, reason = self._try(session, run, plan)
                note(self.log, id=run["id"], state=state, plan=plan, reason=reason, unset=unset)
            except LateRowsError as error:  # Spark itself reported no error
                note(self.log, id=run["id"], state="wrong", plan=plan, reason=str(error))
            except (JobError, PySparkException, Py4JJavaError, OSError) as error:
                cause = error.causes if isinstance(error, QueryFailedError) else error
                why = {"error_class": error_class(cause), "reason": one_line(cause)}
                note(self.log, id=run["id"], state="failed", plan=plan, **why)
            finally:
                self.spark.catalog.clearCache()

    def _try(self, session: SparkSession, run: RunPlan, plan: dict[str, Any]) -> tuple[str, str]:
        """Return the outcome of a run and the reason; write the query's plan into `plan`."""
        options = parse(run["arguments"])
        plan.update(describe(session, options))
        if run["after"] is not None and run["after"] not in self.done:
            return "left out", "the run before it was not done"
        if run["only_stateful"] and not plan["operators"]:
            return "left out", "keeps no state"
        if run["copies"]:
            shutil.copytree(*run["copies"])
        if not run["only_plan"]:
            run_query(session, options, quiet=True)
        self.done.add(run["id"])
        return "done", ""


def describe(spark: SparkSession, options: Options) -> dict[str, Any]:
    """Return the plan of a query, without running it."""
    spark.conf.set(_FIELDS_SHOWN, "10000")
    query = options.query
    with _source(spark, options) as source:
        frame = query.formulation(spark.version, options.formulation).build(Streams(spark, source))
        operators = [asdict(operator) for operator in stateful_operators(frame)]
        return {**asdict(fingerprint(frame)), "operators": operators}


@contextmanager
def _source(spark: SparkSession, options: Options) -> Iterator[Source]:
    """Yield what a query reads: generated events, or the tables of a person's own job."""
    given, closes = options.source, options.query.needs_end_of_input
    if isinstance(given, TablesOptions):
        with work_directory(spark, options.query.name) as work:
            yield open_tables(spark, given.directory, work, end_of_input=closes)[0]
        return
    assert isinstance(given, DatagenOptions)
    yield Datagen(spark, given.config, given.events, given.rows_per_batch, closes)


@command("resume_queries.py")
def main(arguments: list[str]) -> None:
    """Read the plan and make its runs; see the docstring of this file."""
    given = plan_parser("resume_queries.py", __doc__).parse_args(arguments)
    plan = read_plan(given.plan, "dump", "formulations", "runs")
    if plan["formulations"]:
        add_formulations(Path(plan["formulations"]))
    with SparkSession.builder.appName("nexmark compatibility").getOrCreate() as spark:
        if plan["dump"]:
            dump_events.dump(spark, dump_events.parse(plan["dump"]))
        CheckpointRuns(spark, given.log).try_all(plan["runs"])


if __name__ == "__main__":
    exit_with(main(sys.argv[1:]))
