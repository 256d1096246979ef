"""Command lines: a parser, and the arguments of the generator."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import NoReturn

from nexmark_jobs.ending import UsageError
from nexmark_jobs.knobs import MAX_EVENTS, OWN_ARGUMENTS, GeneratorConfig, KnobError, knobs

_SHOWN = 40


class OneLineParser(argparse.ArgumentParser):
    """A parser that raises UsageError with one line instead of printing the usage and exiting."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{message.removeprefix('argument ')}; see --help")


def integer(text: str, remedy: str = "e.g. 1") -> int:
    """The argument as a number, or an error that explains the problem."""
    try:
        return int(text)
    except ValueError:
        problem = f"{shown(text)} is not an integer; {remedy}"
        raise argparse.ArgumentTypeError(problem) from None


def count(meaning: str, example: str = "100000") -> Callable[[str], int]:
    """The type of an argument that counts events: 1 to as many as the generator can number."""

    def convert(text: str) -> int:
        remedy = f"give {meaning}, e.g. {example}"
        value = integer(text, remedy)
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{value} is not positive; {remedy}")
        if value > MAX_EVENTS:
            problem = f"is more than the generator can number, {MAX_EVENTS}"
            raise argparse.ArgumentTypeError(f"{value} {problem}; {remedy}")
        return value

    return convert


def shown(text: str) -> str:
    """The argument in quotes; only the beginning of a long one."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def new_directory(argument: str, text: str) -> Path:
    """The path of a directory that is empty or not there; UsageError for any other."""
    path = Path(text).absolute()
    if path.exists() and not path.is_dir():
        raise UsageError(f"{argument}: {path} is a file; give a new directory")
    if path.is_dir() and any(path.iterdir()):
        raise UsageError(f"{argument}: {path} is not empty; give a new directory or empty this one")
    return path


def add_generator_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --tps, --seed and --generator."""
    add = parser.add_argument
    rate = "events per second of event time; spaces events, throttles nothing (default 1000)"
    add("--tps", type=integer, default=1000, metavar="T", help=rate)
    add("--seed", type=integer, default=1, metavar="S", help="default 1")
    knob = "a knob of the generator, e.g. out_of_order_group_size=5; repeatable"
    add("--generator", action="append", default=[], metavar="KEY=VALUE", help=knob)


def generator_config(seed: int, tps: int, knobs: Sequence[str], events: int) -> GeneratorConfig:
    """The configuration of `--seed`, `--tps` and the `KEY=VALUE` of each `--generator`.

    UsageError, which names the argument, for a wrong knob or too many events.
    """
    values = dict(_knob(text) for text in knobs)
    try:
        config = GeneratorConfig(seed=seed, tps=tps, **values)
    except KnobError as error:
        where = f"--{error.name}" if error.name in OWN_ARGUMENTS else f"--generator: {error.name}"
        raise UsageError(f"{where}: {error.problem}; give a value within these bounds") from None
    try:
        config.check_span(events)
    except KnobError as error:
        raise UsageError(f"--{error}") from None
    return config


def changed_knobs(config: GeneratorConfig) -> dict[str, int]:
    """Return the knobs that differ from their defaults, without seed and tps."""
    every = ((field, getattr(config, field.name)) for field in fields(config))
    return {x.name: value for x, value in every if value != x.default and x.name in knobs()}


def _knob(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if name in OWN_ARGUMENTS:
        raise UsageError(f"--generator: {name} has an argument of its own; use --{name}")
    if name not in knobs():
        known = ", ".join(knobs())
        raise UsageError(f"--generator: unknown knob {shown(name)}; use one of {known}")
    try:
        return name, int(value)
    except ValueError:
        problem = f"{shown(value)} is not an integer; e.g. {name}=10"
        raise UsageError(f"--generator: {text[:_SHOWN]}: {problem}") from None
