"""What the commands that run nights have in common: their options and how they end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import date
from typing import Any, NoReturn

from nexmark.config import Config, Engine
from nexmark.errors import NexmarkError
from nexmark.interrupts import terminated_as_interrupt
from nexmark.tasks.checks import pick

INTERRUPTED = 130

_PARAMS = (
    *("queries", "workload", "repetitions", "candidate_conf"),
    *("mode", "against", "cluster"),
)


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line, and ends with exit code 2."""

    def error(self, message: str) -> NoReturn:
        """End with `message`."""
        self.exit(2, f"{self.prog}: {message}; see --help\n")


class _Conf(argparse.Action):
    """Collects KEY=VALUE."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        key, found, value = str(values).partition("=")
        if not found:
            parser.error(f"{option}: {values!r} is not KEY=VALUE")
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), key: value})


def night_parser(program: str, summary: str | None) -> Parser:
    """A parser of the options that every night has."""
    parser = Parser(prog=program, description=(summary or "").split("\n\n")[0])
    parser.add_argument("--engine", default="", help="of engines.yaml (default: the newest)")
    parser.add_argument("--workload", default="", help="of workloads.yaml (default: smoke)")
    parser.add_argument("--queries", default="", help="q1,q5 (default: what the workload says)")
    parser.add_argument("--repetitions", type=int, help="timed repetitions of each query")
    parser.add_argument(
        "--candidate-conf",
        action=_Conf,
        metavar="KEY=VALUE",
        help="a Spark conf of the candidate alone; repeat for more",
    )
    parser.add_argument("--mode", default="", help="bounds, paired or history (gate.yaml)")
    parser.add_argument("--against", default="", help="the build to compare with, in pairs")
    parser.add_argument("--cluster", default="", help="of clusters.yaml (default: the first)")
    return parser


def engine_of(config: Config, name: str) -> Engine:
    """The engine that is asked for, the newest for ""; NexmarkError if there is none."""
    return pick("engine", name, config.engines) if name else config.newest


def night_params(config: Config, options: argparse.Namespace) -> dict[str, Any]:
    """The params of a night that is run at the prompt: there the workload is a small one."""
    check_repetitions(options.repetitions)
    params = {name: getattr(options, name) for name in _PARAMS if getattr(options, name)}
    return {"workload": "smoke", "cluster": next(iter(config.clusters)), **params}


def check_repetitions(count: int | None) -> None:
    """NexmarkError for a number of repetitions that no night can have."""
    if count is not None and not 1 <= count <= 100:
        raise NexmarkError(f"repetitions: {count} is not in 1 to 100; correct it")


def parse_date(option: str, text: str) -> date:
    """A date as 2026-11-03; NexmarkError for anything else."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise NexmarkError(f"{option}: {text!r} is no date; write it like 2026-11-03") from None


def ending(run: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """The exit code of a command: 1 with one line for what is wrong, 130 when interrupted.

    SIGTERM interrupts as Ctrl-C does.
    """
    try:
        with terminated_as_interrupt():
            return run(options)
    except NexmarkError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def say(text: str) -> None:
    """Show a line at once, also where the output is a file."""
    print(text, flush=True)


__all__ = [
    "INTERRUPTED",
    "Parser",
    "check_repetitions",
    "ending",
    "engine_of",
    "night_params",
    "night_parser",
    "parse_date",
    "say",
]
