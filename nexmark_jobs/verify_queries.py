"""Runs several queries one after the other in one application: see --help.

For runs that are not timed: it saves the start of a JVM and of executors per query. Each query has
a session of its own, so that no conf and no temporary view reaches the next one. A query that fails
is noted and the others go on.

The plan is a JSON file: a list of {"query": "q5", "arguments": [...]} with the arguments of
`run_query.py`. A line of JSON is appended to the log when a query begins, is done or has failed:
{"query": "q5", "state": "begun" | "done" | "failed", "reason": "..."}. Whoever reads the log after
a crash finds there which query was running.

Exit codes: 0 all were tried, 1 the application failed, 2 wrong arguments.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # spark-submit puts this file's own directory first
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from nexmark_jobs.ending import JobError, UsageError, command, end, one_line
from nexmark_jobs.options import parse
from nexmark_jobs.run_query import complete
from nexmark_jobs.session import spark_application


def verify(spark: SparkSession, queries: list[dict[str, Any]], log: Path) -> int:
    """Run the queries of a plan; returns how many have failed."""
    failed = 0
    for number, each in enumerate(queries, start=1):
        name = str(each["query"])
        print(f"{name} ({number} of {len(queries)})", flush=True)
        note(log, query=name, state="begun", reason="")
        state, reason = "done", ""
        try:
            complete(spark.newSession(), parse(each["arguments"]))
        except (JobError, PySparkException, OSError) as error:
            failed += 1
            state, reason = "failed", one_line(error)
            print(f"{name}: failed: {reason}", flush=True)
        finally:
            spark.catalog.clearCache()
        note(log, query=name, state=state, reason=reason)
    return failed


def note(log: Path, **line: Any) -> None:
    """Append a line to a log."""
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def plan_and_log(
    program: str, about: str | None, arguments: list[str], is_plan: Callable[[Any], bool], what: str
) -> tuple[Any, Path]:
    """The content of the file `--plan`, which `is_plan`, and the path `--log`; else UsageError."""
    parser = argparse.ArgumentParser(prog=program, description=about)
    parser.add_argument("--plan", type=Path, required=True, metavar="FILE")
    parser.add_argument("--log", type=Path, required=True, metavar="FILE")
    given = parser.parse_args(arguments)
    try:
        plan = json.loads(given.plan.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"--plan {given.plan}: {error}; give a JSON file") from None
    if not is_plan(plan):
        raise UsageError(f"--plan {given.plan}: is {what}")
    return plan, given.log


def _is_plan(found: Any) -> bool:
    return isinstance(found, list) and all({"query", "arguments"} <= x.keys() for x in found)


@command("verify_queries.py")
def main(arguments: list[str]) -> None:
    """Run as a command; returns the exit code."""
    what = "not a list of objects with query and arguments"
    queries, log = plan_and_log("verify_queries.py", __doc__, arguments, _is_plan, what)
    with spark_application("nexmark verification") as spark:
        failed = verify(spark, queries, log)
        print(f"{len(queries) - failed} of {len(queries)} queries ran to their end", flush=True)


if __name__ == "__main__":
    end(main(sys.argv[1:]))
