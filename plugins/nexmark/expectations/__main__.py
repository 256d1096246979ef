"""Validate one query's output by hand: ``python -m nexmark.expectations --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from nexmark.expectations import ExpectationsError, ValidationOutcome, validate
from nexmark.expectations.outputs import SINKS


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the result; return 0 if the output is right, 1 if it is wrong, 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m nexmark.expectations",
        description="Say whether the output of a query is right, against the reference by DuckDB.",
    )
    parser.add_argument("--query", required=True, help="q0 .. q23, q14_python_udf")
    parser.add_argument("--events", required=True, metavar="DIR", help="dumped or recorded events")
    parser.add_argument("--output", required=True, metavar="DIR", help="what the query job wrote")
    parser.add_argument("--sink", default="parquet", help=f"{' or '.join(SINKS)} (q10 only)")
    parser.add_argument("--data-docs", metavar="DIR", help="add the result to the Data Docs there")
    options = parser.parse_args(arguments)
    try:
        outcome = validate(
            options.query, options.output, options.events, options.data_docs, options.sink
        )
    except ExpectationsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(_report(outcome))
    return 0 if outcome.success else 1


def _report(outcome: ValidationOutcome) -> str:
    numbers = outcome.statistics
    met = outcome.expectations_evaluated - outcome.expectations_failed
    lines = [
        f"{outcome.query}: {'right' if outcome.success else 'WRONG'}: {met} of "
        f"{outcome.expectations_evaluated} expectations met; {numbers['rows']} rows, reference "
        f"{numbers['reference_rows']}, from {numbers['events']} events in {numbers['seconds']} s"
    ]
    lines += [f"  {failure}" for failure in outcome.failures]
    if outcome.docs:
        lines.append(f"Data Docs: {outcome.docs}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
