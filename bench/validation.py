"""Measure what the validation of a night's results costs, in CPU-seconds of the checking process.

A night validates each query over the generated events and over the boundary events, and writes
Data Docs. Here the reference SQL makes the outputs, so they are right. Dump the events first, in
the size of the workload's ``verify``:

    python nexmark_jobs/dump_events.py --events 100000 --tps 1000 --seed 1 \\
        --format parquet --out DIR
    python -m bench.validation --events DIR
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from nexmark.config.fields import STANDARD_QUERIES
from nexmark.expectations import suites
from nexmark.expectations.checks import reference_sql
from nexmark.expectations.contract import contract
from nexmark.expectations.tables import open_events
from nexmark_jobs import boundary

_WINDOWS = "TIMESTAMP '2020-01-01' + to_seconds(10 * (n // 500))"
#: The reference of q12 has no windows: an engine's clock gives their times.
_RIGHT_Q12 = f"""
SELECT bidder, count(*) AS bid_count, {_WINDOWS} AS starttime,
       {_WINDOWS} + INTERVAL 10 SECOND AS endtime
FROM bid GROUP BY ALL"""


def cpu() -> float:
    """Return the CPU-seconds of this process, in user and system mode."""
    return sum(os.times()[:2])


def write_outputs(events_dir: Path, out: Path) -> None:
    """Write a right output of every query, each in a directory of its name."""
    with open_events(events_dir) as events:
        for query in STANDARD_QUERIES:
            columns = contract(query).columns
            casts = ", ".join(f"CAST({c.name} AS {c.type}) AS {c.name}" for c in columns)
            rows = _RIGHT_Q12 if query == "q12" else reference_sql(query)
            (out / query).mkdir(parents=True)
            copied = f"(SELECT {casts} FROM ({rows})) TO '{out / query}/part-0.parquet'"
            events.connection.execute(f"COPY {copied}")


def main() -> None:
    """Print a line with the cost of the import, and one with the cost of all validations."""
    parser = argparse.ArgumentParser(prog="bench.validation", description="See the file's comment.")
    parser.add_argument("--events", type=Path, required=True, help="Directory of dumped events.")
    generated = parser.parse_args().events
    with tempfile.TemporaryDirectory(prefix="nexmark-validation-") as name:
        home = Path(name)
        (home / "boundary").mkdir()
        boundary.write(home / "boundary")
        inputs = {"generated": generated, "boundary": home / "boundary"}
        for each, directory in inputs.items():
            write_outputs(directory, home / each / "out")
        begun = cpu()
        suites.build_suite(contract("q0"))
        imported = cpu()
        for query in STANDARD_QUERIES:
            for each, directory in inputs.items():
                output, docs = home / each / "out" / query, home / "docs"
                outcome = suites.validate(query, output, directory, docs, name=f"{query}_{each}")
                assert outcome.success, outcome.failures
        count = len(STANDARD_QUERIES) * len(inputs)
        print(f"import of Great Expectations  {imported - begun:6.1f} CPU-s")
        print(f"{count} validations, Data Docs  {cpu() - imported:6.1f} CPU-s")


if __name__ == "__main__":
    main()
