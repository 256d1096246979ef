"""The generator's part of a command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields
from typing import NoReturn

from nexmark_jobs.errors import UsageError
from nexmark_jobs.generator.config import GeneratorConfig

_OWN_ARGUMENTS = ("seed", "tps")


class OneLineParser(argparse.ArgumentParser):
    """A parser that raises UsageError with one line instead of printing the usage and exiting."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        message = message.removeprefix("argument ")
        if message.startswith(("unrecognized", "the following arguments")):
            message += "; see --help"
        raise UsageError(message)


def integer(text: str) -> int:
    """The argument as a number; what is wrong with it in words."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer; e.g. 1") from None


def add_generator_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --tps, --seed and --generator."""
    parser.add_argument(
        "--tps",
        type=integer,
        default=1000,
        metavar="T",
        help="events per second of event time; spaces events, throttles nothing (default 1000)",
    )
    parser.add_argument("--seed", type=integer, default=1, metavar="S", help="default 1")
    parser.add_argument(
        "--generator",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a knob of the generator, e.g. out_of_order_group_size=5; repeatable",
    )


def generator_config(seed: int, tps: int, knobs: Sequence[str]) -> GeneratorConfig:
    """The configuration of `--seed`, `--tps` and the `KEY=VALUE` of each `--generator`.

    Raises:
        UsageError: A knob is unknown, is no integer or out of range; the message names it.
    """
    values = dict(_knob(text) for text in knobs)
    try:
        return GeneratorConfig(seed=seed, tps=tps, **values)
    except ValueError as error:
        name, _, problem = str(error).partition(": ")
        where = f"--{name}" if name in _OWN_ARGUMENTS else f"--generator: {name}"
        raise UsageError(f"{where}: {problem}; give a value within these bounds") from None


def changed_knobs(config: GeneratorConfig) -> dict[str, int]:
    """The knobs that differ from their defaults, but for seed and tps."""
    default = GeneratorConfig()
    return {
        field.name: getattr(config, field.name)
        for field in fields(config)
        if field.name not in _OWN_ARGUMENTS
        and getattr(config, field.name) != getattr(default, field.name)
    }


def _knob(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if name in _OWN_ARGUMENTS:
        raise UsageError(f"--generator: {name} has an argument of its own; use --{name}")
    known = sorted({field.name for field in fields(GeneratorConfig)} - set(_OWN_ARGUMENTS))
    if name not in known:
        raise UsageError(f"--generator: unknown knob '{name}'; use one of {', '.join(known)}")
    try:
        return name, int(value)
    except ValueError:
        raise UsageError(
            f"--generator: {text}: {value!r} is not an integer; e.g. {name}=10"
        ) from None
