"""Does the gate find real regressions? `nexmark bench detection`.

Runs nights of pairs on real Spark through the real DAG. First come nights of the newest build
against itself that must not alarm. Then comes a night for each cause, which only the candidate has,
with more pairs that show its true effect. A line is printed as soon as it is known.
Each night is judged as a first night, without history. With `--nights N`, one long night of the
build against itself comes before all others, and is cut into N nights that the gate learns from.
A night that is INVALID says nothing about the gate: it is run again, and a line says so. All
measurements are kept: after Ctrl-C the same command continues where it stopped.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from functools import partial

from bench.arguments import Parser, given
from bench.detection.bench import WORKLOAD, Bench, Settings
from bench.detection.causes import CAUSES, Cause, choose
from bench.detection.rows import HEAD, line
from nexmark.config import load, paths, pick
from nexmark.errors import NexmarkError
from nexmark.terminal import INTERRUPTED, run_command, show_line

FEWEST = 3
"""The least number of pairs of a night, and of nights that teach the gate, if there are any."""
SAME = "nothing"
"""The cause of a night of a build against itself."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit code.

    It is 1 if a night could not be run, or if a night of a build against itself was red.
    """
    options = _parser().parse_args(arguments)
    if options.list:
        for cause in CAUSES:
            show_line(f"{cause.name:<13} {cause.query:<15} {cause.what}")
        return 0
    code = run_command(partial(_bench, options))
    if code == INTERRUPTED:
        show_line("interrupted: the same command goes on where it was")
    return code


def _parser() -> Parser:
    parser = Parser(prog="nexmark bench detection", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--list", action="store_true", help="the causes, and nothing is run")
    parser.add_argument("--cause", action=_Names, default=[], help="only these, as codegen,sort")
    parser.add_argument("--query", action=_Names, default=[], help="only causes of these queries")
    parser.add_argument(
        "--workload", type=given, help="of workloads.yaml (default: one of its own)"
    )
    parser.add_argument("--pairs", type=int, default=5, help="first pairs of a night (5)")
    parser.add_argument("--nights", type=int, default=0, help="A/A nights to learn from first (0)")
    parser.add_argument("--silent", type=int, default=1, help="A/A nights that are judged (1)")
    parser.add_argument("--more", type=int, default=10, help="more pairs for the true effect (10)")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    return parser


class _Names(argparse.Action):
    """An option that collects names, which commas separate, or which are given one by one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option: str | None = None,
    ) -> None:
        names = [name.strip() for name in str(values).split(",")]
        if not all(names):
            parser.error(f"argument {option}: an empty name in {values!r}; write it like a,b")
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), *names])


def _bench(options: argparse.Namespace) -> int:
    """Run the nights that the command line asks for; return the exit code."""
    config = load()
    if options.workload:
        pick("workload", options.workload, config.workloads)
    causes = choose(options.cause, options.query)
    _check(options)
    directory = paths.home() / "detection"
    if options.fresh:
        shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True, exist_ok=True)
    bench = Bench(directory, Settings(options.workload or "", options.pairs, options.nights))
    show_line(
        f"{bench.engine.name}, workload {options.workload or WORKLOAD}, load "
        f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {directory}"
    )
    show_line(HEAD)
    wrong = 0
    for text, red, cause in measure(bench, causes, options.silent, options.more):
        show_line(text)
        wrong += red and cause == SAME
    if wrong:
        print(f"red nights of a build against itself: {wrong}", file=sys.stderr)
    return 1 if wrong else 0


def _check(options: argparse.Namespace) -> None:
    """Raise NexmarkError if the numbers of pairs or nights cannot be."""
    count = options.pairs * max(options.nights, 1)
    if not 1 <= count <= 100:
        raise NexmarkError(f"repetitions: {count} is not in 1 to 100; correct it")
    if options.pairs < FEWEST:
        raise NexmarkError(f"--pairs {options.pairs}: a night needs {FEWEST} at least; give more")
    if options.nights and options.nights < FEWEST:
        raise NexmarkError(
            f"--nights {options.nights}: the gate learns from {FEWEST} nights at least; give "
            f"{FEWEST}, or 0 for first nights without history"
        )
    if options.silent < 0 or not 0 <= options.more <= 100:
        raise NexmarkError("--silent and --more: give 0 or more, and at most 100 pairs")


def measure(
    bench: Bench, causes: Sequence[Cause], silent: int, more: int
) -> Iterator[tuple[str, bool, str]]:
    """Run all nights; yield each line as soon as it is known, whether it is red, and its cause.

    Args:
        bench: The benchmark.
        causes: The causes that are measured.
        silent: The number of judged nights of a build against itself, for each query.
        more: The number of additional pairs of each cause; 0 for none.
    """
    queries = list(dict.fromkeys(cause.query for cause in causes))
    learned = bench.learn(queries)
    for query in queries:
        nights = [bench.silent(query, number + 1) for number in range(silent)]
        of_build_itself = [*nights, *([learned[query]] if query in learned else [])]
        with bench.store() as store:
            for night in nights:
                yield *line(store, SAME, query, night, of_build_itself), SAME
    for cause in causes:
        judged = bench.judged(cause)
        measured = [judged, *([bench.more(cause, more)] if more else [])]
        with bench.store() as store:
            yield *line(store, cause.name, cause.query, judged, measured), cause.name


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
