"""Run several queries in one application: see --help.

This is for runs that are not timed: it saves the start of a JVM and of executors per query. Each
query has a session of its own, so that no conf and no temporary view reaches another one. If a
query fails, this is noted and the others are run. Two run at a time, because most of a short query
is the driver's planning, which uses one core.

The plan is a JSON file: a list of {"query": "q5", "arguments": [...]} with the arguments of
`run_query.py`. A line of JSON is appended to the log when a query begins, is done or has failed:
{"query": "q5", "state": "begun" | "done" | "failed", "reason": "..."}. After a crash, the log
names the queries that were running.

Exit codes: 0 all queries were tried, 1 the application failed, 2 wrong arguments.
"""

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # spark-submit puts this file's own directory first
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from nexmark_jobs.bytecode import use_directory

    use_directory()

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from nexmark_jobs.errors import JobError, UsageError, one_line
from nexmark_jobs.exit_code import command, exit_with
from nexmark_jobs.options import parse
from nexmark_jobs.progress_lines import QUERY_ENDED
from nexmark_jobs.run_query import complete


def verify(spark: SparkSession, queries: list[dict[str, Any]], log: Path, at_once: int) -> int:
    """Run the queries of a plan; return how many have failed.

    Args:
        spark: the session; each query has a new one of its application.
        queries: the entries of the plan.
        log: the file to which a line is appended when a query begins and when it ends.
        at_once: how many queries run at a time.
    """
    ended = count(1)

    def run(each: dict[str, Any]) -> bool:
        name, reason = str(each["query"]), ""
        note(log, query=name, state="begun", reason="")
        try:
            complete(spark.newSession(), parse(each["arguments"]), quiet=True)
        except (JobError, PySparkException, OSError) as error:
            reason = one_line(error)
        note(log, query=name, state="failed" if reason else "done", reason=reason)
        how = f"failed: {reason}" if reason else "ran to its end"
        print(QUERY_ENDED.format(next(ended), len(queries), name, how), flush=True)
        return bool(reason)

    with ThreadPoolExecutor(at_once) as pool:
        return sum(pool.map(run, queries))


def note(log: Path, **line: Any) -> None:
    """Append a line to a log."""
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def plan_parser(program: str, about: str | None) -> argparse.ArgumentParser:
    """Return a parser of `--plan` and `--log`."""
    parser = argparse.ArgumentParser(prog=program, description=about)
    parser.add_argument("--plan", type=Path, required=True, metavar="FILE")
    parser.add_argument("--log", type=Path, required=True, metavar="FILE")
    return parser


def read_plan(path: Path, *keys: str) -> Any:
    """Return the object, or the list of objects, in a JSON file; UsageError if one lacks a key."""
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"--plan {path}: {error}; give a JSON file") from None
    for each in plan if isinstance(plan, list) else [plan]:
        if not isinstance(each, dict) or not set(keys) <= each.keys():
            raise UsageError(f"--plan {path}: is not made of objects with {' and '.join(keys)}")
    return plan


@command("verify_queries.py")
def main(arguments: list[str]) -> None:
    """Read the plan and run its queries; see the docstring of this file."""
    parser = plan_parser("verify_queries.py", __doc__)
    parser.add_argument("--at-once", type=int, choices=(1, 2), default=2, help="default: 2")
    given = parser.parse_args(arguments)
    queries = read_plan(given.plan, "query", "arguments")
    with SparkSession.builder.appName("nexmark verification").getOrCreate() as spark:
        failed = verify(spark, queries, given.log, given.at_once)
        print(f"{len(queries) - failed} of {len(queries)} queries ran to their end", flush=True)


if __name__ == "__main__":
    exit_with(main(sys.argv[1:]))
