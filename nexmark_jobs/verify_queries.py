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

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # spark-submit puts this file's own directory first
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from nexmark_jobs.ending import JobError, UsageError, end, one_line
from nexmark_jobs.options import parse
from nexmark_jobs.run_query import complete


def verify(spark: SparkSession, queries: list[dict[str, Any]], log: Path) -> int:
    """Run the queries of a plan; returns how many have failed."""
    failed = 0
    for number, each in enumerate(queries, start=1):
        name = str(each["query"])
        print(f"{name} ({number} of {len(queries)})", flush=True)
        _note(log, name, "begun")
        try:
            complete(spark.newSession(), parse(each["arguments"]))
        except (JobError, PySparkException, OSError) as error:
            failed += 1
            print(f"{name}: failed: {one_line(error)}", flush=True)
            _note(log, name, "failed", one_line(error))
        else:
            _note(log, name, "done")
        finally:
            spark.catalog.clearCache()
    return failed


def _note(log: Path, query: str, state: str, reason: str = "") -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"query": query, "state": state, "reason": reason}) + "\n")


def _plan(path: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"--plan {path}: {error}; give a JSON file") from None
    keys = {"query", "arguments"}
    if not isinstance(found, list) or not all(keys <= each.keys() for each in found):
        raise UsageError(f"--plan {path}: is not a list of objects with query and arguments")
    return found


def main(arguments: list[str]) -> int:
    """Run as a command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="verify_queries.py", description=__doc__)
    parser.add_argument("--plan", type=Path, required=True, metavar="FILE")
    parser.add_argument("--log", type=Path, required=True, metavar="FILE")
    given = parser.parse_args(arguments)
    spark = None
    try:
        queries = _plan(given.plan)
        spark = SparkSession.builder.appName("nexmark verification").getOrCreate()
        failed = verify(spark, queries, given.log)
        print(f"{len(queries) - failed} of {len(queries)} queries ran to their end", flush=True)
    except (JobError, PySparkException, OSError) as error:
        print(f"verify_queries.py: error: {one_line(error)}", file=sys.stderr)
        return error.exit_code if isinstance(error, JobError) else 1
    finally:
        if spark is not None:
            spark.stop()
    return 0


if __name__ == "__main__":
    end(main(sys.argv[1:]))
