"""Measure how steady the canary is on this host: ``python -m bench.canary``.

Runs the canary a number of times, each in a Python process of its own, as on the hosts of a
cluster. Prints for each timing how far the runs spread, and how far two successive runs are apart;
then the range of each level. The gate grades a night by the same distance, from the reading before
a query to the reading after it (``canary_bound`` and ``canary_unsteady`` in gate.yaml).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

PROGRAM = (
    "import json, sys; from nexmark_jobs.host import canary; "
    "print(json.dumps(canary.main(json.load(sys.stdin))))"
)
TIMING = "_s"
"""The names of timings end with this suffix; the names of levels do not."""


@dataclass(frozen=True)
class Spread:
    """The spread of a timing: its median in seconds; the rest are fractions of it (0.05 is 5 %).

    ``deviation`` is the standard deviation, ``range`` the largest value minus the smallest,
    ``apart`` and ``worst_apart`` the median and the largest distance of two successive runs.
    """

    median_s: float
    deviation: float
    range: float
    apart: float
    worst_apart: float


def spread(seconds: Sequence[float]) -> Spread:
    """Return the spread of a timing over two or more runs, in their order."""
    values = np.asarray(seconds, dtype=np.float64)
    middle = float(np.median(values))
    apart = np.expm1(np.abs(np.diff(np.log(values))))
    return Spread(
        middle,
        float(values.std(ddof=1)) / middle,
        float(np.ptp(values)) / middle,
        float(np.median(apart)),
        float(apart.max()),
    )


def run(directory: str) -> dict[str, Any]:
    """Run the canary once in a Python process of its own, and return its answer."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps({"directory": directory}),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main(argv: Sequence[str] | None = None) -> int:
    """Print the spread of every timing and the range of every level; return 0."""
    parser = argparse.ArgumentParser(prog="nexmark bench canary", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="at least 2")
    parser.add_argument("--directory", default=tempfile.gettempdir(), help="where fsync writes")
    args = parser.parse_args(argv)
    if args.runs < 2:
        parser.error("--runs: one run has no spread; give 2 or more")
    answers = [run(args.directory) for _ in range(args.runs)]
    names = list(dict.fromkeys(name for answer in answers for name in answer["metrics"]))
    metrics = [answer["metrics"] for answer in answers]
    columns = {name: [values[name] for values in metrics if name in values] for name in names}
    elapsed = [answer["elapsed_s"] for answer in answers]
    print(f"canary: {args.runs} runs of {np.median(elapsed):.1f} s (at most {max(elapsed):.1f} s)")
    problems = dict.fromkeys(problem for answer in answers for problem in answer["problems"])
    for problem in problems:
        print(f"  {problem}")
    for name, values in columns.items():
        print(_timing(name, values) if name.endswith(TIMING) else _level(name, values))
    return 0


def _timing(name: str, values: Sequence[float]) -> str:
    """Return the line of a timing: its median, its spread and the distance of successive runs."""
    if len(values) < 2:
        return f"  {name:<14} one run only"
    measured = spread(values)
    return (
        f"  {name:<14} {1000 * measured.median_s:8.3f} ms, deviation {measured.deviation:6.1%}, "
        f"range {measured.range:6.1%}; two in a row {measured.apart:6.1%} apart, "
        f"at most {measured.worst_apart:.1%}"
    )


def _level(name: str, values: Sequence[float]) -> str:
    """Return the line of a level: its median and its range."""
    return f"  {name:<14} {np.median(values):8.2f}, from {min(values):.2f} to {max(values):.2f}"


if __name__ == "__main__":
    sys.exit(main())
