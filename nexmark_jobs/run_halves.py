"""Begins runs of queries and goes on with runs that another Spark build has begun: see --help.

All of them in one application, because the start of Spark costs more than a half of a run. Each has
a session of its own. One that fails is noted and the others go on.

The plan is a JSON file:

    {"dump": [arguments of dump_events.py] or null,
     "formulations": a file for `queries.add_formulations`, or null,
     "halves": [{"id": "..", "arguments": [arguments of run_query.py], "confs": {Spark conf: value},
                 "after": id of the half that must be done before, or null,
                 "copies": [directory, copy of it to make before], or null,
                 "only_plan": do not run it, "only_stateful": do not run it without state}]}

A line of JSON is appended to the log when a half begins and when it ends:
{"id": "..", "state": "begun" | "done" | "wrong" | "failed" | "left out", "plan": {..},
"error_class": "..", "reason": "..", "unset": [confs that a session cannot have]}. A half is wrong
if Spark dropped rows behind the watermark. Whoever reads the log after a crash finds there which
half was running.

Exit codes: 0 all were tried, 1 the application failed, 2 wrong arguments.
"""

import shutil
import sys
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
from nexmark_jobs.options import DatagenOptions, Options, parse
from nexmark_jobs.plan_fingerprint import fingerprint
from nexmark_jobs.queries import Streams, add_formulations
from nexmark_jobs.run_query import run
from nexmark_jobs.sources.datagen import Datagen
from nexmark_jobs.stateful_operators import stateful_operators
from nexmark_jobs.verify_queries import note, plan_parser, read_plan

_FIELDS_SHOWN = "spark.sql.debug.maxToStringFields"
Half = dict[str, Any]


@dataclass
class Halves:
    """The halves of one application, and the log of what became of them."""

    spark: SparkSession
    log: Path
    done: set[str] = field(default_factory=set)

    def try_all(self, halves: list[Half]) -> None:
        """Run the halves, one after the other."""
        for half in halves:
            note(self.log, id=half["id"], state="begun")
            plan: dict[str, Any] = {}
            session = self.spark.newSession()
            unset = [name for name in half["confs"] if not session.conf.isModifiable(name)]
            for name in half["confs"].keys() - set(unset):
                session.conf.set(name, half["confs"][name])
            try:
                state, reason = self._try(session, half, plan)
                note(self.log, id=half["id"], state=state, plan=plan, reason=reason, unset=unset)
            except LateRowsError as error:  # Spark itself went on without a word
                note(self.log, id=half["id"], state="wrong", plan=plan, reason=str(error))
            except (JobError, PySparkException, Py4JJavaError, OSError) as error:
                cause = error.causes if isinstance(error, QueryFailedError) else error
                why = {"error_class": error_class(cause), "reason": one_line(cause)}
                note(self.log, id=half["id"], state="failed", plan=plan, **why)
            finally:
                self.spark.catalog.clearCache()

    def _try(self, session: SparkSession, half: Half, plan: dict[str, Any]) -> tuple[str, str]:
        """Return the outcome of a half and its reason; write its plan into `plan`."""
        options = parse(half["arguments"])
        plan.update(describe(session, options))
        if half["after"] is not None and half["after"] not in self.done:
            return "left out", "the half before it was not done"
        if half["only_stateful"] and not plan["operators"]:
            return "left out", "keeps no state"
        if half["copies"]:
            shutil.copytree(*half["copies"])
        if not half["only_plan"]:
            run(session, options, quiet=True)
        self.done.add(half["id"])
        return "done", ""


def describe(spark: SparkSession, options: Options) -> dict[str, Any]:
    """The plan of a query of generated events, without running it."""
    spark.conf.set(_FIELDS_SHOWN, "10000")
    given, query = options.source, options.query
    assert isinstance(given, DatagenOptions)
    size = (given.events, given.rows_per_batch)
    source = Datagen(spark, given.config, *size, query.needs_end_of_input)
    frame = query.formulation(spark.version, options.formulation).build(Streams(spark, source))
    operators = [asdict(operator) for operator in stateful_operators(frame)]
    return {**asdict(fingerprint(frame)), "operators": operators}


@command("run_halves.py")
def main(arguments: list[str]) -> None:
    """Run as a command; returns the exit code."""
    given = plan_parser("run_halves.py", __doc__).parse_args(arguments)
    plan = read_plan(given.plan, "dump", "formulations", "halves")
    if plan["formulations"]:
        add_formulations(Path(plan["formulations"]))
    with SparkSession.builder.appName("nexmark compatibility").getOrCreate() as spark:
        if plan["dump"]:
            dump_events.dump(spark, dump_events.parse(plan["dump"]))
        Halves(spark, given.log).try_all(plan["halves"])


if __name__ == "__main__":
    exit_with(main(sys.argv[1:]))
