"""Measure what the CPU sampler costs on this host: ``python -m bench.sampler``.

Runs the sampler beside some idle processes and one small tree of processes that it follows. Prints
the CPU time that the sampler reports of itself, start-up included, as a share of one core.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

BUDGET_PERCENT = 0.5
"""The most CPU time of the sampler, in percent of a core."""
TREE = "import os, time; os.fork(); time.sleep({})"


@dataclass(frozen=True)
class Cost:
    """The cost of a run of the sampler.

    The sampler used ``cpu_s`` CPU-seconds in ``elapsed_s`` seconds, for ``ticks`` readings at an
    interval of ``interval_s``; the host had ``processes`` processes.
    """

    processes: int
    interval_s: float
    ticks: int
    elapsed_s: float
    cpu_s: float

    @property
    def percent(self) -> float:
        """Return the CPU time as a share of one core, in percent."""
        return 100 * self.cpu_s / self.elapsed_s


def measure_cost(processes: int, seconds: float, interval_s: float) -> Cost:
    """Run the sampler beside additional idle processes; return its cost.

    `processes` is the number of idle processes, `seconds` the time for which the sampler runs, and
    `interval_s` the time from one reading to the next.
    """
    spec = find_spec("nexmark_jobs.cpu_sampler")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("nexmark_jobs/cpu_sampler.py is not installed; run `make env`")
    nap = str(seconds + 60)
    idle = [subprocess.Popen(["sleep", nap]) for _ in range(processes)]
    tree = subprocess.Popen([sys.executable, "-c", TREE.format(nap)], start_new_session=True)
    try:
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory, "samples.jsonl")
            arguments = ["--out", str(out), "--pid-file", str(Path(directory, "pid"))]
            arguments += ["--max-seconds", str(seconds), "--interval", str(interval_s)]
            arguments += ["--root-pid", str(tree.pid)]
            subprocess.run([sys.executable, spec.origin, *arguments], check=True)
            end = json.loads(out.read_text().splitlines()[-1])
        present = sum(entry.name.isdigit() for entry in Path("/proc").iterdir())
    finally:
        os.killpg(tree.pid, signal.SIGKILL)
        for process in [*idle, tree]:
            process.kill()
            process.wait()
    return Cost(present, interval_s, end["ticks"], end["elapsed_s"], end["self_cpu_s"])


def main(argv: Sequence[str] | None = None) -> int:
    """Print the cost; return 0, or 1 if it is above the budget of 0.5 % of a core."""
    parser = argparse.ArgumentParser(prog="nexmark bench sampler", description=__doc__)
    parser.add_argument("--processes", type=int, default=300, help="idle processes to add")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--interval", type=float, default=1.0)
    args = parser.parse_args(argv)
    cost = measure_cost(args.processes, args.seconds, args.interval)
    print(
        f"sampler: {cost.percent:.2f} % of a core ({cost.cpu_s:.3f} CPU-s"
        f" in {cost.elapsed_s:.1f} s, {cost.ticks} readings, {cost.processes} processes;"
        f" budget {BUDGET_PERCENT} %)"
    )
    return 0 if cost.percent < BUDGET_PERCENT else 1


if __name__ == "__main__":
    sys.exit(main())
