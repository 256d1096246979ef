"""Command lines: a parser, and the arguments of the generator."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import NoReturn

from nexmark_jobs.errors import UsageError
from nexmark_jobs.generator_config import (
    MAX_EVENTS,
    OPTIONS_WITH_ARGUMENT,
    GeneratorConfig,
    GeneratorOptionError,
    option_names,
)

_SHOWN = 40


class OneLineParser(argparse.ArgumentParser):
    """A parser that raises UsageError with one line instead of printing the usage and exiting."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{message.removeprefix('argument ')}; see --help")


def integer(text: str, remedy: str = "e.g. 1") -> int:
    """Return the integer in a text; ArgumentTypeError with `remedy` for any other text."""
    try:
        return int(text)
    except ValueError:
        problem = f"{shown(text)} is not an integer; {remedy}"
        raise argparse.ArgumentTypeError(problem) from None


def count(meaning: str, example: str = "100000") -> Callable[[str], int]:
    """Return the type of an argument that counts events, 1 to `MAX_EVENTS`, for argparse.

    `meaning` and `example` go into the error of a wrong number: "give MEANING, e.g. EXAMPLE".
    """

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
    """Return an argument in quotes; only the first 40 characters of a long one."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def new_directory(argument: str, text: str) -> Path:
    """Return the path of a directory that is empty or missing; UsageError for any other."""
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
    option = "an option of the generator, e.g. out_of_order_group_size=5; repeatable"
    add("--generator", action="append", default=[], metavar="KEY=VALUE", help=option)


def generator_config(seed: int, tps: int, options: Sequence[str], events: int) -> GeneratorConfig:
    """Return the configuration that the arguments of a command line give.

    Args:
        seed: the value of `--seed`.
        tps: the value of `--tps`: events per second of event time.
        options: the `KEY=VALUE` of each `--generator`.
        events: number of events, which have to fit before the year 4000.

    Raises:
        UsageError: a wrong option or too many events; it names the argument.
    """
    values = dict(_option(text) for text in options)
    try:
        config = GeneratorConfig(seed=seed, tps=tps, **values)
    except GeneratorOptionError as error:
        has_argument = error.name in OPTIONS_WITH_ARGUMENT
        where = f"--{error.name}" if has_argument else f"--generator: {error.name}"
        raise UsageError(f"{where}: {error.problem}; give a value within these bounds") from None
    try:
        config.check_span(events)
    except GeneratorOptionError as error:
        raise UsageError(f"--{error}") from None
    return config


def changed_options(config: GeneratorConfig) -> dict[str, int]:
    """Return the options that differ from their defaults, without seed and tps."""
    names = set(option_names())
    return {
        field.name: value
        for field in fields(config)
        if field.name in names and (value := getattr(config, field.name)) != field.default
    }


def _option(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if name in OPTIONS_WITH_ARGUMENT:
        raise UsageError(f"--generator: {name} has an argument of its own; use --{name}")
    if name not in option_names():
        known = ", ".join(option_names())
        raise UsageError(f"--generator: unknown option {shown(name)}; use one of {known}")
    try:
        return name, int(value)
    except ValueError:
        problem = f"{shown(value)} is not an integer; e.g. {name}=10"
        raise UsageError(f"--generator: {text[:_SHOWN]}: {problem}") from None
